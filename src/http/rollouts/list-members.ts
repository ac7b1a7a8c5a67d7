// The members of a rollout, each with its wave and how far it is.
import type { MemberState, ShownMember } from '../../api/rollout-schema.ts'
import type { Steps } from '../../base/steps.ts'
import type { ActiveRollout } from '../../domain/rollouts/active-rollout.ts'
import type { MemberProgress } from '../../domain/rollouts/member-progress.ts'
import { type Gates, specOf, type Wave } from '../../domain/rollouts/rollout.ts'
import { gatesOf } from '../../domain/rollouts/strategy.ts'
import { isDone, memberProgress, type TalliedFleet } from '../../engine/rollouts/tally-rollout.ts'

export interface MembersQuery {
  readonly wave: string | undefined
  readonly state: MemberState | undefined
  readonly limit: number
  readonly offset: number
}

/** In the order of the waves, and of each as they are opened. Deleted clusters are no members any more. */
export function* listMembers(
  tallied: TalliedFleet,
  active: ActiveRollout,
  { wave: wanted, state, limit, offset }: MembersQuery,
): Steps<{ readonly members: ShownMember[]; readonly total: number }> {
  const { types, view } = tallied
  const members: ShownMember[] = []
  let total = 0
  for (const [at, wave] of active.rollout.waves.entries()) {
    if (wanted !== undefined && wave.name !== wanted) continue
    let place = 0
    for (const id of active.membersOf(at)) {
      yield
      const isOpened = place++ < wave.opened
      if (!view.get(types.cluster.type.name, id)) continue
      const isOnPage = total >= offset && members.length < limit
      // Without a filter, only those on the page are looked at.
      const is = state === undefined && !isOnPage ? undefined : stateOf(tallied, active, at, id, isOpened)
      if (state !== undefined && is !== state) continue
      total++
      if (isOnPage && is) members.push({ cluster: id, wave: wave.name, state: is })
    }
  }
  return { members, total }
}

function stateOf(
  tallied: TalliedFleet,
  active: ActiveRollout,
  at: number,
  id: string,
  isOpened: boolean,
): MemberState {
  const { types, view } = tallied
  const { state } = active.rollout.waves[at] as Wave
  if (active.isSkipped(id) || (state === 'skipped' && !isOpened)) return 'skipped'
  if (!isOpened) return 'waiting'
  const cluster = view.get(types.cluster.type.name, id)
  const progress = cluster && memberProgress(tallied, active, cluster)
  return progress ? wordFor(progress, gatesOf(specOf(active.rollout, at))) : 'unaffected'
}

function wordFor(progress: MemberProgress, gates: Gates): MemberState {
  const { served, applied, healthy, failed, isAbsent } = progress
  if (failed) return 'failed'
  if (isAbsent && !isDone(progress, gates)) return 'absent'
  return healthy ? 'healthy' : applied ? 'applied' : served ? 'served' : 'open'
}

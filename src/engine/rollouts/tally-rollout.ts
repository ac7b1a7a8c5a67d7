// How far the members of a rollout are, wave by wave.
import type { Steps } from '../../base/steps.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import type { ActiveRollout } from '../../domain/rollouts/active-rollout.ts'
import { changedInputs, type MemberProgress, progressOf } from '../../domain/rollouts/member-progress.ts'
import { type Gates, specOf, type Wave } from '../../domain/rollouts/rollout.ts'
import { gatesOf } from '../../domain/rollouts/strategy.ts'
import type { WaveTally } from '../../domain/rollouts/wave-gates.ts'
import type { Types } from '../../domain/types/resource-type.ts'
import type { Fleet } from '../fleet/fleet.ts'

/** Ids that a tally lists of members that lag behind or fail. */
const LISTED = 20

export interface TalliedFleet {
  readonly types: Types
  readonly fleet: Fleet
  /** A view that does not change meanwhile. */
  readonly view: View
}

/** One tally for each wave. Members that are not open yet are counted, and nothing is known of them. */
export function* tallyRollout(tallied: TalliedFleet, active: ActiveRollout): Steps<WaveTally[]> {
  const tallies: WaveTally[] = []
  for (const at of active.rollout.waves.keys()) tallies.push(yield* tallyWave(tallied, active, at))
  return tallies
}

/** Enough for a decision: of waves that are not open, who fails. */
export function* tallyForStep(tallied: TalliedFleet, active: ActiveRollout): Steps<WaveTally[]> {
  const tallies: WaveTally[] = []
  for (const [at, { state, opened, members }] of active.rollout.waves.entries()) {
    const isWhole = state === 'open' || (state === 'passed' && opened < members)
    tallies.push(yield* tallyWave(tallied, active, at, !isWhole))
  }
  return tallies
}

/** The absent members of the waves that were opened, and those of them that were never served the change. */
export function* findAbsent(
  tallied: TalliedFleet,
  active: ActiveRollout,
): Steps<{ readonly absent: readonly string[]; readonly stragglers: readonly string[] }> {
  const tallies = yield* tallyRollout(tallied, active)
  return {
    absent: tallies.flatMap(({ absent }) => absent),
    stragglers: tallies.flatMap(({ stragglers }) => stragglers),
  }
}

function* tallyWave(
  tallied: TalliedFleet,
  active: ActiveRollout,
  at: number,
  failuresOnly = false,
): Steps<WaveTally> {
  const { types, fleet, view } = tallied
  const { opened } = active.rollout.waves[at] as Wave
  const tally = new Tally(gatesOf(specOf(active.rollout, at)))
  let place = 0
  for (const id of active.membersOf(at)) {
    yield
    const isOpened = place++ < opened
    const cluster = active.isSkipped(id) ? undefined : view.get(types.cluster.type.name, id)
    if (!cluster) continue
    if (!isOpened || (failuresOnly && !fleet.isFailing(id))) tally.members++
    else {
      const progress = memberProgress(tallied, active, cluster)
      if (progress) tally.add(id, progress)
    }
  }
  return tally
}

/** How far an opened member is; undefined where the rollout changes nothing for it any more. */
export function memberProgress(
  { types, fleet, view }: TalliedFleet,
  active: ActiveRollout,
  cluster: Entry,
): MemberProgress | undefined {
  const { rollout, overlay } = active
  const changed = changedInputs(types, view, overlay, cluster)
  if (changed.length === 0) return undefined
  const openedRevision = active.openedRevision(cluster.id)
  const situation = fleet.situationOf(cluster, view)
  const retriedAt = rollout.retried_at === undefined ? 0 : Date.parse(rollout.retried_at)
  // A clock that was put back since the retry would hide new failures.
  const isKnown = retriedAt <= situation.clock.now
  return progressOf(situation, changed, { openedRevision, retriedAt: isKnown ? retriedAt : 0 })
}

class Tally implements WaveTally {
  members = 0
  served = 0
  applied = 0
  healthy = 0
  failed = 0
  laggingCount = 0
  until = Number.POSITIVE_INFINITY
  readonly absentCounts = { served: 0, applied: 0, healthy: 0 }
  readonly absent: string[] = []
  readonly stragglers: string[] = []
  readonly lagging: string[] = []
  readonly failing: string[] = []
  readonly #gates: Gates

  constructor(gates: Gates) {
    this.#gates = gates
  }

  add(id: string, progress: MemberProgress): void {
    this.members++
    this.until = Math.min(this.until, progress.until)
    count(this, progress)
    if (progress.failed) {
      this.failed++
      if (this.failing.length < LISTED) this.failing.push(id)
    } else if (!isDone(progress, this.#gates)) this.#addOpen(id, progress)
  }

  #addOpen(id: string, progress: MemberProgress): void {
    if (progress.isAbsent) {
      this.absent.push(id)
      count(this.absentCounts, progress)
      if (!progress.served) this.stragglers.push(id)
      return
    }
    this.laggingCount++
    if (this.lagging.length < LISTED) this.lagging.push(id)
  }
}

function count(
  counts: { served: number; applied: number; healthy: number },
  { served, applied, healthy }: MemberProgress,
): void {
  if (served) counts.served++
  if (applied) counts.applied++
  if (healthy) counts.healthy++
}

/** Whether a member has come as far as the gates of its wave ask. */
export function isDone({ served, applied, healthy }: MemberProgress, gates: Gates): boolean {
  if (gates.healthy_percent !== undefined) return healthy
  return gates.applied_percent !== undefined ? applied : served
}

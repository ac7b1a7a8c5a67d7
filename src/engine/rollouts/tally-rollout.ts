// How far the members of a rollout are, wave by wave.
import type { Steps } from '../../base/steps.ts'
import type { View } from '../../domain/documents/view.ts'
import { changedInputs, type MemberProgress, progressOf } from '../../domain/rollouts/member-progress.ts'
import { asPlan, type Gates, ROLLOUT_PLANS, specOf, type Wave } from '../../domain/rollouts/rollout.ts'
import { type ActiveRollout, stagingOf } from '../../domain/rollouts/staging.ts'
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
  const plan = tallied.view.get(ROLLOUT_PLANS, active.rollout.id)
  const tallies: WaveTally[] = []
  for (const [i, members] of (plan ? asPlan(plan).members : []).entries())
    tallies.push(yield* tallyWave(tallied, active, i, members))
  return tallies
}

function* tallyWave(
  { types, fleet, view }: TalliedFleet,
  { rollout, overlay }: ActiveRollout,
  at: number,
  members: readonly string[],
): Steps<WaveTally> {
  const { opened, opened_revision: openedRevision = 0 } = rollout.waves[at] as Wave
  const gates = gatesOf(specOf(rollout, at))
  const tally = new Tally()
  const skipped = new Set(rollout.skipped)
  const staging = stagingOf(types, view)
  const retriedAt = rollout.retried_at === undefined ? 0 : Date.parse(rollout.retried_at)
  for (const [place, id] of members.entries()) {
    yield
    const cluster = skipped.has(id) ? undefined : view.get(types.cluster.type.name, id)
    if (!cluster) continue
    if (place >= opened) {
      tally.members++
      continue
    }
    const changed = changedInputs(types, view, overlay, cluster)
    if (changed.length === 0) continue
    const isHeld = staging.isHeld(id)
    const situation = fleet.situationOf(cluster, view)
    tally.add(id, progressOf(situation, changed, { openedRevision, isHeld, retriedAt }), gates)
  }
  return tally
}

class Tally implements WaveTally {
  members = 0
  served = 0
  applied = 0
  healthy = 0
  failed = 0
  laggingCount = 0
  readonly absent: string[] = []
  readonly lagging: string[] = []
  readonly failing: string[] = []

  add(id: string, progress: MemberProgress, gates: Gates): void {
    this.members++
    const { served, applied, healthy, failed, isAbsent } = progress
    if (served) this.served++
    if (applied) this.applied++
    if (healthy) this.healthy++
    if (failed) {
      this.failed++
      if (this.failing.length < LISTED) this.failing.push(id)
    } else if (!isDone(progress, gates)) {
      if (isAbsent) this.absent.push(id)
      else {
        this.laggingCount++
        if (this.lagging.length < LISTED) this.lagging.push(id)
      }
    }
  }
}

/** Whether a member has come as far as the gates of its wave ask. */
function isDone({ served, applied, healthy }: MemberProgress, gates: Gates): boolean {
  if (gates.healthy_percent !== undefined) return healthy
  return gates.applied_percent !== undefined ? applied : served
}

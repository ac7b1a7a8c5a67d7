// How far a revision has come: of the clusters that it changed something for, how many were served it, applied it, are healthy.
import type { PendingCluster, Propagation, PropagationTimes } from '../../api/propagation-schema.ts'
import type { Steps } from '../../base/steps.ts'
import type { Selector } from '../../domain/access/selector.ts'
import type { Comparison } from '../../domain/delivery/compare-served.ts'
import type { View } from '../../domain/documents/view.ts'
import { followChange } from '../../domain/status/follow-change.ts'
import type { Fleet } from '../../engine/fleet/fleet.ts'

/** Clusters to name that have not applied it. */
const PENDING = 20

export interface FollowedRevision {
  readonly revision: number
  readonly time: string
}

/** `present` is the view that status is about; a cluster that was deleted since, or is not `selected` now, does not count. */
export function* followRevision(
  fleet: Fleet,
  present: View,
  comparison: Comparison,
  { revision, time }: FollowedRevision,
  selected: Selector['matches'],
  now: number,
): Steps<Propagation> {
  const type = comparison.types.cluster.type.name
  const begun = Date.parse(time)
  const outcomes = { healthy: 0, failed: 0, offline: 0, unknown: 0 }
  const served: number[] = []
  const applied: number[] = []
  const pending: PendingCluster[] = []
  let affected = 0
  let expectedAt = 0
  for (const candidate of comparison.candidates()) {
    yield
    const cluster = present.get(type, candidate.id)
    if (!cluster || !selected(cluster.document, present)) continue
    const differences = comparison.compare(candidate)
    if (differences.length === 0) continue
    affected++
    const progress = followChange(fleet.situationOf(cluster), revision, differences)
    outcomes[progress.outcome]++
    expectedAt = Math.max(expectedAt, progress.expectedAt)
    if (progress.servedAt !== undefined) served.push(progress.servedAt - begun)
    if (progress.appliedAt !== undefined) applied.push(progress.appliedAt - begun)
    else if (pending.length < PENDING) pending.push({ cluster: cluster.id, ...fleet.rowOf(cluster) })
  }
  const { healthy, failed, offline, unknown } = outcomes
  return {
    revision,
    time,
    affected,
    served: served.length,
    applied: applied.length,
    healthy,
    failed,
    offline,
    unknown,
    times: { served: timesOf(served, affected), applied: timesOf(applied, affected) },
    forecast: { served_s: expectedAt === 0 ? null : secondsOf(expectedAt - now) },
    pending,
  }
}

/** Of all clusters: a share that has not got there yet has no time. */
function timesOf(reached: readonly number[], affected: number): PropagationTimes {
  const sorted = Float64Array.from(reached).sort()
  const at = (share: number): number | null => {
    const ms = sorted[Math.max(1, Math.ceil(share * affected)) - 1]
    return ms === undefined ? null : secondsOf(ms)
  }
  return { p50_s: at(0.5), p95_s: at(0.95), p100_s: at(1) }
}

/** What was taken back before a cluster asked for it took no time. */
function secondsOf(ms: number): number {
  return Math.round(Math.max(0, ms) / 100) / 10
}

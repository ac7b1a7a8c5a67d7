// What clusters would receive differently: the difference of all poll answers between two views.
import type { Steps } from '../../base/steps.ts'
import type { InputChange } from './compare-inputs.ts'
import type { Comparison } from './compare-served.ts'
import { ImpactCounter, type ImpactCounts } from './impact-counts.ts'

export interface Impact extends ImpactCounts {
  /** The first details, ordered by cluster. */
  readonly details: readonly ClusterImpact[]
}

interface ClusterImpact {
  readonly cluster: string
  readonly environment: string
  readonly endpoint: string
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly InputChange[]
}

export const IMPACT_LIMIT = 100

/** Exact counts over the whole fleet, or the chosen clusters, and the details of the first `limit` clusters' endpoints. */
export function* impactOf(
  comparison: Comparison,
  limit = IMPACT_LIMIT,
  isChosen: (cluster: string) => boolean = () => true,
): Steps<Impact> {
  const counter = new ImpactCounter()
  const details: ClusterImpact[] = []
  for (const candidate of comparison.candidates()) {
    yield
    const { id } = candidate
    if (!isChosen(id)) continue
    const differences = comparison.compare(candidate)
    if (differences.length === 0 && !comparison.isTouched(id)) continue
    const environment = comparison.environmentOf(candidate)
    counter.add(environment, comparison.passageOf(id), differences)
    for (const { type, added, removed, changed } of differences) {
      if (details.length === limit) break
      details.push({ cluster: id, environment, endpoint: type.delivery.endpoint, added, removed, changed })
    }
  }
  return { ...(yield* counter.counts()), details }
}

// What has become of one input on one cluster: whether it is applied, and how it fares.
import { deliveryOf, hasApplied, healthOf, type Situation } from '../../domain/status/derive-status.ts'
import { isHeard } from '../../domain/status/status-words.ts'
import type { Delivery } from '../../domain/types/resource-type.ts'

export interface Fate {
  readonly isApplied: boolean
  readonly isHealthy: boolean
  readonly isFailed: boolean
}

/** A component that is reported as ready with its present digest is applied, whatever the rest of its endpoint is. */
export function fateOf(situation: Situation, delivery: Delivery, id: string): Fate {
  const desired = situation.desired.find(({ endpoint }) => endpoint === delivery.endpoint)
  if (!desired) return { isApplied: false, isHealthy: false, isFailed: false }
  const isWhole = hasApplied(deliveryOf(situation, desired))
  const input = desired.components.find((each) => each.id === id)
  if (!input) {
    return { isApplied: isWhole, isHealthy: isWhole && isHeard(situation.contact), isFailed: false }
  }
  const isReady = situation.evidence.report?.ready.sinceOf(id, input.mark) !== undefined
  const health = healthOf(situation, desired, input)
  return { isApplied: isWhole || isReady, isHealthy: health === 'healthy', isFailed: health === 'failed' }
}

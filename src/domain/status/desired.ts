// What a cluster is to be served now, as digests: what its polls and reports are compared with.
import type { Halves } from '../../base/digest.ts'
import { digestInputs } from '../delivery/render-inputs.ts'
import { servedTo } from '../delivery/served-view.ts'
import type { Entry, View } from '../documents/view.ts'
import { type DeliveredType, isEnabled, referencesOf, type Types } from '../types/resource-type.ts'
import type { AnswerMark } from './evidence.ts'

/** One input, where the cluster reports on each. */
export interface DesiredInput {
  readonly id: string
  readonly mark: Halves
}

export interface Desired {
  readonly type: DeliveredType
  readonly endpoint: string
  readonly count: number
  readonly mark: AnswerMark
  /** The inputs whose health counts: enabled ones of a type that reports on each. */
  readonly components: readonly DesiredInput[]
}

/** One entry for each of some delivered types. */
export function desiredOf(
  types: Types,
  view: View,
  cluster: Entry,
  delivered: readonly DeliveredType[] = types.delivered,
): Desired[] {
  const served = servedTo(types, view, cluster.id)
  const current = cluster.deleted ? cluster : (served.get(types.cluster.type.name, cluster.id) ?? cluster)
  return delivered.map((type) => {
    const { delivery } = type
    const { digest, inputs } = digestInputs(served, types, type, current)
    const components: DesiredInput[] = []
    if (delivery.reportsHealth)
      for (const { reference, digest: mark } of inputs)
        if (isEnabled(delivery, reference)) components.push({ id: reference.id, mark })
    return {
      type,
      endpoint: delivery.endpoint,
      count: inputs.length,
      mark: inputs.length === 0 ? undefined : digest,
      components,
    }
  })
}

/**
 * Whether a definition that a cluster is given was changed or removed after a revision. What an input waits for is given
 * to the cluster too, or left out, so that nothing else can change its inputs while the cluster's own entry is the same.
 */
export function isGivenNewer(
  types: Types,
  view: View,
  { name, delivery }: DeliveredType,
  cluster: Entry,
  revision: number,
): boolean {
  const served = servedTo(types, view, cluster.id)
  for (const { id } of referencesOf(cluster.document, delivery)) {
    const definition = served.get(name, id)
    if (!definition || definition.revision > revision) return true
  }
  return false
}

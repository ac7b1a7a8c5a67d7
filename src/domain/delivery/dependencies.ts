// What the inputs of a cluster depend on, and which of it the cluster does not get.
import type { Json } from '../../base/json.ts'
import {
  type DeliveredType,
  type Delivery,
  type Document,
  idsIn,
  isEnabled,
  type Reference,
  referencesOf,
} from '../types/resource-type.ts'
import { resolveField } from './resolve-field.ts'
import type { ServedView } from './served-view.ts'

/** Finds an enabled reference of one cluster by its id. */
export type FindEnabled = (id: string) => Reference | undefined

/** Returns a look-up among a cluster's enabled references. A long list becomes a map at the first look-up. */
export function enabledReferences(cluster: Document, delivery: Delivery): FindEnabled {
  const references = referencesOf(cluster, delivery)
  let byId: Map<string, Reference> | undefined
  return (id) => {
    if (references.length > SHORT) byId ??= new Map(references.map((each) => [each.id, each]))
    const found = byId ? byId.get(id) : references.find((each) => each.id === id)
    return found && isEnabled(delivery, found) ? found : undefined
  }
}

const SHORT = 50

/**
 * Returns what an input depends on and would wait for in vain: its cluster lacks it or has disabled it, or it is of
 * another delivery class.
 */
export function unmetDependencies(
  view: ServedView,
  { name, delivery }: DeliveredType,
  definition: Document,
  reference: Reference,
  enabled: FindEnabled,
): readonly string[] {
  const { overrides, waitsFor, deliveryClass } = delivery
  const unmet: string[] = []
  const read = (document: Document, own: Reference, field: string): Json | undefined =>
    overrides.includes(field) ? resolveField(delivery, document, own, field) : document[field]
  for (const field of waitsFor) {
    for (const id of idsIn(read(definition, reference, field))) {
      const other = enabled(id)
      const its = other && view.get(name, id)?.document
      const isAlike =
        its &&
        deliveryClass((name) => read(its, other, name)) ===
          deliveryClass((name) => read(definition, reference, name))
      if (!isAlike) unmet.push(id)
    }
  }
  return unmet
}

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

/** Returns a look-up among a cluster's enabled references. */
export function enabledReferences(cluster: Document, delivery: Delivery): FindEnabled {
  const references = referencesOf(cluster, delivery)
  const place = placesOf(references)
  return (id) => {
    const found = references[place(id)]
    return found && isEnabled(delivery, found) ? found : undefined
  }
}

/** Returns a look-up of places in a list of references; -1 for no place. A long list becomes a map at the first look-up. */
export function placesOf(references: readonly Reference[]): (id: string) => number {
  let byId: Map<string, number> | undefined
  return (id) => {
    if (references.length <= SHORT) return references.findIndex((each) => each.id === id)
    byId ??= new Map(references.map((each, i) => [each.id, i]).reverse() as [string, number][])
    return byId.get(id) ?? -1
  }
}

const SHORT = 50

/** An input among the others of its cluster. */
export interface Dependent {
  /** The ids that it depends on. */
  readonly dependsOn: readonly string[]
  readonly deliveryClass: boolean
}

/** Says nothing of the rest of the cluster. */
export function dependentOf(delivery: Delivery, definition: Document, reference: Reference): Dependent {
  const { overrides, waitsFor, deliveryClass } = delivery
  const read = (field: string): Json | undefined =>
    overrides.includes(field) ? resolveField(delivery, definition, reference, field) : definition[field]
  return {
    dependsOn: waitsFor.flatMap((field) => idsIn(read(field))),
    deliveryClass: deliveryClass(read),
  }
}

/**
 * Returns what an input depends on and would wait for in vain: its cluster lacks it or has disabled it, or it is of
 * another delivery class. `find` returns the enabled inputs of the cluster.
 */
export function unmetAmong(
  { dependsOn, deliveryClass }: Dependent,
  find: (id: string) => Dependent | undefined,
): readonly string[] {
  if (dependsOn.length === 0) return NONE
  return dependsOn.filter((id) => find(id)?.deliveryClass !== deliveryClass)
}

const NONE: readonly string[] = []

/** The same of an input that nothing is known of yet. */
export function unmetDependencies(
  view: ServedView,
  { name, delivery }: DeliveredType,
  definition: Document,
  reference: Reference,
  enabled: FindEnabled,
): readonly string[] {
  return unmetAmong(dependentOf(delivery, definition, reference), (id) => {
    const other = enabled(id)
    const its = other && view.get(name, id)?.document
    return its && dependentOf(delivery, its, other)
  })
}

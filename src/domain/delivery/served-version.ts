// Which version of a definition one cluster is served, and what of it is the cluster's own.
import type { ReadVersion } from '../access/selector-subjects.ts'
import type { View } from '../documents/view.ts'
import {
  type DeliveredType,
  type Document,
  findReference,
  isEnabled,
  type Reference,
  type Types,
} from '../types/resource-type.ts'
import { holderOf, readerOf } from './resolve-field.ts'
import { servedTo } from './served-view.ts'

export interface ServedVersion {
  /** Null where the field has no value, and of a type whose file does not say what a version is. */
  readonly version: string | null
  /** Whether the version is an override of the cluster's own. */
  readonly isOverridden: boolean
  readonly isEnabled: boolean
  /** The cluster's own document, and its reference to the definition. */
  readonly cluster: Document
  readonly reference: Reference
}

/** Undefined for a cluster that is not assigned the definition. */
export function servedVersion(
  types: Types,
  view: View,
  { name, delivery }: DeliveredType,
  clusterId: string,
  id: string,
): ServedVersion | undefined {
  const served = servedTo(types, view, clusterId)
  const cluster = served.get(types.cluster.type.name, clusterId)?.document
  const reference = cluster && findReference(cluster, delivery, id)
  const definition = reference && served.get(name, id)?.document
  if (!definition) return undefined
  const read = readerOf(delivery, definition, reference)
  const field = delivery.versionField?.(read)
  const value = field === undefined ? undefined : read(field)
  return {
    version: value === undefined ? null : String(value),
    isOverridden: field !== undefined && holderOf(delivery, definition, reference, field) === reference,
    isEnabled: isEnabled(delivery, reference),
    cluster,
    reference,
  }
}

/** Reads versions for selectors. Types are asked in their order: an id may be of several. */
export function servedVersions(types: Types): ReadVersion {
  const versioned = types.delivered.filter(({ delivery }) => delivery.versionField)
  return (view, cluster, id) => {
    for (const type of versioned) {
      const found = servedVersion(types, view, type, cluster, id)
      if (found?.isEnabled) return found.version ?? undefined
    }
    return undefined
  }
}

// What clusters set themselves instead of taking it from the catalog: overrides of references, and patches.
import { equalJson, type Json } from '../../base/json.ts'
import type { Steps } from '../../base/steps.ts'
import type { Change, View } from '../documents/view.ts'
import {
  type DeliveredType,
  type Document,
  type DocumentName,
  overriddenFields,
  patchesOf,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'
import { resolveField } from './resolve-field.ts'

export const OWN_KINDS = ['override', 'patch'] as const
export type OwnKind = (typeof OWN_KINDS)[number]

/** One field of a definition that a cluster sets itself. */
export interface OwnValue {
  readonly type: string
  readonly id: string
  readonly kind: OwnKind
  /** A field of the definition, or the key of a patch. */
  readonly field: string
  readonly value: Json
  /** The value that the cluster would get without it; null where the catalog has none. */
  readonly catalog: Json
  /** Whether the catalog says the same. */
  readonly redundant: boolean
  /** Reads the value from any version of the cluster's document. */
  readonly read: (cluster: Document) => Json | undefined
}

/** In the order of the cluster's references, and of the fields of each. */
export function* ownValuesOf(types: Types, view: View, cluster: Document): Generator<OwnValue> {
  for (const type of types.delivered) {
    const { name, delivery } = type
    for (const reference of referencesOf(cluster, delivery)) {
      const { id } = reference
      const fields = overriddenFields(delivery, reference)
      const definition = fields.length > 0 ? view.get(name, id)?.document : undefined
      for (const field of fields) {
        const value = reference[field] as Json
        const catalog = (definition && resolveField(delivery, definition, { id }, field)) ?? null
        const redundant = equalJson(value, catalog)
        const read = (document: Document): Json | undefined => referenceField(type, document, id, field)
        yield { type: name, id, kind: 'override', field, value, catalog, redundant, read }
      }
      if (!delivery.patches) continue
      for (const [field, value] of Object.entries(patchesOf(types.cluster, cluster, id))) {
        const read = (document: Document): Json | undefined => patchesOf(types.cluster, document, id)[field]
        yield { type: name, id, kind: 'patch', field, value, catalog: null, redundant: false, read }
      }
    }
  }
}

function referenceField(
  { delivery }: DeliveredType,
  cluster: Document,
  id: string,
  field: string,
): Json | undefined {
  return referencesOf(cluster, delivery).find((each) => each.id === id)?.[field]
}

/** Clusters that keep a value of their own for a field that a change gives another value in the catalog. */
export interface KeptField extends DocumentName {
  readonly field: string
  readonly clusters: number
  /** The first of them. */
  readonly examples: readonly string[]
}

const EXAMPLES = 5

/** The fields of definitions that changes give another value, with the clusters that do not get it. */
export function* keptFields(types: Types, after: View, changes: readonly Change[]): Steps<KeptField[]> {
  const changed = types.delivered.flatMap((type) => {
    const fields = changedFields(type, changes)
    return fields.size > 0 ? [{ type, fields }] : []
  })
  if (changed.length === 0) return []
  const kept = new Map<string, { named: DocumentName & { readonly field: string }; clusters: string[] }>()
  for (const { id: cluster, document } of after.all(types.cluster.type.name)) {
    yield
    for (const { type, fields } of changed)
      for (const reference of referencesOf(document, type.delivery)) {
        const names = fields.get(reference.id)
        if (!names) continue
        for (const field of names) {
          if ((reference[field] ?? null) === null) continue
          const named = { type: type.name, id: reference.id, field }
          const key = JSON.stringify(named)
          const found = kept.get(key) ?? { named, clusters: [] }
          found.clusters.push(cluster)
          kept.set(key, found)
        }
      }
  }
  return [...kept.values()].map(({ named, clusters }) => ({
    ...named,
    clusters: clusters.length,
    examples: clusters.slice(0, EXAMPLES),
  }))
}

/** By the ids of definitions. */
function changedFields(
  { name, delivery }: DeliveredType,
  changes: readonly Change[],
): Map<string, readonly string[]> {
  const fields = new Map<string, readonly string[]>()
  for (const { type, id, before, after } of changes) {
    if (type !== name || !before || !after || before.deleted || after.deleted) continue
    const differing = delivery.overrides.filter(
      (field) => !equalJson(before.document[field] ?? null, after.document[field] ?? null),
    )
    if (differing.length > 0) fields.set(id, differing)
  }
  return fields
}

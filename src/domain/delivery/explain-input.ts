// Where each field of an input comes from.
import { isObject, type Json, type JsonObject, own, pointer } from '../../base/json.ts'
import {
  type ClusterType,
  type DeliveredType,
  type Delivery,
  type Document,
  findReference,
  type InputField,
  idsIn,
  isEnabled,
  patchesOf,
  type Reference,
} from '../types/resource-type.ts'
import { enabledReferences } from './dependencies.ts'
import { holderOf } from './resolve-field.ts'

type FieldSource = 'catalog' | 'override' | 'patch' | 'cluster' | 'default'

/**
 * Why a dependency that a field names is left out: the cluster does not get it, so the input would wait for it forever.
 */
export const LEFT_OUT = ['not_assigned', 'switched_off', 'delivered_otherwise'] as const
interface LeftOut {
  readonly id: string
  readonly why: (typeof LEFT_OUT)[number]
}

export interface FieldOrigin {
  /** JSON pointer into the input. */
  readonly path: string
  readonly source: FieldSource
  /** Where the value is set: in a document, or by a default of the type. */
  readonly holder: 'cluster' | 'definition' | 'type'
  readonly leftOut?: readonly LeftOut[]
  /** Reads the value from any version of that document. */
  readonly read: (document: Document) => Json | undefined
}

export interface ExplainedInput {
  readonly id: string
  readonly fields: readonly ExplainedField[]
}

export interface ExplainedField {
  /** JSON pointer into the input. */
  readonly path: string
  readonly value: Json
  readonly source: FieldSource
  /** The document that holds the value; null for a default of the type. */
  readonly document: string | null
  /** The revision that last set it there; null where the log does not reach back that far. */
  readonly revision: number | null
  readonly time: string | null
  readonly actor: string | null
  readonly message: string | null
  /** Set where the document itself holds another value: the rollout that is open for the cluster, or that it is held. */
  readonly rollout?: string
  readonly held?: true
  /**
   * Dependencies that the document names and this cluster does not get, each with the reason; absent where there are
   * none.
   */
  readonly left_out?: readonly LeftOut[]
}

export function explainInput(
  cluster: ClusterType,
  type: DeliveredType,
  [clusterDocument, definition, reference]: readonly [Document, Document, Reference],
  unmet: readonly string[],
): FieldOrigin[] {
  const { delivery } = type
  const { id } = reference
  const ofReference = (field: string) => (document: Document) => {
    const found = findReference(document, delivery, id)
    return found && own(found, field)
  }
  const assigned: FieldOrigin = { path: '/id', source: 'cluster', holder: 'cluster', read: ofReference('id') }

  const resolved = (path: string, source: string): FieldOrigin => {
    const holder = holderOf(delivery, definition, reference, source)
    const waited = delivery.waitsFor.includes(source) ? idsIn(holder && own(holder, source)) : []
    const leftOut = waited
      .filter((other) => unmet.includes(other))
      .map((other) => ({ id: other, why: whyUnmet(delivery, clusterDocument, other) }))
    const origin = originOf(path, source, holder)
    return leftOut.length > 0 ? { ...origin, leftOut } : origin
  }

  const originOf = (path: string, source: string, holder: JsonObject | undefined): FieldOrigin => {
    if (holder === reference) {
      const overrides = delivery.overrides.includes(source)
      return {
        path,
        source: overrides ? 'override' : 'cluster',
        holder: 'cluster',
        read: ofReference(source),
      }
    }
    if (holder !== definition) return unset(path)
    const named = delivery.waitsFor.includes(source) ? idsIn(own(definition, source)) : []
    const assignedIn = (document: Document): string[] => named.filter(enabledReferences(document, delivery))
    // Dependencies that the cluster does not get are left out: then the cluster sets the value.
    if (assignedIn(clusterDocument).length < named.length)
      return { path, source: 'cluster', holder: 'cluster', read: assignedIn }
    return { path, source: 'catalog', holder: 'definition', read: (document) => own(document, source) }
  }

  const explainField = (field: InputField): FieldOrigin[] => {
    const path = pointer('', field.name)
    if (field.kind === 'value') return [resolved(path, field.source)]
    if (field.kind === 'group') return field.sources.map((source) => resolved(pointer(path, source), source))
    if (field.kind === 'cluster') {
      return cluster.input.map(([name, property]) => ({
        path: pointer(path, name),
        source: 'cluster',
        holder: 'cluster',
        read: (document) => own(document, property),
      }))
    }
    const keys = Object.keys(patchesOf(cluster, clusterDocument, id))
    if (keys.length === 0) return [unset(path)]
    return keys.map((key) => ({
      path: pointer(path, key),
      source: 'patch',
      holder: 'cluster',
      read: (document) => own(patchesOf(cluster, document, id), key),
    }))
  }
  return [assigned, ...delivery.input.flatMap(explainField)]
}

function whyUnmet(delivery: Delivery, cluster: Document, id: string): LeftOut['why'] {
  const found = findReference(cluster, delivery, id)
  if (!found) return 'not_assigned'
  return isEnabled(delivery, found) ? 'delivered_otherwise' : 'switched_off'
}

/** No document sets the field. */
function unset(path: string): FieldOrigin {
  return { path, source: 'default', holder: 'type', read: () => undefined }
}

/** Returns the value that a JSON pointer leads to. */
export function valueAt(value: Json, path: string): Json | undefined {
  const keys = path.split('/').slice(1)
  return keys.reduce<Json | undefined>((found, key) => {
    const name = key.replaceAll('~1', '/').replaceAll('~0', '~')
    return isObject(found) ? own(found, name) : undefined
  }, value)
}

// What a cluster gets: catalog defaults merged with its overrides and patches, as the bytes of a poll's answer.
import { getOrSet } from './get-or-set.ts'
import { isObject, type Json, type JsonObject, own } from './json.ts'
import {
  type ClusterType,
  type DeliveredType,
  type Delivery,
  type Document,
  type InputField,
  type Reference,
  referencesOf,
  type Types,
} from './resource-type.ts'
import { isPlain } from './state.ts'
import type { Entry, View } from './view.ts'

export const EMPTY_ANSWER = '{"inputs":[]}'

/** The answer to a poll. Equal state gives equal text: order comes from the cluster's list and from the type. */
export function renderInputs(view: View, types: Types, type: DeliveredType, cluster: Entry): string {
  if (cluster.deleted) return EMPTY_ANSWER
  const { delivery } = type
  const { document } = cluster
  const identity = renderIdentity(types.cluster, document)
  const patches = document[types.cluster.patches] as JsonObject | undefined
  let inputs = ''
  for (const reference of referencesOf(document, delivery)) {
    const definition = view.get(type.name, reference.id)?.document
    if (!definition) continue
    const pieces = piecesOf(delivery, definition, reference)
    inputs += `${inputs === '' ? '' : ','}${pieces[0]}`
    let next = 1
    for (const field of delivery.input) {
      if (field.kind === 'cluster') inputs += identity + pieces[next++]
      else if (field.kind === 'patches') inputs += renderPatches(patches, reference.id) + pieces[next++]
    }
  }
  return `{"inputs":[${inputs}]}`
}

/** One line of the list of clusters. */
export function renderClusterLine(cluster: ClusterType, document: Document): string {
  const line: Record<string, Json> = { id: document.id }
  for (const property of cluster.list) line[property] = document[property] as Json
  return JSON.stringify(line)
}

function renderIdentity(cluster: ClusterType, document: Document): string {
  let text = ''
  for (const [name, property] of cluster.input) {
    text += `${text === '' ? '{' : ','}${JSON.stringify(name)}:${JSON.stringify(document[property] ?? '')}`
  }
  return `${text}}`
}

function renderPatches(patches: JsonObject | undefined, id: string): string {
  const values = isObject(patches) ? own(patches, id) : undefined
  return values === undefined ? '{}' : JSON.stringify(values)
}

/** Serialised once per definition, and gone with it: nothing to invalidate. */
const plainPieces = new WeakMap<Document, readonly string[]>()

/** An input's text around the places where the cluster's own identity and patches go. */
function piecesOf(delivery: Delivery, definition: Document, reference: Reference): readonly string[] {
  if (!isPlain(reference, delivery.referenceDefaults)) return buildPieces(delivery, definition, reference)
  return getOrSet(plainPieces, definition, () => buildPieces(delivery, definition, reference))
}

function buildPieces(delivery: Delivery, definition: Document, reference: Reference): string[] {
  const pieces: string[] = []
  let text = `{"id":${JSON.stringify(definition.id)}`
  for (const field of delivery.input) {
    const key = `,${JSON.stringify(field.name)}:`
    if (field.kind === 'cluster' || field.kind === 'patches') {
      pieces.push(text + key)
      text = ''
      continue
    }
    const value = fieldValue(delivery, definition, reference, field)
    if (value !== undefined) text += key + JSON.stringify(value)
  }
  pieces.push(`${text}}`)
  return pieces
}

type DefinedField = Extract<InputField, { kind: 'value' | 'group' }>

function fieldValue(
  delivery: Delivery,
  definition: Document,
  reference: Reference,
  field: DefinedField,
): Json | undefined {
  if (field.kind === 'value') return resolve(delivery, definition, reference, field.source)
  const group: Record<string, Json> = {}
  for (const source of field.sources) {
    const value = resolve(delivery, definition, reference, source)
    if (value !== undefined) group[source] = value
  }
  return group
}

/** The reference's word where it has one, else the definition's, else the type's default. */
function resolve(
  delivery: Delivery,
  definition: Document,
  reference: Reference,
  source: string,
): Json | undefined {
  const referenced = Object.hasOwn(delivery.referenceDefaults, source) || delivery.overrides.includes(source)
  const value = referenced ? own(reference, source) : undefined
  return (
    value ??
    own(definition, source) ??
    own(delivery.referenceDefaults, source) ??
    own(delivery.definitionDefaults, source)
  )
}

// What a cluster gets: catalog defaults merged with its overrides and patches, as the bytes of a poll's answer.
import { type Digest, Digester, digestOf } from '../../base/digest.ts'
import { type Json, type JsonObject, own } from '../../base/json.ts'
import type { Entry, Piece, Pieces, RenderedCluster, RenderedDefinition, View } from '../documents/view.ts'
import {
  type ClusterType,
  type DeliveredType,
  type Delivery,
  type Document,
  type InputField,
  idsIn,
  isOn,
  isPlain,
  patchesOf,
  type ReadField,
  type Reference,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'

const EMPTY_ANSWER: RenderedAnswer = { text: '{"inputs":[]}', digest: digestOf('') }

export interface RenderedAnswer {
  readonly text: string
  /** Equal for equal texts. */
  readonly digest: Digest
}

/** The answer to a poll. Equal state gives equal text: order comes from the cluster's list and from the type. */
export function renderInputs(view: View, types: Types, type: DeliveredType, cluster: Entry): RenderedAnswer {
  if (cluster.deleted) return EMPTY_ANSWER
  const { delivery, name } = type
  const { holes } = delivery
  const references = referencesOf(cluster.document, delivery)
  const { identity, patches } = renderCluster(types, cluster)
  const digest = new Digester().add(identity.digest)
  const on = switchedOn(cluster.document, delivery)
  let inputs = ''
  for (let i = 0; i < references.length; i++) {
    const reference = references[i] as Reference
    const definition = view.get(name, reference.id)
    if (definition === undefined) continue
    const { texts, digest: ofDefinition } = renderDefinition(view, type, definition, reference, on)
    digest.add(ofDefinition)
    if (inputs !== '') inputs += ','
    inputs += texts[0]
    for (let hole = 0; hole < holes.length; hole++) {
      if (holes[hole] === 'cluster') {
        inputs += identity.text
      } else {
        const values = patches[i] as Piece
        inputs += values.text
        digest.add(values.digest)
      }
      inputs += texts[hole + 1]
    }
  }
  return inputs === '' ? EMPTY_ANSWER : { text: `{"inputs":[${inputs}]}`, digest }
}

/** The list of clusters, or a part of it. */
export function renderClusterList(lines: readonly string[]): RenderedAnswer {
  const digest = new Digester()
  for (const line of lines) digest.addText(line)
  return { text: `{"inputs":[${lines.join(',')}]}`, digest }
}

/** One line of the list of clusters. */
export function renderClusterLine(cluster: ClusterType, document: Document): string {
  const line: Record<string, Json> = { id: document.id }
  for (const property of cluster.list) line[property] = document[property] as Json
  return JSON.stringify(line)
}

const NO_VALUES = piece('{}')

function renderCluster(types: Types, cluster: Entry): RenderedCluster {
  if (cluster.rendered) return cluster.rendered as RenderedCluster
  const { document } = cluster
  const identity = identityOf(types.cluster, document)
  const patched = types.patchable ? referencesOf(document, types.patchable.delivery) : []
  const patches = patched.map(({ id }) => {
    const values = patchesOf(types.cluster, document, id)
    return Object.keys(values).length === 0 ? NO_VALUES : piece(JSON.stringify(values))
  })
  const rendered = { identity: piece(JSON.stringify(identity)), patches }
  cluster.rendered = rendered
  return rendered
}

function piece(text: string): Piece {
  return { text, digest: digestOf(text) }
}

/** A reference of a cluster that is switched on, by its id. */
export type Lookup = (id: string) => Reference | undefined

/** A short list is looked through, a long one made a map, once someone asks. */
export function switchedOn(cluster: Document, delivery: Delivery): Lookup {
  const references = referencesOf(cluster, delivery)
  let byId: Map<string, Reference> | undefined
  return (id) => {
    if (references.length > SHORT) byId ??= new Map(references.map((each) => [each.id, each]))
    const found = byId ? byId.get(id) : references.find((each) => each.id === id)
    return found && isOn(delivery, found) ? found : undefined
  }
}

const SHORT = 50

/**
 * What an input names to wait for and would wait for in vain: its cluster lacks it or has switched it off, or it is
 * delivered in a way that cannot be waited for.
 */
export function absentFor(
  view: View,
  { name, delivery }: DeliveredType,
  definition: Document,
  reference: Reference,
  on: Lookup,
): readonly string[] {
  const { overrides, waitsFor, sortOf } = delivery
  const absent: string[] = []
  const read = (document: Document, own: Reference, field: string): Json | undefined =>
    overrides.includes(field) ? resolve(delivery, document, own, field) : document[field]
  for (const field of waitsFor) {
    for (const id of idsIn(read(definition, reference, field))) {
      const other = on(id)
      const its = other && view.get(name, id)?.document
      const isAlike =
        its &&
        sortOf((name) => read(its, other, name)) === sortOf((name) => read(definition, reference, name))
      if (!isAlike) absent.push(id)
    }
  }
  return absent
}

/** Kept for the plain reference only: that one object is shared by all clusters that override nothing. */
function renderDefinition(
  view: View,
  type: DeliveredType,
  definition: Entry,
  reference: Reference,
  on: Lookup,
): Pieces {
  const { delivery } = type
  const { document } = definition
  let kept = definition.rendered as RenderedDefinition | undefined
  if (kept?.reference !== reference) {
    if (!isPlain(reference, delivery.referenceDefaults)) {
      return buildPieces(delivery, document, reference, absentFor(view, type, document, reference, on))
    }
    const waits = delivery.waitsFor.some((field) => idsIn(document[field]).length > 0)
    kept = { reference, waits, pieces: new Map() }
    definition.rendered = kept
  }
  const absent = kept.waits ? absentFor(view, type, document, reference, on) : NOBODY
  const key = absent.length === 0 ? '' : absent.join(',')
  const pieces = kept.pieces.get(key) ?? buildPieces(delivery, document, reference, absent)
  if (kept.pieces.size < MAX_VARIANTS) kept.pieces.set(key, pieces)
  return pieces
}

const NOBODY: readonly string[] = []
/** Of one that waits for many there could be any number. */
const MAX_VARIANTS = 32

/** An input's text around its holes. */
function buildPieces(
  delivery: Delivery,
  definition: Document,
  reference: Reference,
  absent: readonly string[],
): Pieces {
  const texts: string[] = []
  let parts = ['{"id":', JSON.stringify(definition.id)]
  // Joined, not added: V8 keeps a sum of strings as a tree, which would be walked anew by every poll.
  const end = (): void => {
    texts.push(parts.join(''))
    parts = []
  }
  for (const field of delivery.input) {
    const key = `,${JSON.stringify(field.name)}:`
    if (field.kind === 'value' || field.kind === 'group') {
      const value = fieldValue(delivery, definition, reference, field, absent)
      if (value !== undefined) parts.push(key, JSON.stringify(value))
    } else {
      parts.push(key)
      end()
    }
  }
  parts.push('}')
  end()
  return { texts, digest: digestOf(texts.join('\0')) }
}

/** A cluster, one of its references, and what it has switched on. */
export type Holding = readonly [cluster: Document, reference: Reference, on: Lookup]

/** One input as a value. */
export function resolveInput(
  types: Types,
  view: View,
  type: DeliveredType,
  definition: Document,
  [cluster, reference, on]: Holding,
): JsonObject {
  const { delivery } = type
  const input: Record<string, Json> = { id: definition.id }
  const absent = absentFor(view, type, definition, reference, on)
  for (const field of delivery.input) {
    const value =
      field.kind === 'value' || field.kind === 'group'
        ? fieldValue(delivery, definition, reference, field, absent)
        : field.kind === 'cluster'
          ? identityOf(types.cluster, cluster)
          : patchesOf(types.cluster, cluster, definition.id)
    if (value !== undefined) input[field.name] = value
  }
  return input
}

/** What every input says of its cluster. */
function identityOf(cluster: ClusterType, document: Document): JsonObject {
  return Object.fromEntries(cluster.input.map(([name, property]) => [name, document[property] ?? '']))
}

type DefinedField = Extract<InputField, { kind: 'value' | 'group' }>

function fieldValue(
  delivery: Delivery,
  definition: Document,
  reference: Reference,
  field: DefinedField,
  absent: readonly string[],
): Json | undefined {
  const said = (source: string): Json | undefined => {
    const value = resolve(delivery, definition, reference, source)
    return absent.length > 0 && delivery.waitsFor.includes(source) ? without(value, absent) : value
  }
  if (field.kind === 'value') return said(field.source)
  const group: Record<string, Json> = {}
  for (const source of field.sources) {
    const value = said(source)
    if (value !== undefined) group[source] = value
  }
  return group
}

function without(value: Json | undefined, absent: readonly string[]): Json | undefined {
  const gone: ReadonlySet<Json> = new Set(absent)
  if (Array.isArray(value)) return value.filter((id) => !gone.has(id))
  return value === undefined || !gone.has(value) ? value : undefined
}

/** Reads the fields of a definition as a cluster gets them. */
export function readerOf(delivery: Delivery, definition: Document, reference: Reference): ReadField {
  return (field) => (field === 'id' ? definition.id : resolve(delivery, definition, reference, field))
}

function resolve(
  delivery: Delivery,
  definition: Document,
  reference: Reference,
  source: string,
): Json | undefined {
  const holder = holderOf(delivery, definition, reference, source)
  return holder && own(holder, source)
}

/** Whose word counts: the reference's where it has one, else the definition's, else the type's default. */
export function holderOf(
  delivery: Delivery,
  definition: Document,
  reference: Reference,
  source: string,
): JsonObject | undefined {
  const { referenceDefaults, definitionDefaults, overrides } = delivery
  const says = (holder: JsonObject): boolean => (own(holder, source) ?? null) !== null
  const referenced = Object.hasOwn(referenceDefaults, source) || overrides.includes(source)
  if (referenced && says(reference)) return reference
  return [definition, referenceDefaults, definitionDefaults].find(says)
}

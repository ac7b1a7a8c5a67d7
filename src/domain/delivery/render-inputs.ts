// What a cluster gets: catalog defaults merged with its overrides and patches, as the bytes of a poll's answer.
import { type Digest, Digester, digestOf, hexOf } from '../../base/digest.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { Entry } from '../documents/view.ts'
import {
  type ClusterType,
  type DeliveredType,
  type Delivery,
  type Document,
  type InputField,
  isEnabled,
  patchesOf,
  type Reference,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'
import {
  type Dependent,
  dependentOf,
  type FindEnabled,
  placesOf,
  unmetAmong,
  unmetDependencies,
} from './dependencies.ts'
import { type Fragment, identityOf, NO_VALUES, renderCluster } from './rendered-cluster.ts'
import { resolveField } from './resolve-field.ts'
import type { ServedView } from './served-view.ts'

/** The answer without inputs. */
export const EMPTY_ANSWER: RenderedAnswer = { text: '{"inputs":[]}', digest: digestOf('') }

export interface RenderedAnswer {
  readonly text: string
  /** Equal for equal texts. */
  readonly digest: Digest
}

/** The text of an input, cut at its placeholders. */
interface Fragments {
  readonly texts: readonly string[]
  readonly digest: Digest
}

/** What entries of definitions keep in `rendered`: what references make of them. */
interface RenderedDefinition {
  /** By the reference: clusters whose references are equal share one object. */
  readonly variants: Map<Reference, Variant>
}

/** A definition as references that say the same have it. */
interface Variant extends Dependent {
  /** Without unmet dependencies, as it mostly is. */
  met: Fragments | undefined
  /** By the unmet dependencies, joined by commas. */
  unmet: Map<string, Fragments> | undefined
}

/** One input of an answer, before it is text. */
interface AnswerInput {
  readonly reference: Reference
  readonly texts: readonly string[]
  /** The cluster's values for it. */
  readonly values: Fragment
  /** Equal for inputs that are equal but for `digest` and `answer_digest`. */
  readonly digest: Digest
}

/** What a cluster is served of one type, as digests. */
export interface AnswerDigests {
  /** Of the whole answer; it says nothing where there are no inputs. */
  readonly digest: Digest
  readonly inputs: readonly Pick<AnswerInput, 'reference' | 'digest'>[]
}

/** Returns the digests that `renderInputs` writes into an answer. */
export function digestInputs(
  view: ServedView,
  types: Types,
  type: DeliveredType,
  cluster: Entry,
): AnswerDigests {
  return cluster.deleted ? NO_INPUTS : collectInputs(view, types, type, cluster)
}

const NO_INPUTS: AnswerDigests = { digest: EMPTY_ANSWER.digest, inputs: [] }

/** The answer to a poll. Equal state gives equal text: order comes from the cluster's list and from the type. */
export function renderInputs(
  view: ServedView,
  types: Types,
  type: DeliveredType,
  cluster: Entry,
): RenderedAnswer {
  if (cluster.deleted) return EMPTY_ANSWER
  const { placeholders } = type.delivery
  const { identity, inputs, digest } = collectInputs(view, types, type, cluster)
  if (inputs.length === 0) return EMPTY_ANSWER
  const end = `","answer_digest":"${hexOf(digest)}"}`
  const next = `${end},`
  let text = '{"inputs":['
  for (let i = 0; i < inputs.length; i++) {
    const { texts, values, digest: ofInput } = inputs[i] as AnswerInput
    text += texts[0]
    for (let place = 0; place < placeholders.length; place++) {
      text += placeholders[place] === 'cluster' ? identity.text : values.text
      text += texts[place + 1]
    }
    text += hexOf(ofInput)
    text += i < inputs.length - 1 ? next : end
  }
  return { text: `${text}]}`, digest }
}

interface Collected extends AnswerDigests {
  readonly identity: Fragment
  readonly inputs: readonly AnswerInput[]
}

function collectInputs(view: ServedView, types: Types, type: DeliveredType, cluster: Entry): Collected {
  const { delivery, name } = type
  const references = referencesOf(cluster.document, delivery)
  const isPatched = delivery.placeholders.includes('patches')
  const { identity, patches } = renderCluster(types, cluster, isPatched ? references.length : 0)
  const definitions = references.map(({ id }) => view.get(name, id))
  const variants = references.map((reference, i) => {
    const definition = definitions[i]
    return definition && variantOf(delivery, definition, reference)
  })
  const place = placesOf(references)
  const findEnabled = (id: string): Variant | undefined => {
    const at = place(id)
    const reference = references[at]
    return reference && isEnabled(delivery, reference) ? variants[at] : undefined
  }
  const digest = new Digester()
  const inputs: AnswerInput[] = []
  for (let i = 0; i < references.length; i++) {
    const reference = references[i] as Reference
    const variant = variants[i]
    if (variant === undefined) continue
    const unmet = unmetAmong(variant, findEnabled)
    const { document } = definitions[i] as Entry
    const { texts, digest: ofDefinition } = fragmentsOf(delivery, document, reference, variant, unmet)
    const values = isPatched ? (patches[i] as Fragment) : NO_VALUES
    const ofInput = new Digester().add(ofDefinition).add(identity.digest).add(values.digest)
    digest.add(ofInput)
    inputs.push({ reference, texts, values, digest: ofInput })
  }
  return { identity, digest, inputs }
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

/** What is kept belongs to the definition's version, and goes with it. */
function variantOf(delivery: Delivery, definition: Entry, reference: Reference): Variant {
  definition.rendered ??= { variants: new Map() } satisfies RenderedDefinition
  const { variants } = definition.rendered as RenderedDefinition
  const known = variants.get(reference)
  if (known) return known
  const dependent = dependentOf(delivery, definition.document, reference)
  const variant: Variant = { ...dependent, met: undefined, unmet: undefined }
  if (variants.size === MAX_VARIANTS) variants.delete(variants.keys().next().value as Reference)
  variants.set(reference, variant)
  return variant
}

/** Clusters could override a definition in any number of ways; the oldest one goes. */
const MAX_VARIANTS = 256
/** A definition with many dependencies could have any number of sets of unmet ones. */
const MAX_UNMET = 32

function fragmentsOf(
  delivery: Delivery,
  definition: Document,
  reference: Reference,
  variant: Variant,
  unmet: readonly string[],
): Fragments {
  if (unmet.length === 0) {
    variant.met ??= buildFragments(delivery, definition, reference, unmet)
    return variant.met
  }
  variant.unmet ??= new Map()
  const key = unmet.join(',')
  const known = variant.unmet.get(key)
  if (known) return known
  const built = buildFragments(delivery, definition, reference, unmet)
  if (variant.unmet.size < MAX_UNMET) variant.unmet.set(key, built)
  return built
}

/** Renders an input, all but its placeholders. */
function buildFragments(
  delivery: Delivery,
  definition: Document,
  reference: Reference,
  unmet: readonly string[],
): Fragments {
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
      const value = fieldValue(delivery, definition, reference, field, unmet)
      if (value !== undefined) parts.push(key, JSON.stringify(value))
    } else {
      parts.push(key)
      end()
    }
  }
  // Both digests follow, when they are known.
  parts.push(',"digest":"')
  end()
  return { texts, digest: digestOf(texts.join('\0')) }
}

/** One reference of a cluster, with the cluster's enabled references of that type. */
export interface Assignment {
  readonly cluster: Document
  readonly reference: Reference
  readonly enabled: FindEnabled
}

/** Returns one input as a value. */
export function resolveInput(
  types: Types,
  view: ServedView,
  type: DeliveredType,
  definition: Document,
  { cluster, reference, enabled }: Assignment,
): JsonObject {
  const { delivery } = type
  const input: Record<string, Json> = { id: definition.id }
  const unmet = unmetDependencies(view, type, definition, reference, enabled)
  for (const field of delivery.input) {
    const value =
      field.kind === 'value' || field.kind === 'group'
        ? fieldValue(delivery, definition, reference, field, unmet)
        : field.kind === 'cluster'
          ? identityOf(types.cluster, cluster)
          : patchesOf(types.cluster, cluster, definition.id)
    if (value !== undefined) input[field.name] = value
  }
  return input
}

type DefinedField = Extract<InputField, { kind: 'value' | 'group' }>

function fieldValue(
  delivery: Delivery,
  definition: Document,
  reference: Reference,
  field: DefinedField,
  unmet: readonly string[],
): Json | undefined {
  const read = (source: string): Json | undefined => {
    const value = resolveField(delivery, definition, reference, source)
    return unmet.length > 0 && delivery.waitsFor.includes(source) ? without(value, unmet) : value
  }
  if (field.kind === 'value') return read(field.source)
  const group: Record<string, Json> = {}
  for (const source of field.sources) {
    const value = read(source)
    if (value !== undefined) group[source] = value
  }
  return group
}

function without(value: Json | undefined, ids: readonly string[]): Json | undefined {
  const excluded: ReadonlySet<Json> = new Set(ids)
  if (Array.isArray(value)) return value.filter((id) => !excluded.has(id))
  return value === undefined || !excluded.has(value) ? value : undefined
}

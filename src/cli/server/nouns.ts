// What the command line knows of a type: its names, its schema, and how it reaches clusters.
import type { Noun } from '../../api/noun.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import { withArticle } from '../../base/sentences.ts'
import type { WriteMethod } from '../../domain/types/resource-type.ts'

export type { Noun }

/** Whether a value has the members that every command relies on. */
export function isNoun(value: unknown): value is Noun {
  if (!isObject(value)) return false
  const { name, singular, noun, description, schema, filters, references } = value
  const texts = [name, singular, noun, description]
  return (
    texts.every((text) => typeof text === 'string') &&
    isObject(schema) &&
    isObject(references) &&
    Array.isArray(filters)
  )
}

/** The nouns of an OpenAPI document, with schemas resolved; undefined when it has none. */
export function readNouns(openapi: unknown): readonly Noun[] | undefined {
  const document = openapi as {
    'x-flux-types'?: readonly Noun[]
    components?: { schemas?: Record<string, SchemaObject> }
  } | null
  const schemas = document?.components?.schemas
  if (!Array.isArray(document?.['x-flux-types']) || !schemas) return undefined
  const resolve = (schema: SchemaObject): SchemaObject => {
    const name =
      typeof schema.$ref === 'string' ? schema.$ref.replace('#/components/schemas/', '') : undefined
    const { properties, items, ...rest } = (name === undefined ? schema : schemas[name]) ?? {}
    return {
      ...rest,
      ...(properties && {
        properties: Object.fromEntries(
          Object.entries(properties).map(([field, child]) => [field, resolve(child)]),
        ),
      }),
      ...(items && { items: resolve(items) }),
    }
  }
  // Types of bookkeeping come last.
  const ordered = document['x-flux-types'].toSorted((a, b) => Number(a.bookkeeping) - Number(b.bookkeeping))
  const nouns = ordered.map((noun: Noun) => ({
    ...noun,
    schema: resolve(noun.schema),
    ...(noun.delivery && { delivery: { ...noun.delivery, reference: resolve(noun.delivery.reference) } }),
  }))
  return nouns.every(isNoun) && nouns.some(({ cluster }) => cluster) ? nouns : undefined
}

/** Short names, as kubectl has them. */
const SHORT: Readonly<Record<string, string>> = { namespaces: 'ns', rolebindings: 'rb' }

/** Every name that a noun has on the command line, the proper one first. */
export function namesOf({ name, noun, singular }: Noun): string[] {
  const whole = singular.replaceAll(' ', '-')
  const names = [noun, whole, name, name.replaceAll('_', '-'), pluralOf(noun), pluralOf(whole)]
  const short = Object.hasOwn(SHORT, name) ? [SHORT[name] as string] : []
  return [...new Set([...names, ...short])]
}

function pluralOf(noun: string): string {
  return /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : noun.endsWith('s') ? noun : `${noun}s`
}

/** Which document something is about. */
export interface DocumentName {
  readonly type: string
  readonly id: string
}

/** The name of a document: `namespaces/team-a`. */
export function nameOf({ type, id }: DocumentName): string {
  return `${type}/${id}`
}

/** A document as files of a set hold it. */
export function withType({ name, schema }: Noun, document: JsonObject): JsonObject {
  return Object.hasOwn(schema.properties ?? {}, 'type')
    ? { type: name, document }
    : { type: name, ...document }
}

/** The ids of a type that are assigned to a cluster. */
export function assignedIds({ delivery }: Noun, cluster: JsonObject): string[] {
  const references = (cluster[delivery?.assigned_by ?? ''] ?? []) as readonly { readonly id: string }[]
  return references.map(({ id }) => id)
}

/** Whether clusters are served what documents of a type hold, so that changes of them can be rolled out. */
export function isServed({ cluster, delivery }: Noun): boolean {
  return cluster !== undefined || delivery !== undefined
}

/** Whether the routes of a noun have a method. */
export function takes({ methods }: Noun, method: WriteMethod): boolean {
  return methods?.includes(method) ?? true
}

export function describeMethods({ name, methods = [] }: Noun): string {
  return `the server takes only ${methods.join(', ')} of ${name}`
}

/** The noun in a sentence, with its article. */
export function aNoun({ singular }: Noun): string {
  return withArticle(singular)
}

/** The name of a type in routes, from any of its names; a name that is not known is returned as it is. */
export function typeNamed(nouns: readonly Noun[], text: string): string {
  return nouns.find((noun) => namesOf(noun).includes(text))?.name ?? text
}

export function clusterNoun(nouns: readonly Noun[]): Noun & Required<Pick<Noun, 'cluster'>> {
  return nouns.find((noun) => noun.cluster) as Noun & Required<Pick<Noun, 'cluster'>>
}

/** The fields of a document, without its id and, on clusters, without the lists of what is assigned. */
export function fieldsOf(noun: Noun, nouns: readonly Noun[]): [name: string, schema: SchemaObject][] {
  const lists = noun.cluster ? nouns.flatMap(({ delivery }) => delivery?.assigned_by ?? []) : []
  return Object.entries(noun.schema.properties ?? {}).filter(
    ([name]) => name !== 'id' && !lists.includes(name),
  )
}

/** The field of a type that holds its labels. */
export function labelField({ cluster, schema }: Noun): string | undefined {
  if (cluster) return cluster.labels
  return schema.properties?.labels?.type === 'object' ? 'labels' : undefined
}

// Examples in the description of the API, from what a type's file says of its fields: the service takes each of them.
import type { Json, JsonObject } from '../../base/json.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import type { RegisteredDelivery, RegisteredType, RegisteredTypes } from '../../registry/build-types.ts'
import { matchesFormat, schemaOf } from '../../registry/validator.ts'

const BY_FORMAT: Readonly<Record<string, string>> = {
  'dns-label': 'example',
  'dns-subdomain': 'example',
  hostname: 'cluster-01.k8s.example.com',
  'label-key': 'team',
  'label-value': 'platform',
  'role-name': 'view',
  'value-path': 'replicaCount',
  uri: 'https://example.com/path',
  'date-time': '2026-01-31T12:00:00Z',
}

/** What a field may hold: the example of its schema, or something plain that fits; undefined where nothing plain does. */
export function exampleOf(schema: SchemaObject): Json | undefined {
  const given = givenIn(schema)
  if (given !== undefined) return given
  switch ([schema.type].flat()[0]) {
    case 'string':
      return exampleText(schema)
    case 'integer':
    case 'number':
      return exampleNumber(schema)
    case 'boolean':
      return true
    case 'array':
      return exampleList(schema)
    case 'object':
      return exampleObject(schema)
    default:
      return undefined
  }
}

/** A copied type file may have an example that is not in its changed enum; such an example is ignored. */
function givenIn({ example, default: usual, const: only, enum: values }: SchemaObject): Json | undefined {
  const given = [example, usual, only, values?.[0]].find(
    (value) => value !== undefined && (values?.includes(value) ?? true),
  )
  return given as Json | undefined
}

/** The first text that the schema allows. */
function exampleText(schema: SchemaObject, ...preferred: string[]): string | undefined {
  const { format = '', pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema
  const expression = pattern === undefined ? undefined : new RegExp(String(pattern), 'u')
  const texts = [...preferred, (BY_FORMAT[format] ?? 'text').padEnd(Number(minLength), 'x')]
  return texts.find(
    (text) =>
      text.length >= Number(minLength) &&
      text.length <= Number(maxLength) &&
      (expression?.test(text) ?? true) &&
      (schemaOf(format) === undefined || matchesFormat(format, text)),
  )
}

function exampleNumber(schema: SchemaObject): number {
  const { minimum = 1, maximum = Number.MAX_SAFE_INTEGER } = schema as { minimum?: number; maximum?: number }
  return Math.min(Math.max(1, minimum), maximum)
}

function exampleList({ items, minItems = 0 }: SchemaObject): Json | undefined {
  if (minItems === 0) return []
  const item = items && exampleOf(items)
  return item === undefined || minItems !== 1 ? undefined : [item]
}

/** With the fields that must be there, and those that have an example of their own. */
function exampleObject({ properties = {}, required = [] }: SchemaObject): JsonObject | undefined {
  const fields = Object.entries(properties)
    .filter(([name, child]) => required.includes(name) || child.example !== undefined)
    .map(([name, child]) => [name, exampleOf(child)] as const)
  return fields.every(([, value]) => value !== undefined)
    ? (Object.fromEntries(fields) as JsonObject)
    : undefined
}

/** The id that every example of a type has. */
export function exampleId({ schema, singular }: RegisteredType): string | undefined {
  const { id = {} } = schema.properties ?? {}
  const named = `${singular.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}-01`
  return (givenIn(id) as string | undefined) ?? exampleText(id, named)
}

/** A document as it may be created; undefined where the type's file leaves too much open. */
export function exampleDocument(types: RegisteredTypes, type: RegisteredType): JsonObject | undefined {
  const { id: _id, ...properties } = type.schema.properties ?? {}
  const required = (type.schema.required ?? []).filter((name) => name !== 'id')
  const names = exampleNames(types, type)
  const schemas = Object.entries(properties).map(([name, child]): [string, SchemaObject] => {
    const named = names[name]
    return [name, named === undefined ? child : { ...child, example: named }]
  })
  const fields = exampleObject({ required, properties: Object.fromEntries(schemas) })
  const id = exampleId(type)
  if (!fields || id === undefined) return undefined
  const document = { id, ...fields }
  return type.check(type.normalise(document)).length === 0 ? document : undefined
}

/** What an example has to name so that it fits the others: the documents that it refers to, by their ids. */
function exampleNames({ delivered, cluster, get }: RegisteredTypes, type: RegisteredType): JsonObject {
  const references = type.references.map(({ field, type: name }): [string, Json | undefined] => {
    const id = exampleId(get(name) as RegisteredType)
    const isList = type.schema.properties?.[field]?.type === 'array'
    // Nothing refers to itself.
    if (name === type.name || id === undefined) return [field, isList ? [] : undefined]
    return [field, isList ? [id] : id]
  })
  const assigned = delivered.map((other): [string, Json] => [
    other.delivery.assignedBy,
    [{ id: exampleId(other) ?? '' }],
  ])
  const named = [...references, ...(type === cluster.type ? assigned : [])]
  return Object.fromEntries(named.filter(([, value]) => value !== undefined)) as JsonObject
}

/** One field of a document, for a write that changes no other: an optional one where there is one. */
export function exampleChange(types: RegisteredTypes, type: RegisteredType): JsonObject {
  const { id: _id, ...fields } = exampleDocument(types, type) ?? {}
  const { required = [] } = type.schema
  const names = Object.keys(fields).toSorted(
    (a, b) => Number(required.includes(a)) - Number(required.includes(b)),
  )
  return names[0] === undefined ? {} : { [names[0]]: fields[names[0]] as Json }
}

/** How an assigned document may differ on one cluster, beside its id. */
export function exampleOverride(type: RegisteredDelivery): JsonObject {
  const { delivery, referenceSchema } = type
  const { id: _id, ...properties } = referenceSchema?.properties ?? {}
  const [named] = Object.entries(properties).filter(([, child]) => child.example !== undefined)
  const override = named ? { [named[0]]: named[1].example as Json } : {}
  const reference = { id: exampleId(type) ?? '', ...override }
  return delivery.checkReference(delivery.normaliseReference(reference)).length === 0 ? override : {}
}

/** A cluster's values for its example of a component. */
export function exampleValues({ cluster, patchable, get }: RegisteredTypes): JsonObject {
  const { example } = get(cluster.type.name)?.schema.properties?.[cluster.patches] ?? {}
  const id = patchable && exampleId(get(patchable.name) as RegisteredType)
  const values = (example as Readonly<Record<string, JsonObject>> | undefined)?.[id ?? '']
  return values && cluster.checkValues(values).length === 0 ? values : {}
}

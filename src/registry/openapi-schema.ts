// Schemas as clients read them: what our formats mean, and what may be sent where a document is answered.
import { FORBIDDEN_KEYS } from '../domain/json.ts'
import { MAX_OPERATIONS } from '../domain/json-patch.ts'
import { PLAN } from './openapi-operation.ts'
import type { SchemaObject } from './resource-file.ts'
import { schemaOf, WRITABLE, WRITABLE_KEY } from './validator.ts'

type Properties = Readonly<Record<string, SchemaObject>>
type Shape = (schema: SchemaObject) => SchemaObject

/** A document as it is answered. */
export function published(schema: SchemaObject): SchemaObject {
  return reshape(schema, published)
}

/** As it is sent: null stands for an optional field that is left out. */
export function sent(schema: SchemaObject): SchemaObject {
  const { required = [], properties } = schema
  const { then: consequence, ...whole } = reshape(schema, sent)
  return {
    ...whole,
    ...(properties && { properties: optional(whole.properties ?? {}, required) }),
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    ...(consequence !== undefined && { then: sentThen(consequence as SchemaObject, required) }),
  }
}

/** A condition asks for a value, and null is none. */
function sentThen(consequence: SchemaObject, required: readonly string[]): SchemaObject {
  const { required: asked = [], properties = {} } = consequence
  const values = Object.fromEntries(
    asked.map((name) => [name, { ...properties[name], not: { type: 'null' } }]),
  )
  return { ...consequence, properties: { ...optional(properties, [...required, ...asked]), ...values } }
}

function optional(properties: Properties, required: readonly string[]): Properties {
  return mapValues(properties, (child, name) => (required.includes(name) ? child : nullable(child)))
}

/** As it is merged (RFC 7396): any field or none, and null removes what need not be there, or was not. */
export function merged(schema: SchemaObject): SchemaObject {
  const { required = [], if: _if, then: _then, default: _default, ...rest } = schema
  if (!rest.properties && typeof rest.additionalProperties !== 'object') return sent(rest)
  const { properties, propertyNames, additionalProperties, ...whole } = reshape(rest, merged)
  const removing = { type: 'null' }
  const key = schemaOf((rest.propertyNames as SchemaObject | undefined)?.format)?.pattern ?? ''
  return {
    ...whole,
    ...(properties && {
      properties: optional(
        properties,
        required.filter((name) => name !== 'id'),
      ),
    }),
    propertyNames: anyKey(),
    ...(typeof additionalProperties === 'object' && {
      patternProperties: { [String(key)]: nullable(additionalProperties) },
    }),
    additionalProperties: removing,
  }
}

/** No text of a request may hold a NUL. */
const TEXT = '^[^\\u0000]*$'

/** The body of a request that is no document, with what its texts and its plan look like. */
export function requested(schema: SchemaObject): SchemaObject {
  const { type, properties, items, pattern = TEXT } = schema
  const isText = type === 'string' && schema.enum === undefined && schema.format === undefined
  return {
    ...(type === 'integer' && { maximum: Number.MAX_SAFE_INTEGER }),
    ...schema,
    ...(isText && { pattern }),
    ...(items && { items: requested(items) }),
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, child]) => [
          name,
          name === 'plan' ? { ...child, pattern: PLAN } : requested(child),
        ]),
      ),
    }),
  }
}

/** A JSON patch (RFC 6902). */
export function jsonPatchSchema(): SchemaObject {
  const pointer = { type: 'string', pattern: '^(?:/(?:[^~/]|~[01])*)*$', example: '/labels/team' }
  const operation = (ops: readonly string[], more: Properties): SchemaObject => ({
    type: 'object',
    required: ['op', 'path', ...Object.keys(more)],
    properties: { op: { type: 'string', enum: ops }, path: pointer, ...more },
  })
  return {
    description:
      'RFC 6902. What the operations add, copy and move may come to three times what a document may have.',
    type: 'array',
    maxItems: MAX_OPERATIONS,
    items: {
      oneOf: [
        operation(['add', 'replace', 'test'], { value: {} }),
        operation(['remove'], {}),
        operation(['move', 'copy'], { from: pointer }),
      ],
    },
  }
}

/** Without some of the fields that must be there. */
export function without(schema: SchemaObject, ...names: string[]): SchemaObject {
  return { ...schema, required: (schema.required ?? []).filter((name) => !names.includes(name)) }
}

function nullable(schema: SchemaObject): SchemaObject {
  const { type, enum: values } = schema
  return {
    ...schema,
    ...(type !== undefined && { type: [type, 'null'].flat() }),
    ...(values && { enum: [...values, null] }),
  }
}

/** The same schema with the schemas below it reshaped, and its own text and numbers spelt out. */
function reshape(schema: SchemaObject, below: Shape): SchemaObject {
  const { properties, items, additionalProperties, propertyNames, then: consequence } = schema
  const isMap = typeof additionalProperties === 'object'
  return {
    ...spelt(schema),
    ...(properties && { properties: mapValues(properties, (child) => below(child)) }),
    ...(items && { items: below(items) }),
    ...(isMap && {
      additionalProperties: below(additionalProperties),
      propertyNames: { ...spelt((propertyNames ?? {}) as SchemaObject), ...anyKey(propertyNames) },
    }),
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    ...(consequence !== undefined && { then: reshape(consequence as SchemaObject, below) }),
  }
}

/** What no object may have as a key, however open it is. */
function anyKey(named?: unknown): SchemaObject {
  return { ...(named === undefined && { pattern: WRITABLE_KEY }), not: { enum: [...FORBIDDEN_KEYS] } }
}

function spelt(schema: SchemaObject): SchemaObject {
  const { type, format, pattern, enum: values } = schema
  const meant = schemaOf(format)
  if (meant) return { ...meant, ...schema }
  if (type === 'string' && values === undefined)
    return pattern === undefined
      ? { ...schema, pattern: WRITABLE }
      : { ...schema, allOf: [{ pattern: WRITABLE }] }
  if (type === 'integer')
    return { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER, ...schema }
  return schema
}

function mapValues(
  object: Properties,
  map: (value: SchemaObject, name: string) => SchemaObject,
): Record<string, SchemaObject> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value, name)]))
}

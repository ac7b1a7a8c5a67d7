// Schemas as clients read them: documents as they are returned and as they are sent, with our formats spelt out.
import { PLAN_PATTERN } from '../../api/limits.ts'
import { FORBIDDEN_KEYS } from '../../base/json.ts'
import { MAX_OPERATIONS } from '../../base/json-patch.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import { schemaOf, WRITABLE, WRITABLE_KEY } from '../../registry/validator.ts'
import { TEXT } from '../request/parameters.ts'
import { exampleOf } from './openapi-example.ts'

type Properties = Readonly<Record<string, SchemaObject>>
type Shape = (schema: SchemaObject) => SchemaObject

/** A document as it is returned. */
export function published(schema: SchemaObject): SchemaObject {
  return reshape(schema, published)
}

/**
 * As it is sent: null stands for an optional field that is left out. Defaults are in the text, since generated clients
 * take a field with a default for one that must be there, or cannot read a default beside null.
 */
export function sent(schema: SchemaObject): SchemaObject {
  const { required = [], properties } = schema
  const { then: consequence, default: usual, ...whole } = reshape(schema, sent)
  return {
    ...whole,
    ...(usual !== undefined && { description: withDefault(whole.description, usual) }),
    ...(properties && { properties: optional(whole.properties ?? {}, required) }),
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    ...(consequence !== undefined && { then: sentThen(consequence as SchemaObject, required) }),
  }
}

function withDefault(description: string | undefined, usual: unknown): string {
  return [description, `Default: ${JSON.stringify(usual)}.`].filter(Boolean).join(' ')
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

/**
 * A document as a merge patch (RFC 7396): any field or none, and null removes an optional field. Null for a field that
 * the type does not have is accepted too, but not described: generated clients could then hold nothing but nulls.
 */
export function merged(schema: SchemaObject): SchemaObject {
  const { required = [], if: _if, then: _then, default: _default, ...rest } = schema
  const isMap = typeof rest.additionalProperties === 'object'
  if (!rest.properties && !isMap) return sent(rest)
  const { properties, additionalProperties, ...whole } = reshape(rest, merged)
  const kept = required.filter((name) => name !== 'id')
  return {
    ...whole,
    ...(properties && { properties: optional(properties, kept) }),
    additionalProperties: isMap ? nullable(additionalProperties as SchemaObject) : false,
  }
}

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
          name === 'plan' ? { ...child, pattern: PLAN_PATTERN } : requested(child),
        ]),
      ),
    }),
  }
}

/** The schemas of a JSON patch (RFC 6902), and of one of its operations. */
export function jsonPatchSchemas(): Record<string, SchemaObject> {
  const pointer = { type: 'string', pattern: '^(?:/(?:[^~/]|~[01])*)*$', example: '/labels/team' }
  const operation = (ops: readonly string[], more: Properties): SchemaObject => ({
    type: 'object',
    required: ['op', 'path', ...Object.keys(more)],
    properties: { op: { type: 'string', enum: ops }, path: pointer, ...more },
  })
  return {
    json_patch: {
      description:
        'RFC 6902. The operations may add, copy and move three times the size of a document in all.',
      type: 'array',
      maxItems: MAX_OPERATIONS,
      items: { $ref: '#/components/schemas/json_patch_operation' },
    },
    json_patch_operation: {
      oneOf: [
        operation(['add', 'replace', 'test'], { value: {} }),
        operation(['remove'], {}),
        operation(['move', 'copy'], { from: pointer }),
      ],
    },
  }
}

/**
 * A JSON patch as one of several bodies. openapi-python-client tells bodies apart by code that fails on lists; a composed
 * schema it cannot read, and leaves out.
 */
export function jsonPatchBody(): SchemaObject {
  return { allOf: [{ $ref: '#/components/schemas/json_patch' }, { maxItems: MAX_OPERATIONS }] }
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
    ...shown(spelt(schema)),
    ...(properties && { properties: mapValues(properties, (child) => below(child)) }),
    ...(items && { items: below(items) }),
    ...(isMap && {
      additionalProperties: below(additionalProperties),
      propertyNames: { ...spelt((propertyNames ?? {}) as SchemaObject), ...anyKey(propertyNames) },
    }),
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    ...(consequence !== undefined && { then: reshapeThen(consequence as SchemaObject, below) }),
  }
}

/** What it asks for is one of its properties, which tools that check descriptions look for. */
function reshapeThen(consequence: SchemaObject, below: Shape): SchemaObject {
  const { required, properties, ...rest } = reshape(consequence, below)
  if (!required) return { ...rest, ...(properties && { properties }) }
  const asked = Object.fromEntries(required.map((name) => [name, {}]))
  return { ...rest, required, properties: { ...asked, ...properties } }
}

/** Texts and numbers have an example: readers of the description would make one up from the pattern or the maximum. */
function shown(schema: SchemaObject): SchemaObject {
  const { type } = schema
  const isPlain = type === 'string' || type === 'integer' || type === 'number'
  const example = isPlain ? exampleOf(schema) : undefined
  return example === undefined ? schema : { ...schema, example }
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

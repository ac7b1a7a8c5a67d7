// The JSON Schemas of a type: of a document, of its id, and of a reference to it from a cluster.
import type { SchemaObject } from '../base/json-schema.ts'
import { fluxOf } from './flux-section.ts'
import type { ResourceFile } from './resource-file.ts'
import { MAX_BYTES } from './validator.ts'

export function documentSchema(file: ResourceFile, assignable: readonly ResourceFile[]): SchemaObject {
  const { key, items } = file.schema
  const { properties: _own, required = [], additionalProperties: _open, ...rest } = items
  const { id: _key, ...properties } = propertiesOf(file)
  const lists = assignable.flatMap((other): [string, SchemaObject][] => {
    const list = fluxOf(other).assigned_by
    const description = `Assignments of the cluster: ${other.kind}, in order.`
    return list ? [[list, { description, type: 'array', items: referenceSchema(other), default: [] }]] : []
  })
  return close({
    ...rest,
    type: 'object',
    required: ['id', ...required.filter((name) => name !== 'id')],
    properties: { id: keySchema(key), ...properties, ...Object.fromEntries(lists) },
  })
}

export function keySchema(key: ResourceFile['schema']['key']): SchemaObject {
  const schema = { type: 'string', format: 'dns-subdomain', ...key.schema }
  return key.description ? { description: key.description, ...schema } : schema
}

/** The id, what the type says of references, and the fields that may be overridden. */
export function referenceSchema(file: ResourceFile): SchemaObject {
  const flux = fluxOf(file)
  const overrides = (flux.overrides ?? []).map((name) => {
    const { default: _default, ...schema } = plain(propertiesOf(file)[name] as SchemaObject)
    return [name, schema]
  })
  const id = { type: 'string', minLength: 1, description: `Id of one of ${file.kind}.` }
  return close({
    type: 'object',
    required: ['id'],
    properties: { id, ...flux.reference, ...Object.fromEntries(overrides) },
  })
}

/** With the limits that no keyword of JSON Schema has. */
function propertiesOf(file: ResourceFile): Record<string, SchemaObject> {
  const limited = Object.entries(fluxOf(file).max_bytes ?? {}).map(([name, limit]) => {
    return [name, { ...file.schema.items.properties[name], [MAX_BYTES]: limit }] as const
  })
  return { ...file.schema.items.properties, ...Object.fromEntries(limited) }
}

/** Firestone lets a property wrap its schema. */
function plain(schema: SchemaObject): SchemaObject {
  const { schema: wrapped, expose: _expose, ...rest } = schema
  return wrapped ? { ...rest, ...(wrapped as SchemaObject) } : rest
}

/** Objects with declared properties take no others, unless they say so. */
export function close(schema: SchemaObject): SchemaObject {
  const { properties, items, additionalProperties, ...rest } = plain(schema)
  return {
    ...rest,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, close(child)])),
      additionalProperties: false,
    }),
    ...(items && { items: close(items) }),
    ...(additionalProperties !== undefined && {
      additionalProperties:
        typeof additionalProperties === 'object' ? close(additionalProperties) : additionalProperties,
    }),
  }
}

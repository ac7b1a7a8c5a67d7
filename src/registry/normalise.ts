// Brings a value into its schema's order, with defaults filled in and empty optional fields left out.
import { isObject, type Json, type JsonObject } from '../domain/json.ts'
import type { SchemaObject } from './resource-file.ts'

/** Makes a new value; what does not fit the schema is passed on as it is, for the validator to name. */
export function normalise(schema: SchemaObject, value: Json): Json {
  const { items, properties, additionalProperties } = schema
  if (Array.isArray(value)) return items ? value.map((item) => normalise(items, item)) : value
  if (!isObject(value)) return value
  if (!properties) {
    const values = isObject(additionalProperties) ? (additionalProperties as SchemaObject) : undefined
    return values ? mapValues(value, (item) => normalise(values, item)) : value
  }
  const normalised: Record<string, Json> = {}
  for (const [name, property] of Object.entries(properties)) {
    const given = Object.hasOwn(value, name) ? value[name] : undefined
    const required = schema.required?.includes(name) ?? false
    if (given === undefined || (given === null && !required)) {
      if (property.default !== undefined) normalised[name] = property.default as Json
    } else {
      normalised[name] = normalise(property, given)
    }
  }
  for (const [name, item] of Object.entries(value)) {
    if (!Object.hasOwn(properties, name)) normalised[name] = item
  }
  return normalised
}

function mapValues(object: JsonObject, map: (value: Json) => Json): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value)]))
}

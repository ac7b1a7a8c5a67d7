// Brings a value into its schema's order, with defaults filled in and empty optional fields left out.
import { isObject, type Json, type JsonObject } from '../base/json.ts'
import type { SchemaObject } from '../base/json-schema.ts'

type Normaliser = (value: Json) => Json

interface Field {
  readonly name: string
  readonly required: boolean
  readonly fallback: Json | undefined
  readonly normalise: Normaliser
}

/**
 * The normaliser returns the same object where it is in order already, so that what most clusters share stays shared.
 * What does not fit the schema is returned as it is, for the validator to report.
 */
export function buildNormaliser(schema: SchemaObject): Normaliser {
  const { items, properties, additionalProperties } = schema
  const item = items && buildNormaliser(items)
  const member = isObject(additionalProperties) && buildNormaliser(additionalProperties as SchemaObject)
  const fields = Object.entries(properties ?? {}).map(
    ([name, property]): Field => ({
      name,
      required: schema.required?.includes(name) ?? false,
      fallback: property.default as Json | undefined,
      normalise: buildNormaliser(property),
    }),
  )
  return (value) => {
    if (Array.isArray(value)) return item ? normaliseItems(value, item) : value
    if (!isObject(value)) return value
    if (properties) return normaliseFields(value, fields)
    return member ? normaliseMembers(value, member) : value
  }
}

function normaliseItems(value: readonly Json[], normalise: Normaliser): readonly Json[] {
  const normalised = value.map(normalise)
  return normalised.every((item, i) => item === value[i]) ? value : normalised
}

function normaliseMembers(value: JsonObject, normalise: Normaliser): JsonObject {
  const normalised: Record<string, Json> = {}
  let same = true
  for (const key of Object.keys(value)) {
    normalised[key] = normalise(value[key] as Json)
    if (normalised[key] !== value[key]) same = false
  }
  return same ? value : normalised
}

function normaliseFields(value: JsonObject, fields: readonly Field[]): JsonObject {
  const normalised: Record<string, Json> = {}
  const keys = Object.keys(value)
  let next = 0
  let same = true
  for (const { name, required, fallback, normalise } of fields) {
    const given = Object.hasOwn(value, name) ? value[name] : undefined
    if (given === undefined || (given === null && !required)) {
      if (fallback !== undefined) normalised[name] = fallback
      if (fallback !== undefined || given === null) same = false
    } else {
      const item = normalise(given)
      normalised[name] = item
      if (item !== given || keys[next++] !== name) same = false
    }
  }
  if (same && next === keys.length) return value
  for (const key of keys) {
    if (!fields.some(({ name }) => name === key)) normalised[key] = value[key] as Json
  }
  return normalised
}

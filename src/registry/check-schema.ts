// Whether a schema of a resource file can be used at all, and whether its defaults pass it.
import { isObject, type Json } from '../base/json.ts'
import type { SchemaObject } from '../base/json-schema.ts'
import { buildDocumentChecker, knownFormats } from './validator.ts'

/** Everything that is wrong with a schema, by its place. */
export function checkSchema(place: string, schema: SchemaObject): string[] {
  const parts = [...partsOf(place, schema)]
  const known = knownFormats()
  const unknown = parts.flatMap(([at, { format }]) =>
    format === undefined || known.includes(format)
      ? []
      : [`${at}.format "${format}" is unknown: known are ${known.join(', ')}`],
  )
  if (unknown.length > 0) return unknown
  try {
    buildDocumentChecker(schema)
    return parts.flatMap(([at, part]) => (part.default === undefined ? [] : checkDefault(at, part)))
  } catch (error) {
    return [`${place} is a schema that cannot be used: ${(error as Error).message}`]
  }
}

function checkDefault(at: string, part: SchemaObject): string[] {
  const details = buildDocumentChecker(part)(part.default as Json)
  return details.map(({ path, message }) => `${at}.default${path} ${message}`)
}

/** The schema itself and all schemas in it that documents are held against. */
function* partsOf(place: string, schema: SchemaObject): Generator<readonly [place: string, SchemaObject]> {
  yield [place, schema]
  const { properties = {}, items, additionalProperties } = schema
  for (const [name, part] of Object.entries(properties)) yield* partsOf(`${place}.properties.${name}`, part)
  if (items) yield* partsOf(`${place}.items`, items)
  if (isObject(additionalProperties))
    yield* partsOf(`${place}.additionalProperties`, additionalProperties as SchemaObject)
}

// Whether the schemas of a resource file can be used at all, and whether their defaults pass them.
import { isObject, type Json, pointer } from '../base/json.ts'
import type { SchemaObject } from '../base/json-schema.ts'
import { compileDocumentChecker, knownFormats } from './validator.ts'

export type PlacedSchema = readonly [place: string, schema: SchemaObject]

/** Everything that is wrong with schemas, by their places. All are compiled at once: one by one takes five times as long. */
export function checkSchemas(schemas: readonly PlacedSchema[]): string[] {
  try {
    return checkDefaults(schemas)
  } catch {
    return schemas.flatMap(checkAlone)
  }
}

function checkAlone(placed: PlacedSchema): string[] {
  const known = knownFormats()
  const unknown = [...partsOf(...placed)].flatMap(([at, { format }]) =>
    format === undefined || known.includes(format)
      ? []
      : [`${at}.format "${format}" is unknown: known are ${known.join(', ')}`],
  )
  if (unknown.length > 0) return unknown
  try {
    return checkDefaults([placed])
  } catch (error) {
    return [`${placed[0]} is a schema that cannot be used: ${(error as Error).message}`]
  }
}

/** Throws where a schema cannot be used. */
function checkDefaults(schemas: readonly PlacedSchema[]): string[] {
  const withDefault = schemas
    .flatMap((placed) => [...partsOf(...placed)])
    .filter(([, part]) => part.default !== undefined)
  const properties = Object.fromEntries([...schemas, ...withDefault])
  const check = compileDocumentChecker({ type: 'object', properties, additionalProperties: false })
  const details = check(Object.fromEntries(withDefault.map(([at, part]) => [at, part.default as Json])))
  return details.map(({ path, message }) => {
    const [at = ''] = withDefault.find(([at]) => `${path}/`.startsWith(`${pointer('', at)}/`)) ?? []
    return `${at}.default${path.slice(pointer('', at).length)} ${message}`
  })
}

/** The schema itself and all schemas in it that documents are held against. */
function* partsOf(place: string, schema: SchemaObject): Generator<PlacedSchema> {
  yield [place, schema]
  const { properties = {}, items, additionalProperties } = schema
  for (const [name, part] of Object.entries(properties)) yield* partsOf(`${place}.properties.${name}`, part)
  if (items) yield* partsOf(`${place}.items`, items)
  if (isObject(additionalProperties))
    yield* partsOf(`${place}.additionalProperties`, additionalProperties as SchemaObject)
}

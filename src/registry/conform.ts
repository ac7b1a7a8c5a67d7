// Makes a document of its type from what was sent: normalised, and checked. Of a change only what differs is looked at.
import type { Json, JsonObject } from '../base/json.ts'
import type { SchemaObject } from '../base/json-schema.ts'
import type { ResourceType } from '../domain/types/resource-type.ts'
import { buildNormaliser } from './normalise.ts'
import { buildDocumentChecker } from './validator.ts'

/** Keywords that judge each property by itself, or nothing at all. */
const BY_PROPERTY = [
  'type',
  'properties',
  'required',
  'additionalProperties',
  'description',
  'title',
  'example',
]

interface Field {
  readonly normalise: (value: Json) => Json
  readonly isRight: (value: Json) => boolean
}

/**
 * A document that this function has returned without problems is known. A value that differs from a known document in
 * some of its properties, and has all of them and no others, is right if these are: the others are the same objects.
 */
export function buildConform(
  schema: SchemaObject,
  { normalise, check }: Pick<ResourceType, 'normalise' | 'check'>,
): ResourceType['conform'] {
  const fields = Object.keys(schema).every((keyword) => BY_PROPERTY.includes(keyword))
    ? fieldsOf(schema)
    : undefined
  const known = new WeakSet<JsonObject>()
  return (value, current) => {
    const changed = fields && current && known.has(current) ? withChanged(fields, value, current) : undefined
    const document = changed ?? normalise(value)
    const details = changed ? [] : check(document)
    if (details.length === 0) known.add(document)
    return { document, details }
  }
}

function fieldsOf({ properties = {} }: SchemaObject): ReadonlyMap<string, Field> {
  return new Map(
    Object.entries(properties).map(([name, property]) => {
      const check = buildDocumentChecker(property)
      return [name, { normalise: buildNormaliser(property), isRight: (value) => check(value).length === 0 }]
    }),
  )
}

/** Undefined where a look at the changed properties is not enough, or one of them is wrong. */
function withChanged(
  fields: ReadonlyMap<string, Field>,
  value: JsonObject,
  current: JsonObject,
): JsonObject | undefined {
  const names = Object.keys(value)
  if (names.length !== Object.keys(current).length) return undefined
  const document: Record<string, Json> = { ...current }
  for (const name of names) {
    const given = value[name] as Json
    if (given === current[name]) continue
    const field = fields.get(name)
    if (!field || given === null || !Object.hasOwn(current, name)) return undefined
    const normalised = field.normalise(given)
    if (!field.isRight(normalised)) return undefined
    document[name] = normalised
  }
  return document
}

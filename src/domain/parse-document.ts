// From what was sent to a document of its type, or everything that is wrong with it.
import { isObject, type Json, type JsonObject, own, pointer } from './json.ts'
import { type Detail, invalid, type Result, succeed } from './problem.ts'
import type { Document, ResourceType } from './resource-type.ts'

export function parseDocument(
  type: ResourceType,
  value: Json,
  id: string | undefined,
  path: string,
): Result<Document> {
  if (!isObject(value)) return invalid([{ path, message: 'must be an object' }])
  const identified = id === undefined ? succeed(value) : withId(value, id, path)
  if (!identified.ok) return identified
  const document = type.normalise(identified.value)
  const details = type.check(document)
  return details.length > 0 ? invalid(below(path, details)) : succeed(document as Document)
}

/** The URL names the document; a body may repeat the name but not change it. */
export function withId(value: JsonObject, id: string, path: string): Result<JsonObject> {
  const given = own(value, 'id')
  if (given === undefined || given === id) return succeed({ ...value, id })
  return invalid([{ path: pointer(path, 'id'), message: `must be "${id}", as in the path, or be left out` }])
}

export function below(path: string, details: readonly Detail[]): Detail[] {
  return details.map((detail) => ({ ...detail, path: path + detail.path }))
}

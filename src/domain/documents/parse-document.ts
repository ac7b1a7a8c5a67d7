// From what was sent to a document of its type, or everything that is wrong with it.
import { isObject, type Json, type JsonObject, measureJson, own, pointer } from '../../base/json.ts'
import { type Detail, invalid, type Result, succeed } from '../../base/problem.ts'
import type { Document, ResourceType } from '../types/resource-type.ts'

/** `current` is the document that exists already, if any: one that is too large must not grow. */
export function parseDocument(
  type: ResourceType,
  value: Json,
  id: string | undefined,
  path: string,
  current?: Document,
): Result<Document> {
  if (!isObject(value)) return invalid([{ path, message: 'must be an object' }])
  const fits = checkSize(type, value, path, current)
  if (!fits.ok) return fits
  const identified = id === undefined ? succeed(value) : withId(value, id, path)
  if (!identified.ok) return identified
  const { document, details } = type.conform(identified.value, current)
  return details.length > 0 ? invalid(below(path, details)) : succeed(document as Document)
}

/** Refuses a value that is too large before more expensive checks read it. */
export function checkSize(
  type: ResourceType,
  document: JsonObject,
  path: string,
  current?: Document,
): Result<void> {
  const { maxSize } = type
  if (measureJson(document, maxSize).size <= maxSize) return succeed(undefined)
  const before = current ? measureJson(current, Number.POSITIVE_INFINITY).size : 0
  if (measureJson(document, before).size <= before) return succeed(undefined)
  const message = `is larger than ${maxSize} characters of JSON, the most that a ${type.singular} may have: leave something out, or make several of it`
  return invalid([{ path, message }])
}

/** The URL names the document; a body may repeat the name but not change it. */
export function withId(value: JsonObject, id: string, path: string): Result<JsonObject> {
  const given = own(value, 'id')
  if (given === id) return succeed(value)
  if (given === undefined) return succeed({ ...value, id })
  return invalid([{ path: pointer(path, 'id'), message: `must be "${id}", as in the path, or be left out` }])
}

export function below(path: string, details: readonly Detail[]): Detail[] {
  return details.map((detail) => ({ ...detail, path: path + detail.path }))
}

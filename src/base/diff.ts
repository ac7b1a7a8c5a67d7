// What differs between two JSON values, field by field.
import { equalJson, isObject, type Json, own, pointer } from './json.ts'

/** One field with two values; null where it is not there at all. */
export interface FieldChange {
  /** JSON pointer. */
  readonly path: string
  readonly before: Json
  readonly after: Json
}

/** Goes down into objects; a list is one value. */
export function diffFields(before: Json | undefined, after: Json | undefined, path = ''): FieldChange[] {
  if (before !== undefined && after !== undefined && equalJson(before, after)) return []
  if (!isObject(before) || !isObject(after)) return [{ path, before: before ?? null, after: after ?? null }]
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...keys].flatMap((key) => {
    const [a, b] = [own(before, key), own(after, key)]
    return a === undefined && b === undefined ? [] : diffFields(a, b, pointer(path, key))
  })
}

// Makes a field of one document what it is in another, whatever it was.
import { isObject, type Json, type JsonObject, own } from '../../base/json.ts'
import { isIdList } from '../commands/undo.ts'
import type { Document } from '../types/resource-type.ts'
import { segmentsOf } from './edits.ts'

type Item = JsonObject & { readonly id: string }

/** `path` is one as field edits have: it names an item of a list of references by its id. */
export function copyField(into: Document, from: Document, path: string): Document {
  return copyAt(into, from, segmentsOf(path), 0) as Document
}

function copyAt(
  into: Json | undefined,
  from: Json | undefined,
  segments: readonly string[],
  at: number,
): Json | undefined {
  const segment = segments[at]
  // What holds the field is missing on one side: then it comes, or goes, with all that is in it.
  if (segment === undefined || into === undefined || from === undefined) return from
  if (isIdList(into) && isIdList(from)) return copyItem(into, from, segments, at)
  if (!isObject(into) || !isObject(from)) return from
  const value = copyAt(own(into, segment), own(from, segment), segments, at + 1)
  if (value !== undefined) return { ...into, [segment]: value }
  const { [segment]: _, ...rest } = into
  return rest
}

function copyItem(
  into: readonly Item[],
  from: readonly Item[],
  segments: readonly string[],
  at: number,
): readonly Item[] {
  const id = segments[at] as string
  const [was, is] = [into, from].map((list) => list.find((item) => item.id === id))
  const value = copyAt(was, is, segments, at + 1) as Item | undefined
  if (was && value) return into.map((item) => (item === was ? value : item))
  const others = into.filter((item) => item !== was)
  return value ? others.toSpliced(placeOf(id, others, from), 0, value) : others
}

/** Before the first item that follows it in the other list, or at the end. */
function placeOf(id: string, list: readonly Item[], from: readonly Item[]): number {
  const following = new Set(from.slice(from.findIndex((item) => item.id === id) + 1).map((item) => item.id))
  const place = list.findIndex((item) => following.has(item.id))
  return place < 0 ? list.length : place
}

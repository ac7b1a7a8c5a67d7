// A change as edits of fields, so that it can be laid over documents that go on changing in other fields.
import { isObject, type Json, type JsonObject, own, pointer } from '../../base/json.ts'
import { isIdList, undo } from '../commands/undo.ts'
import type { Document } from '../types/resource-type.ts'

/** One field with the value that it had and the value that it gets; a value that is left out is a missing field. */
export interface FieldEdit {
  /** JSON pointer. An item of a list of references is named by its id. */
  readonly path: string
  readonly before?: Json
  readonly after?: Json
}

/** The same edit of one or several documents. */
export type DocumentEdit = { readonly type: string; readonly ids: readonly string[] } & (
  | { readonly fields: readonly FieldEdit[] }
  | { readonly created: Document }
  | { readonly deleted: true }
)

type Normalise = (document: JsonObject) => JsonObject

/**
 * Returns the edits that turn one document into the other, to the byte. They are as fine as they can be: the finer they
 * are, the less of the document is held while a rollout runs.
 */
export function editsBetween(before: Document, after: Document, normalise: Normalise): FieldEdit[] {
  const wanted = JSON.stringify(after)
  const isExact = (edits: readonly FieldEdit[]): boolean =>
    JSON.stringify(layFields(before, edits, normalise)) === wanted
  const fine = diff(before, after, '')
  if (isExact(fine)) return fine
  const coarse = diffTop(before, after)
  return isExact(coarse) ? coarse : [{ path: '', before, after }]
}

/**
 * Returns the document with the edits laid over it. A field that holds neither the value before nor the one after stays
 * as it is.
 */
export function layFields(document: Document, edits: readonly FieldEdit[], normalise: Normalise): Document {
  let laid: Json | undefined = document
  for (const edit of edits) laid = layAt(laid, segmentsOf(edit.path), 0, edit)
  return laid === document ? document : (normalise(laid as JsonObject) as Document)
}

/** Whether two lists of edits touch the same field, or one of them a part of what the other touches. */
export function overlapOf(one: readonly FieldEdit[], other: readonly FieldEdit[]): string | undefined {
  for (const { path } of one)
    for (const { path: another } of other) if (contains(path, another) || contains(another, path)) return path
  return undefined
}

function contains(path: string, other: string): boolean {
  return other === path || other.startsWith(`${path}/`)
}

function diff(before: Json | undefined, after: Json | undefined, path: string): FieldEdit[] {
  if (before === after || (before !== undefined && after !== undefined && sameJson(before, after))) return []
  if (isObject(before) && isObject(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...keys].flatMap((key) => diff(own(before, key), own(after, key), pointer(path, key)))
  }
  if (isIdList(before) && isIdList(after) && isAppended(before, after)) {
    const items = new Map(after.map((item) => [item.id, item]))
    const known = new Set(before.map(({ id }) => id))
    const added = after.filter(({ id }) => !known.has(id))
    return [
      ...before.flatMap((item) => diff(item, items.get(item.id), pointer(path, item.id))),
      ...added.flatMap((item) => diff(undefined, item, pointer(path, item.id))),
    ]
  }
  return [{ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) }]
}

/** To the byte: the order of keys counts. */
function sameJson(one: Json, other: Json): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** Whether items were removed, changed in their place, or added at the end. */
function isAppended(before: readonly { id: string }[], after: readonly { id: string }[]): boolean {
  const [was, is] = [new Set(before.map(({ id }) => id)), new Set(after.map(({ id }) => id))]
  if (was.size !== before.length || is.size !== after.length) return false
  const kept = before.filter(({ id }) => is.has(id))
  return (
    kept.every(({ id }, i) => after[i]?.id === id) && after.slice(kept.length).every(({ id }) => !was.has(id))
  )
}

function diffTop(before: Document, after: Document): FieldEdit[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...keys].flatMap((key) => {
    const [was, is] = [own(before, key), own(after, key)]
    if (was !== undefined && is !== undefined && sameJson(was, is)) return []
    return [
      {
        path: pointer('', key),
        ...(was !== undefined && { before: was }),
        ...(is !== undefined && { after: is }),
      },
    ]
  })
}

/** The keys of a JSON pointer. */
export function segmentsOf(path: string): string[] {
  if (path === '') return []
  return path
    .slice(1)
    .split('/')
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function layAt(
  value: Json | undefined,
  segments: readonly string[],
  at: number,
  edit: FieldEdit,
): Json | undefined {
  const segment = segments[at]
  if (segment === undefined) return undo(edit.after, edit.before, value, [])
  if (isIdList(value)) return layInList(value, segment, segments, at, edit)
  if (!isObject(value ?? {})) return value
  const map = (value ?? {}) as JsonObject
  const was = own(map, segment)
  const is = layAt(was, segments, at + 1, edit)
  if (is === was) return value
  if (is !== undefined) return { ...map, [segment]: is }
  const { [segment]: _, ...rest } = map
  return rest
}

function layInList(
  list: readonly (JsonObject & { readonly id: string })[],
  id: string,
  segments: readonly string[],
  at: number,
  edit: FieldEdit,
): Json {
  const place = list.findIndex((item) => item.id === id)
  if (place < 0) {
    const isAdded = at === segments.length - 1 && edit.before === undefined && edit.after !== undefined
    return isAdded ? [...list, edit.after as Json] : list
  }
  const was = list[place] as Json
  const is = layAt(was, segments, at + 1, edit)
  if (is === was) return list
  return is === undefined ? list.toSpliced(place, 1) : list.with(place, is as (typeof list)[number])
}

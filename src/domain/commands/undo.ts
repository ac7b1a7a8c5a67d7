// Undoes a change that later ones may have built on: fields that still hold its value are restored, others conflict.
import { getOrSet } from '../../base/get-or-set.ts'
import { equalJson, isObject, type Json, type JsonObject, own, pointer } from '../../base/json.ts'

export interface UndoConflict {
  /** JSON pointer into the document. */
  readonly path: string
  /** The value that the change left, and the value now. */
  readonly left: Json | undefined
  readonly current: Json | undefined
}

/** Returns `current` without the change from `before` to `after`; adds a conflict where that is not possible. */
export function undo(
  before: Json | undefined,
  after: Json | undefined,
  current: Json | undefined,
  conflicts: UndoConflict[],
  path = '',
): Json | undefined {
  if (same(current, after)) return before
  if (same(before, after) || same(current, before)) return current
  if (isObject(before) && isObject(after) && isObject(current)) {
    return undoFields(before, after, current, conflicts, path)
  }
  if (isIdList(before) && isIdList(after) && isIdList(current)) {
    return undoItems(before, after, current, conflicts, path)
  }
  conflicts.push({ path, left: after, current })
  return current
}

function same(a: Json | undefined, b: Json | undefined): boolean {
  return a === undefined || b === undefined ? a === b : equalJson(a, b)
}

function undoFields(
  before: JsonObject,
  after: JsonObject,
  current: JsonObject,
  conflicts: UndoConflict[],
  path: string,
): JsonObject {
  const keys = new Set([...Object.keys(current), ...Object.keys(before), ...Object.keys(after)])
  const undone: Record<string, Json> = {}
  for (const key of keys) {
    const at = pointer(path, key)
    const [was, left, now] = [own(before, key), own(after, key), own(current, key)]
    const value = areMaps(was, left, now)
      ? undoMap(was, left, now, conflicts, at)
      : undo(was, left, now, conflicts, at)
    if (value !== undefined) undone[key] = value
  }
  return undone
}

/**
 * Whether one of the values is missing and the others are different objects: then each of their keys is undone alone.
 */
function areMaps(...values: readonly (Json | undefined)[]): boolean {
  const [was, left, now] = values
  const some = values.filter((value) => value !== undefined)
  return some.length === 2 && some.every(isObject) && !same(now, left) && !same(now, was) && !same(was, left)
}

/** Undoes a map key by key. A missing map counts as an empty one: later changes may have created it or emptied it. */
function undoMap(
  before: Json | undefined,
  after: Json | undefined,
  current: Json | undefined,
  conflicts: UndoConflict[],
  path: string,
): JsonObject | undefined {
  const [was, left, now] = [before ?? {}, after ?? {}, current ?? {}] as [JsonObject, JsonObject, JsonObject]
  const undone = undoFields(was, left, now, conflicts, path)
  return Object.keys(undone).length > 0 || before !== undefined ? undone : undefined
}

type Item = JsonObject & { readonly id: string }
type IdList = readonly Item[]

/** Whether a value is a list of references: each of them is undone alone, whatever its index. */
export function isIdList(value: Json | undefined): value is IdList {
  return Array.isArray(value) && value.every((item) => isObject(item) && typeof item.id === 'string')
}

function undoItems(
  before: IdList,
  after: IdList,
  current: IdList,
  conflicts: UndoConflict[],
  path: string,
): IdList {
  const [was, left, now] = [byId(before), byId(after), byId(current)]
  const undone: Item[] = []
  current.forEach((item, i) => {
    const value = undo(was.get(item.id), left.get(item.id), item, conflicts, pointer(path, i))
    if (value !== undefined) undone.push(value as Item)
  })
  const ordered = undoOrder(before, after, undone, conflicts, path)
  const missing = before.map((item) => {
    if (now.has(item.id)) return undefined
    const changed = left.get(item.id)
    if (!changed) return item
    if (!same(changed, item))
      conflicts.push({ path: pointer(path, item.id), left: changed, current: undefined })
    return undefined
  })
  return withItems(ordered, before, missing)
}

/** Inserts each missing item before the first item that followed it, or at the end. */
function withItems(list: IdList, before: IdList, missing: readonly (Item | undefined)[]): IdList {
  const places = new Map(list.map(({ id }, i) => [id, i]))
  const insertions = new Map<number, Item[]>()
  let place = list.length
  for (let i = before.length - 1; i >= 0; i--) {
    const item = missing[i]
    if (item) getOrSet(insertions, place, () => []).push(item)
    place = Math.min(place, places.get((before[i] as Item).id) ?? place)
  }
  const inserted = (at: number): Item[] => insertions.get(at)?.reverse() ?? []
  return [...list.flatMap((item, i) => [...inserted(i), item]), ...inserted(list.length)]
}

function byId(list: IdList): Map<string, Item> {
  return new Map(list.map((item) => [item.id, item]))
}

/** Restores the order that the change altered; a conflict where it was altered again since. */
function undoOrder(
  before: IdList,
  after: IdList,
  undone: readonly Item[],
  conflicts: UndoConflict[],
  path: string,
): Item[] {
  const lists = [before, after, undone].map(byId)
  const items = byId(undone)
  const orderIn = (list: IdList): string[] =>
    list.map(({ id }) => id).filter((id) => lists.every((other) => other.has(id)))
  const [was, left, now] = [orderIn(before), orderIn(after), orderIn(undone)]
  if (equalJson(was, left) || equalJson(now, was)) return [...undone]
  if (!equalJson(now, left)) conflicts.push({ path, left, current: now })
  const moved = new Set(now)
  let next = 0
  return undone.map((item) => (moved.has(item.id) ? (items.get(was[next++] as string) as Item) : item))
}

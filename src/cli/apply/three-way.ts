// What others have changed in a value that a file also says: the value before and after, and in the file.
import { equalJson, isObject, type Json, type JsonObject, pointer } from '../../base/json.ts'

/** A place in a document: names of fields, and ids of items of lists. */
export type Place = readonly (string | { readonly id: string })[]

/** A value that was changed, and that a file would change back; undefined where there is none. */
export interface ChangedByOthers {
  readonly place: Place
  readonly before: Json | undefined
  readonly after: Json | undefined
}

interface Versions {
  readonly before: Json | undefined
  readonly after: Json | undefined
  readonly file: Json | undefined
}

/** Goes down into objects, and into lists whose items have ids. */
export function changedByOthers({ before, after, file }: Versions, place: Place = []): ChangedByOthers[] {
  if (isEqual(before, after) || isEqual(after, file)) return []
  const all = [before, after, file]
  if (all.every(isObject)) return inside(all, (name) => [...place, name])
  const lists = all.map(itemsById)
  if (!lists.every((each) => each !== undefined)) return [{ place, before, after }]
  const [itemsBefore, itemsAfter] = lists
  // Only the order is another one.
  if (isEqual(itemsBefore, itemsAfter)) return [{ place, before, after }]
  return inside(lists, (id) => [...place, { id }])
}

function inside(versions: readonly JsonObject[], placeOf: (name: string) => Place): ChangedByOthers[] {
  const names = new Set(versions.flatMap((each) => Object.keys(each)))
  return [...names].flatMap((name) => {
    const [before, after, file] = versions.map((each) => (Object.hasOwn(each, name) ? each[name] : undefined))
    return changedByOthers({ before, after, file }, placeOf(name))
  })
}

function isEqual(a: Json | undefined, b: Json | undefined): boolean {
  return a === undefined || b === undefined ? a === b : equalJson(a, b)
}

/** The items of a list by their ids; undefined for what is no such list. */
function itemsById(value: Json | undefined): JsonObject | undefined {
  if (!Array.isArray(value)) return undefined
  const items: [string, Json][] = []
  for (const item of value) {
    if (!isObject(item) || typeof item.id !== 'string') return undefined
    items.push([item.id, item])
  }
  const found = Object.fromEntries(items)
  return Object.keys(found).length === items.length ? found : undefined
}

export function valueAt(value: Json | null | undefined, place: Place): Json | undefined {
  let found: Json | undefined = value ?? undefined
  for (const step of place) {
    const inner: Json | undefined = typeof step === 'string' ? found : itemsById(found)
    const name = typeof step === 'string' ? step : step.id
    if (!isObject(inner) || !Object.hasOwn(inner, name)) return undefined
    found = inner[name]
  }
  return found
}

/** `/platform_components[grafana]/oci_tag`. */
export function describePlace(place: Place): string {
  return place.reduce<string>(
    (path, step) => (typeof step === 'string' ? pointer(path, step) : `${path}[${step.id}]`),
    '',
  )
}

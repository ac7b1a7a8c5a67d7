// The entries of one type, found by id and listed in the order of ids.
import { getOrSet } from '../../base/get-or-set.ts'
import type { Entry } from './view.ts'

/** Where an entry stands. A holder of a document's place sees every later version of the document. */
export interface Place {
  entry: Entry
}

/** The ids of a type, tombstones included and in order, and how many of them are live. */
export interface Listing {
  readonly ids: readonly string[]
  readonly live: number
}

/** The entry of a place that was just made. */
const GONE: Entry = { id: '', document: { id: '' }, revision: 0, deleted: true, size: 0 }

/** Keeps the order of ids without sorting all of them on every write. */
export class Collection {
  readonly places = new Map<string, Place>()
  readonly tombstones = new Map<string, Entry>()
  liveCount = 0
  #ids: string[] = []
  #added: string[] = []
  #removed = false

  set(entry: Entry): Place {
    const place = getOrSet(this.places, entry.id, () => {
      this.#added.push(entry.id)
      return { entry: GONE }
    })
    this.liveCount += Number(!entry.deleted) - Number(!place.entry.deleted)
    if (entry.deleted) this.tombstones.set(entry.id, entry)
    else this.tombstones.delete(entry.id)
    place.entry = entry
    return place
  }

  delete(id: string): void {
    const place = this.places.get(id)
    if (!place) return
    this.places.delete(id)
    this.tombstones.delete(id)
    this.#removed = true
    if (!place.entry.deleted) this.liveCount--
  }

  listing(): Listing {
    return { ids: this.#sorted(), live: this.liveCount }
  }

  *live(): Generator<Entry> {
    for (const id of this.#sorted()) {
      const entry = this.places.get(id)?.entry
      if (entry && !entry.deleted) yield entry
    }
  }

  #sorted(): readonly string[] {
    if (this.#added.length > 0 || this.#removed) {
      this.#ids = mergeSorted(this.#ids, this.#added.sort(), this.places)
      this.#added = []
      this.#removed = false
    }
    return this.#ids
  }
}

/** Merges two sorted lists; leaves out duplicates and what is not present. */
function mergeSorted(
  a: readonly string[],
  b: readonly string[],
  present: ReadonlyMap<string, unknown>,
): string[] {
  const merged: string[] = []
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    const [x, y] = [a[i], b[j]]
    const next = (y === undefined || (x !== undefined && x <= y) ? x : y) as string
    if (next === x) i++
    else j++
    if (present.has(next) && merged.at(-1) !== next) merged.push(next)
  }
  return merged
}

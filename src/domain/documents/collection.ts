// The entries of one type, found by id and listed in the order of ids.
import { getOrSet } from '../../base/get-or-set.ts'
import type { Entry } from './view.ts'

/** Where an entry stands. A holder of a document's place sees every later version of the document. */
export interface Place {
  entry: Entry
}

/** The ids of a type, tombstones included and in order, with their places, and how many of them are live. */
export interface Listing {
  readonly ids: readonly string[]
  readonly places: readonly Place[]
  readonly live: number
}

/** The entry of a place that was just made, or given up. */
const GONE: Entry = { id: '', document: { id: '' }, revision: 0, deleted: true, size: 0 }

/** Keeps the order of ids without sorting all of them on every write. */
export class Collection {
  readonly places = new Map<string, Place>()
  readonly tombstones = new Map<string, Entry>()
  liveCount = 0
  #sorted: Pick<Listing, 'ids' | 'places'> = { ids: [], places: [] }
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
    place.entry = GONE
  }

  listing(): Listing {
    return { ...this.#inOrder(), live: this.liveCount }
  }

  /** Without looking up ids: in a large fleet most of the time of going through it went there. */
  *live(): Generator<Entry> {
    for (const { entry } of this.#inOrder().places) if (!entry.deleted) yield entry
  }

  #inOrder(): Pick<Listing, 'ids' | 'places'> {
    if (this.#added.length > 0 || this.#removed) {
      this.#sorted = mergeSorted(this.#sorted.ids, this.#added.sort(), this.places)
      this.#added = []
      this.#removed = false
    }
    return this.#sorted
  }
}

/** Merges two sorted lists; leaves out duplicates and what is not present. */
function mergeSorted(
  a: readonly string[],
  b: readonly string[],
  present: ReadonlyMap<string, Place>,
): Pick<Listing, 'ids' | 'places'> {
  const ids: string[] = []
  const places: Place[] = []
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    const [x, y] = [a[i], b[j]]
    const next = (y === undefined || (x !== undefined && x <= y) ? x : y) as string
    if (next === x) i++
    else j++
    const place = present.get(next)
    if (!place || ids.at(-1) === next) continue
    ids.push(next)
    places.push(place)
  }
  return { ids, places }
}

// How the state finds documents by something other than their id. A new index is one more object in the list.
import { type ClusterType, canonicalDns, type Document, dnsOf, type Types } from '../types/resource-type.ts'
import type { Place } from './collection.ts'
import type { Entry } from './view.ts'

export interface Index {
  /** The type whose entries it finds. */
  readonly type: string
  /**
   * Whether it finds a live entry by the same key and place as the live entry before it. If every index of the type
   * does, a replacement is published by an assignment, and no index is called.
   */
  keepsPlace(before: Entry, after: Entry): boolean
  /** Called after an entry was put in its place, live or as a tombstone. */
  put(place: Place): void
  /** Called before an entry leaves its place. */
  remove(entry: Entry): void
}

export class StateIndexes {
  readonly liveByDns: LiveByDns
  readonly tombstonesByDns: TombstonesByDns
  /** Of system types that are found by keys of their own, by the name of the type. */
  readonly #byKey: ReadonlyMap<string, ByKey>
  readonly #byType: ReadonlyMap<string, readonly Index[]>

  constructor({ cluster, system }: Types) {
    this.liveByDns = new LiveByDns(cluster)
    this.tombstonesByDns = new TombstonesByDns(cluster)
    const byKey = system.all.flatMap(({ name, indexKeys }) => (indexKeys ? [new ByKey(name, indexKeys)] : []))
    this.#byKey = new Map(byKey.map((index) => [index.type, index]))
    const all: readonly Index[] = [this.liveByDns, this.tombstonesByDns, ...byKey]
    this.#byType = Map.groupBy(all, ({ type }) => type)
  }

  byKey(type: string, key: string): Entry | undefined {
    return this.#byKey.get(type)?.get(key)
  }

  of(type: string): readonly Index[] {
    return this.#byType.get(type) ?? NO_INDEXES
  }
}

const NO_INDEXES: readonly Index[] = []

/** Live clusters by DNS name: every poll asks for one. */
class LiveByDns implements Index {
  readonly type: string
  readonly #cluster: ClusterType
  readonly #places = new Map<string, Place>()

  constructor(cluster: ClusterType) {
    this.type = cluster.type.name
    this.#cluster = cluster
  }

  get(dns: string): Entry | undefined {
    return this.#places.get(canonicalDns(dns))?.entry
  }

  keepsPlace(before: Entry, after: Entry): boolean {
    const { dns } = this.#cluster
    return before.document[dns] === after.document[dns]
  }

  put(place: Place): void {
    if (!place.entry.deleted) this.#places.set(dnsOf(this.#cluster, place.entry.document), place)
  }

  remove(entry: Entry): void {
    if (entry.deleted) return
    const dns = dnsOf(this.#cluster, entry.document)
    // Within one revision another cluster may have taken the name already.
    if (this.#places.get(dns)?.entry === entry) this.#places.delete(dns)
  }
}

/** Deleted clusters by DNS name: several may have had one name. */
class TombstonesByDns implements Index {
  readonly type: string
  readonly #cluster: ClusterType
  readonly #entries = new Map<string, readonly Entry[]>()

  constructor(cluster: ClusterType) {
    this.type = cluster.type.name
    this.#cluster = cluster
  }

  get(dns: string): readonly Entry[] {
    return this.#entries.get(canonicalDns(dns)) ?? NO_ENTRIES
  }

  /** It holds no live entries. */
  keepsPlace(): boolean {
    return true
  }

  put({ entry }: Place): void {
    if (!entry.deleted) return
    const dns = dnsOf(this.#cluster, entry.document)
    this.#entries.set(dns, [...(this.#entries.get(dns) ?? NO_ENTRIES), entry])
  }

  remove(entry: Entry): void {
    if (!entry.deleted) return
    const dns = dnsOf(this.#cluster, entry.document)
    const others = (this.#entries.get(dns) ?? NO_ENTRIES).filter((other) => other !== entry)
    if (others.length > 0) this.#entries.set(dns, others)
    else this.#entries.delete(dns)
  }
}

const NO_ENTRIES: readonly Entry[] = []

/** Documents of a system type by each of the keys that it names, such as tokens by the digests of their secrets. */
class ByKey implements Index {
  readonly type: string
  readonly #keysOf: (document: Document) => readonly string[]
  readonly #entries = new Map<string, Entry>()

  constructor(type: string, keysOf: (document: Document) => readonly string[]) {
    this.type = type
    this.#keysOf = keysOf
  }

  get(key: string): Entry | undefined {
    return this.#entries.get(key)
  }

  /** It holds entries, not places. */
  keepsPlace(): boolean {
    return false
  }

  put({ entry }: Place): void {
    for (const key of this.#keysOf(entry.document)) this.#entries.set(key, entry)
  }

  remove({ document }: Entry): void {
    for (const key of this.#keysOf(document)) this.#entries.delete(key)
  }
}

// How the state finds documents by something other than their id. A new index is one more object in the list.
import { asToken, TOKENS } from '../access/token.ts'
import { type ClusterType, canonicalDns, dnsOf, type Types } from '../types/resource-type.ts'
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
  readonly tokensByHash = new TokensByHash()
  readonly #byType: ReadonlyMap<string, readonly Index[]>

  constructor({ cluster }: Types) {
    this.liveByDns = new LiveByDns(cluster)
    this.tombstonesByDns = new TombstonesByDns(cluster)
    const all: readonly Index[] = [this.liveByDns, this.tombstonesByDns, this.tokensByHash]
    this.#byType = Map.groupBy(all, ({ type }) => type)
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

/** Tokens by the digest of each of their secrets, expired ones included. */
class TokensByHash implements Index {
  readonly type = TOKENS
  readonly #entries = new Map<string, Entry>()

  get(hash: string): Entry | undefined {
    return this.#entries.get(hash)
  }

  /** It holds entries, not places. */
  keepsPlace(): boolean {
    return false
  }

  put({ entry }: Place): void {
    for (const { hash } of asToken(entry.document).secrets) this.#entries.set(hash, entry)
  }

  remove({ document }: Entry): void {
    for (const { hash } of asToken(document).secrets) this.#entries.delete(hash)
  }
}

// All documents in memory: the view that polls are served from.

import { getOrSet } from '../../base/get-or-set.ts'
import { finish, type Steps } from '../../base/steps.ts'
import { TOKENS } from '../access/token.ts'
import {
  type ClusterType,
  canonicalDns,
  type Document,
  dnsOf,
  identityLength,
  isPlain,
  type Reference,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'
import { FrozenView, type Listing } from './frozen-view.ts'
import type { Entry, PolledView } from './view.ts'

/** The end of a change, all that the state needs of it. */
export interface Applied {
  readonly type: string
  readonly id: string
  readonly after:
    | { readonly document: Document; readonly deleted: boolean; readonly size: number }
    | undefined
}

/** A change that is ready to be seen. */
interface Prepared {
  readonly type: string
  readonly id: string
  readonly entry: Entry | undefined
  readonly dns: string | undefined
  /** Where a live document just takes the place of a live one: nothing has to be looked up any more. */
  readonly place?: Place
}

/** Found by its id and, for a live cluster, by its DNS name; what stands in it is replaced. */
interface Place {
  entry: Entry
}

export class State implements PolledView {
  revision = 0
  ceilings = { size: 0, identity: 0, references: new Map<string, number>() }
  readonly #cluster: ClusterType
  readonly #types: Types
  #collections = new Map<string, Collection>()
  #liveByDns = new Map<string, Place>()
  #tombstonesByDns = new Map<string, Entry[]>()
  #shared = new Map<string, Map<string, Reference>>()
  /** Of system types, by the keys that each of them says. */
  #byKey = new Map<string, Map<string, Entry>>()
  readonly #frozen = new Set<FrozenView>()

  constructor(types: Types) {
    this.#types = types
    this.#cluster = types.cluster
  }

  get(type: string, id: string): Entry | undefined {
    const entry = this.#entry(type, id)
    return entry === undefined || entry.deleted ? undefined : entry
  }

  tombstone(type: string, id: string): Entry | undefined {
    const entry = this.#entry(type, id)
    return entry?.deleted ? entry : undefined
  }

  tombstones(type: string): Iterable<Entry> {
    return this.#collections.get(type)?.tombstones.values() ?? []
  }

  #entry(type: string, id: string): Entry | undefined {
    return this.#collections.get(type)?.places.get(id)?.entry
  }

  all(type: string): Iterable<Entry> {
    return this.#collections.get(type)?.live() ?? []
  }

  count(type: string): number {
    return this.#collections.get(type)?.liveCount ?? 0
  }

  clusterByDns(dns: string): Entry | undefined {
    return this.#liveByDns.get(canonicalDns(dns))?.entry ?? this.tombstonesWithDns(dns)[0]
  }

  tombstonesWithDns(dns: string): readonly Entry[] {
    return this.#tombstonesByDns.get(canonicalDns(dns)) ?? []
  }

  dnsHolder(dns: string, except?: string): Entry | undefined {
    const entry = this.#liveByDns.get(canonicalDns(dns))?.entry
    return entry?.id === except ? undefined : entry
  }

  tokenByHash(hash: string): Entry | undefined {
    return this.#byKey.get(TOKENS)?.get(hash)
  }

  /** Names of all types that hold documents, known to the registry or not. */
  typeNames(): string[] {
    return [...this.#collections.keys()]
  }

  /** Every document there is, tombstones included; nothing of it changes any more, whatever is published later. */
  everything(): { readonly type: string; readonly entry: Entry }[] {
    return [...this.#collections].flatMap(([type, { places }]) =>
      [...places.values()].map(({ entry }) => ({ type, entry })),
    )
  }

  /** Takes in one revision. */
  apply(revision: number, changes: Iterable<Applied>): void {
    this.publish(revision, finish(this.prepare(revision, changes)))
  }

  /** Does what can be done before a revision is published; nobody sees any of it. */
  *prepare(revision: number, changes: Iterable<Applied>): Steps<Prepared[]> {
    const prepared: Prepared[] = []
    for (const change of changes) {
      yield
      prepared.push(this.#prepare(revision, change))
    }
    return prepared
  }

  /** What it holds now, for work that takes longer than the state stays as it is. */
  freeze(): FrozenView {
    const listings = new Map([...this.#collections].map(([type, each]) => [type, each.listing()]))
    const view = new FrozenView(this, this.#cluster, listings, (released) => this.#frozen.delete(released))
    this.#frozen.add(view)
    return view
  }

  /** Makes it visible in one synchronous step: no reader sees half of it. */
  publish(revision: number, prepared: readonly Prepared[]): void {
    for (const item of prepared) {
      for (const view of this.#frozen) view.keep(item.type, item.id, this.#entry(item.type, item.id))
      if (item.place && item.entry) item.place.entry = item.entry
      else this.#put(item)
    }
    this.revision = revision
  }

  /** Takes in one document as of its own revision, while the state is being loaded. */
  put(revision: number, change: Applied): void {
    this.#put(this.#prepare(revision, change))
  }

  #prepare(revision: number, { type, id: given, after }: Applied): Prepared {
    const isCluster = type === this.#cluster.type.name
    const id = isCluster ? given : internalise(given)
    if (!after) return { type, id, entry: undefined, dns: undefined }
    const { document, deleted, size } = after
    const entry = { id, document, revision, deleted, size }
    if (isCluster) {
      this.#shareReferences(document)
      this.#raiseCeilings(entry)
    }
    const place = this.#collections.get(type)?.places.get(id)
    const isFoundAsBefore = isCluster
      ? place && sameDns(this.#cluster, place.entry, entry)
      : !this.#types.system.get(type)?.indexKeys
    const stays = place?.entry.deleted === false && !deleted && isFoundAsBefore
    const dns = isCluster ? dnsOf(this.#cluster, document) : undefined
    return { type, id, entry, dns, ...(stays && { place }) }
  }

  #put({ type, id, entry, dns }: Prepared): void {
    const collection = getOrSet(this.#collections, type, () => new Collection())
    if (type === this.#cluster.type.name) this.#unindex(collection.places.get(id)?.entry)
    this.#indexKeys(type, collection.places.get(id)?.entry, entry)
    const place = entry ? collection.set(entry) : collection.delete(id)
    if (!place || dns === undefined) return
    if (!place.entry.deleted) this.#liveByDns.set(dns, place)
    else this.#tombstonesByDns.set(dns, [...(this.#tombstonesByDns.get(dns) ?? []), place.entry])
  }

  /** Takes over all that another state holds, in one step. */
  become(other: State): void {
    if (this.#frozen.size > 0) {
      const former = new State(this.#types)
      former.become(this)
      for (const view of this.#frozen) view.moveOnto(former)
      this.#frozen.clear()
    }
    this.#collections = other.#collections
    this.#liveByDns = other.#liveByDns
    this.#tombstonesByDns = other.#tombstonesByDns
    this.#shared = other.#shared
    this.#byKey = other.#byKey
    this.ceilings = other.ceilings
    this.revision = other.revision
  }

  /** Sorts what was loaded now, so that no first reader has to wait for it. */
  settle(): void {
    for (const collection of this.#collections.values()) collection.live().next()
  }

  #raiseCeilings({ document, size }: Entry): void {
    const { ceilings } = this
    ceilings.size = Math.max(ceilings.size, size)
    ceilings.identity = Math.max(ceilings.identity, identityLength(this.#cluster, document))
    for (const { name, delivery } of this.#types.delivered) {
      const count = referencesOf(document, delivery).length
      if (count > (ceilings.references.get(name) ?? 0)) ceilings.references.set(name, count)
    }
  }

  #unindex(entry: Entry | undefined): void {
    if (!entry) return
    const dns = dnsOf(this.#cluster, entry.document)
    if (!entry.deleted) {
      if (this.#liveByDns.get(dns)?.entry === entry) this.#liveByDns.delete(dns)
      return
    }
    const others = (this.#tombstonesByDns.get(dns) ?? []).filter((other) => other !== entry)
    if (others.length > 0) this.#tombstonesByDns.set(dns, others)
    else this.#tombstonesByDns.delete(dns)
  }

  #indexKeys(type: string, old: Entry | undefined, entry: Entry | undefined): void {
    const system = this.#types.system.get(type)
    if (!system?.indexKeys) return
    const index = getOrSet(this.#byKey, type, () => new Map<string, Entry>())
    for (const key of old ? system.indexKeys(old.document) : []) index.delete(key)
    for (const key of entry ? system.indexKeys(entry.document) : []) index.set(key, entry as Entry)
  }

  /** Most references are alike in most clusters: all clusters then hold the same object. */
  #shareReferences(cluster: Document): void {
    for (const { name, delivery } of this.#types.delivered) {
      const references = referencesOf(cluster, delivery) as Reference[]
      if (references.length === 0) continue
      const shared = getOrSet(this.#shared, name, () => new Map<string, Reference>())
      for (let i = 0; i < references.length; i++) {
        const reference = references[i] as Reference
        const known = shared.get(reference.id)
        if (known === reference || !isPlain(reference, delivery.referenceDefaults)) continue
        references[i] =
          known ?? getOrSet(shared, reference.id, () => ({ ...reference, id: internalise(reference.id) }))
      }
    }
  }
}

function sameDns({ dns }: ClusterType, a: Entry, b: Entry): boolean {
  return a.document[dns] === b.document[dns]
}

/** An equal string that V8 compares by its address: look-ups by it in every poll are then cheaper. */
function internalise(text: string): string {
  return Object.keys({ [text]: 0 })[0] as string
}

/** What a place holds before it holds anything. */
const GONE: Entry = { id: '', document: { id: '' }, revision: 0, deleted: true, size: 0 }

/** The entries of one type; keeps the order of ids without sorting all of them on every write. */
class Collection {
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

  delete(id: string): undefined {
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

/** Both sorted lists as one, without what is gone and without doubles. */
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

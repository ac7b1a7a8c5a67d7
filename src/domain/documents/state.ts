// All documents in memory: the view that polls are served from.

import { getOrSet } from '../../base/get-or-set.ts'
import { finish, type Steps } from '../../base/steps.ts'
import { TOKENS } from '../access/token.ts'
import type { Document, Types } from '../types/resource-type.ts'
import { ClusterCeilings } from './cluster-ceilings.ts'
import { Collection, type Place } from './collection.ts'
import { FrozenView } from './frozen-view.ts'
import { internalise } from './internalise.ts'
import { SharedParts, shareText } from './shared-parts.ts'
import { StateIndexes } from './state-indexes.ts'
import type { DocumentVersion, Entry, PolledView } from './view.ts'

/** The version that a change ends with: all that the state needs of it. */
export interface Applied {
  readonly type: string
  readonly id: string
  readonly after: (DocumentVersion & Pick<Entry, 'size'>) | undefined
}

/** A change that is ready to be published. */
interface Prepared {
  readonly type: string
  readonly id: string
  readonly entry: Entry | undefined
  /** Set where a live document replaces a live one and every index keeps its place: an assignment publishes it. */
  readonly place: Place | undefined
}

export class State implements PolledView {
  revision = 0
  readonly #types: Types
  /** Types whose documents polls look up by their ids. */
  readonly #delivered: ReadonlySet<string>
  #collections = new Map<string, Collection>()
  #indexes: StateIndexes
  #parts: SharedParts
  #ceilings: ClusterCeilings
  readonly #frozen = new Set<FrozenView>()
  readonly #changedAt = new Map<string, number>()

  constructor(types: Types) {
    this.#types = types
    this.#delivered = new Set(types.delivered.map(({ name }) => name))
    this.#indexes = new StateIndexes(types)
    this.#parts = new SharedParts(types)
    this.#ceilings = new ClusterCeilings(types)
  }

  get ceilings(): ClusterCeilings {
    return this.#ceilings
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
    return this.#indexes.liveByDns.get(dns) ?? this.tombstonesWithDns(dns)[0]
  }

  tombstonesWithDns(dns: string): readonly Entry[] {
    return this.#indexes.tombstonesByDns.get(dns)
  }

  dnsHolder(dns: string, except?: string): Entry | undefined {
    const entry = this.#indexes.liveByDns.get(dns)
    return entry?.id === except ? undefined : entry
  }

  tokenByHash(hash: string): Entry | undefined {
    return this.#indexes.byKey(TOKENS, hash)
  }

  /** The last revision published by this process that changed a document of a type, or loaded them; 0 when none did. */
  changedAt(type: string): number {
    return this.#changedAt.get(type) ?? 0
  }

  stamp(type: string): number {
    return this.changedAt(type)
  }

  /** Names of all types that hold documents, known to the registry or not. */
  typeNames(): string[] {
    return [...this.#collections.keys()]
  }

  /** Returns every entry, tombstones included. Entries are immutable: the list stays true to this revision. */
  everything(): { readonly type: string; readonly entry: Entry }[] {
    return [...this.#collections].flatMap(([type, { places }]) =>
      [...places.values()].map(({ entry }) => ({ type, entry })),
    )
  }

  /** Prepares and publishes one revision. */
  apply(revision: number, changes: Iterable<Applied>): void {
    this.publish(revision, finish(this.prepare(revision, changes)))
  }

  /** Does what can be done before a revision is published; no reader sees any of it. */
  *prepare(revision: number, changes: Iterable<Applied>): Steps<Prepared[]> {
    const prepared: Prepared[] = []
    for (const change of changes) {
      yield
      prepared.push(this.#prepare(revision, change))
    }
    return prepared
  }

  /** Returns a view of this revision, for work that takes longer than the state stays as it is. */
  freeze(): FrozenView {
    const listings = new Map([...this.#collections].map(([type, each]) => [type, each.listing()]))
    const view = new FrozenView(this, this.#types.cluster, listings, (released) =>
      this.#frozen.delete(released),
    )
    this.#frozen.add(view)
    return view
  }

  /** Makes a prepared revision visible in one synchronous step: no reader sees half of it. */
  publish(revision: number, prepared: readonly Prepared[]): void {
    for (const item of prepared) {
      for (const view of this.#frozen) view.keep(item.type, item.id, this.#entry(item.type, item.id))
      if (item.place && item.entry) item.place.entry = item.entry
      else this.#put(item)
      this.#changedAt.set(item.type, revision)
    }
    this.revision = revision
  }

  /** Takes in one document as of its own revision, while the state is being loaded. */
  put(revision: number, change: Applied): void {
    this.#put(this.#prepare(revision, change))
  }

  #prepare(revision: number, { type, id: given, after }: Applied): Prepared {
    const isCluster = type === this.#types.cluster.type.name
    const id = this.#delivered.has(type) ? internalise(given) : given
    if (!after) return { type, id, entry: undefined, place: undefined }
    const { document, deleted, size } = after
    // With room for what is rendered of it, which takes less than to add it later.
    const entry: Entry = { id, document, revision, deleted, size, rendered: undefined }
    const place = this.#collections.get(type)?.places.get(id)
    if (isCluster) {
      this.#parts.share(document, place?.entry.document)
      this.#ceilings.raise(entry)
    } else {
      this.#shareClusterId(type, document)
    }
    return { type, id, entry, place: place && this.#keepsPlace(type, place, entry) ? place : undefined }
  }

  /** A document that is for one cluster names it by the string that the cluster itself has. */
  #shareClusterId(type: string, document: Document): void {
    const named = this.#types.system.get(type)?.clusterOf?.(document)
    const cluster = named && this.#entry(this.#types.cluster.type.name, named)
    if (cluster) shareText(document as Record<string, unknown>, cluster.id)
  }

  #keepsPlace(type: string, { entry: before }: Place, after: Entry): boolean {
    if (before.deleted || after.deleted) return false
    for (const index of this.#indexes.of(type)) if (!index.keepsPlace(before, after)) return false
    return true
  }

  #put({ type, id, entry }: Prepared): void {
    const collection = getOrSet(this.#collections, type, () => new Collection())
    const indexes = this.#indexes.of(type)
    const before = collection.places.get(id)?.entry
    if (before) for (const index of indexes) index.remove(before)
    if (!entry) {
      collection.delete(id)
      return
    }
    const place = collection.set(entry)
    for (const index of indexes) index.put(place)
  }

  /** Takes over all that another state holds, in one step. */
  become(other: State): void {
    if (this.#frozen.size > 0) {
      const former = new State(this.#types)
      former.become(this)
      for (const view of this.#frozen) view.moveOnto(former)
      this.#frozen.clear()
    }
    for (const type of [...this.typeNames(), ...other.typeNames()]) this.#changedAt.set(type, other.revision)
    this.#collections = other.#collections
    this.#indexes = other.#indexes
    this.#parts = other.#parts
    this.#ceilings = other.#ceilings
    this.revision = other.revision
  }

  /** Sorts the ids of what was loaded, so that the first reader need not wait for it. */
  settle(): void {
    for (const collection of this.#collections.values()) collection.live().next()
  }
}

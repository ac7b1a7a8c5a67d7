// The state as it stood at one revision, whatever is published later: what long work reads.

import { type ClusterType, canonicalDns, dnsOf } from '../types/resource-type.ts'
import type { Listing, Place } from './collection.ts'
import { Overlay } from './overlay.ts'
import type { Entry, View } from './view.ts'

const NO_LISTING: Listing = { ids: [], places: [], live: 0 }

/** Costs memory for every document that changes later, until it is released. */
export class FrozenView extends Overlay {
  readonly release: () => void
  readonly #cluster: ClusterType
  readonly #listings: ReadonlyMap<string, Listing>

  constructor(
    state: View,
    cluster: ClusterType,
    listings: ReadonlyMap<string, Listing>,
    release: (view: FrozenView) => void,
  ) {
    super(state, cluster, state.revision)
    this.#cluster = cluster
    this.#listings = listings
    this.release = () => release(this)
  }

  /** Called before a document changes, with the entry that it had. */
  keep(type: string, id: string, entry: Entry | undefined): void {
    if (!this.has(type, id)) this.lay(type, id, entry)
  }

  /** Called when the state is replaced as a whole: the view then reads a copy of what it was. */
  moveOnto(state: View): void {
    this.base = state
  }

  override *all(type: string): Generator<Entry> {
    const { ids, places } = this.#listings.get(type) ?? NO_LISTING
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i] as string
      // A place holds what it held when the view was made, unless the document has changed since: then it is laid here.
      const entry = this.has(type, id) ? this.get(type, id) : (places[i] as Place).entry
      if (entry && !entry.deleted) yield entry
    }
  }

  /** Goes through all ids: which of them are tombstones in the state may change meanwhile. */
  override *tombstones(type: string): Generator<Entry> {
    for (const id of this.#listings.get(type)?.ids ?? []) {
      const entry = this.tombstone(type, id)
      if (entry) yield entry
    }
  }

  override count(type: string): number {
    return this.#listings.get(type)?.live ?? 0
  }

  override tombstonesWithDns(dns: string): readonly Entry[] {
    const { name } = this.#cluster.type
    const wanted = canonicalDns(dns)
    const unchanged = super.tombstonesWithDns(dns).filter(({ id }) => !this.has(name, id))
    const kept = [...this.laid(name).keys()].flatMap((id) => this.tombstone(name, id) ?? [])
    return [...unchanged, ...kept.filter(({ document }) => dnsOf(this.#cluster, document) === wanted)]
  }
}

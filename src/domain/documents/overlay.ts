// A view with other entries laid over it: what would be, or what has been.
import { getOrSet } from '../../base/get-or-set.ts'
import { type ClusterType, canonicalDns, dnsOf } from '../types/resource-type.ts'
import type { Entry, View } from './view.ts'

const NOTHING: ReadonlyMap<string, unknown> = new Map()

/** Stamps of overlays are negative, those of the state are revisions. */
let lastStamp = 0

export class Overlay implements View {
  readonly revision: number
  protected base: View
  readonly #cluster: ClusterType
  readonly #laid = new Map<string, Map<string, Entry | undefined>>()
  /** The clusters that are laid with a name: mostly it is one, which takes no set. */
  readonly #dnsIds = new Map<string, string | Set<string>>()
  readonly #stamps = new Map<string, number>()

  constructor(base: View, cluster: ClusterType, revision: number) {
    this.base = base
    this.#cluster = cluster
    this.revision = revision
  }

  /** Puts an entry in the place of what the base has; undefined hides that. */
  lay(type: string, id: string, entry: Entry | undefined): void {
    getOrSet(this.#laid, type, () => new Map()).set(id, entry)
    this.#stamps.set(type, --lastStamp)
    if (!entry || type !== this.#cluster.type.name) return
    const name = dnsOf(this.#cluster, entry.document)
    const ids = this.#dnsIds.get(name)
    if (ids === undefined) this.#dnsIds.set(name, id)
    else if (typeof ids !== 'string') ids.add(id)
    else if (ids !== id) this.#dnsIds.set(name, new Set([ids, id]))
  }

  has(type: string, id: string): boolean {
    return this.#laid.get(type)?.has(id) ?? false
  }

  /** Returns what is laid over the base, by id. */
  laid(type: string): ReadonlyMap<string, unknown> {
    return this.#laid.get(type) ?? NOTHING
  }

  /** The types of what is laid over the base. */
  laidTypes(): Iterable<string> {
    return this.#laid.keys()
  }

  get(type: string, id: string): Entry | undefined {
    const laid = this.#laid.get(type)
    if (!laid?.has(id)) return this.base.get(type, id)
    const entry = laid.get(id)
    return entry?.deleted === false ? entry : undefined
  }

  tombstone(type: string, id: string): Entry | undefined {
    const laid = this.#laid.get(type)
    if (!laid?.has(id)) return this.base.tombstone(type, id)
    const entry = laid.get(id)
    return entry?.deleted ? entry : undefined
  }

  *tombstones(type: string): Generator<Entry> {
    const laid = this.#laid.get(type)
    for (const entry of this.base.tombstones(type)) if (!laid?.has(entry.id)) yield entry
    for (const entry of laid?.values() ?? []) if (entry?.deleted) yield entry
  }

  *all(type: string): Generator<Entry> {
    const laid = this.#laid.get(type)
    const added: Entry[] = []
    for (const [id, entry] of laid ?? []) {
      if (entry?.deleted === false && !this.base.get(type, id)) added.push(entry)
    }
    added.sort((a, b) => (a.id < b.id ? -1 : 1))
    let next = 0
    for (const entry of this.base.all(type)) {
      for (let first = added[next]; first && first.id < entry.id; first = added[++next]) yield first
      const current = laid?.has(entry.id) ? this.get(type, entry.id) : entry
      if (current) yield current
    }
    yield* added.slice(next)
  }

  count(type: string): number {
    let count = this.base.count(type)
    for (const [id, entry] of this.#laid.get(type) ?? []) {
      count += Number(entry?.deleted === false) - Number(this.base.get(type, id) !== undefined)
    }
    return count
  }

  dnsHolder(dns: string, except?: string): Entry | undefined {
    const name = canonicalDns(dns)
    const type = this.#cluster.type.name
    const ids = this.#dnsIds.get(name) ?? []
    for (const id of typeof ids === 'string' ? [ids] : ids) {
      const entry = id === except ? undefined : this.get(type, id)
      if (entry && dnsOf(this.#cluster, entry.document) === name) return entry
    }
    const base = this.base.dnsHolder(name, except)
    return base && !this.has(type, base.id) ? base : undefined
  }

  /** Returns those of the base: tombstones that are laid over it are not among them. */
  tombstonesWithDns(dns: string): readonly Entry[] {
    return this.base.tombstonesWithDns(dns)
  }

  stamp(type: string): number {
    return this.#stamps.get(type) ?? this.base.stamp(type)
  }

  /** The bounds of the base: what is laid over it is checked on its own. */
  get ceilings() {
    return this.base.ceilings
  }
}

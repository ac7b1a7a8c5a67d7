// A view with changes laid over it: what the documents would be if they were committed.
import { getOrSet } from './get-or-set.ts'
import { equalJson } from './json.ts'
import { type ClusterType, canonicalDns, type Document, dnsOf } from './resource-type.ts'
import type { Change, Entry, PolledView, Slot, View } from './view.ts'

/** A document that commands have laid hands on. */
export interface Touched {
  readonly type: string
  readonly id: string
  readonly before: Entry | undefined
  after: Slot | undefined
  /** Whether `after` differs from `before`. */
  changed: boolean
  origin: Origin
}

/** Which part of what was sent shaped a document, so that problems can point there. */
export interface Origin {
  /** JSON pointer to the payload in what was sent. */
  readonly path: string
  /** JSON pointer to where the payload went in the document; the whole of it when left out. */
  readonly at?: string
}

/** Where a place in the document stands in what was sent, as near as it can be told. */
export function pointerTo({ path, at = '' }: Origin, place: string): string {
  return place === at || place.startsWith(`${at}/`) ? path + place.slice(at.length) : path
}

export class Draft implements View {
  /** The revision that the draft would be committed as. */
  readonly revision: number
  readonly #base: PolledView
  readonly #cluster: ClusterType
  readonly #touched = new Map<string, Map<string, Touched>>()
  readonly #dnsIds = new Map<string, Set<string>>()

  constructor(base: PolledView, cluster: ClusterType) {
    this.#base = base
    this.revision = base.revision + 1
    this.#cluster = cluster
  }

  get(type: string, id: string): Entry | undefined {
    const touched = this.#touched.get(type)?.get(id)
    if (!touched) return this.#base.get(type, id)
    return touched.after?.deleted === false ? this.#entry(touched) : undefined
  }

  tombstone(type: string, id: string): Entry | undefined {
    const touched = this.#touched.get(type)?.get(id)
    if (!touched) return this.#base.tombstone(type, id)
    return touched.after?.deleted ? this.#entry(touched) : undefined
  }

  *all(type: string): Generator<Entry> {
    const touched = this.#touched.get(type)
    const added = [...(touched?.values() ?? [])]
      .filter(({ before, after }) => after?.deleted === false && (!before || before.deleted))
      .map((item) => item.id)
      .sort()
    let next = 0
    const take = (id: string): Entry => {
      next++
      return this.get(type, id) as Entry
    }
    for (const entry of this.#base.all(type)) {
      for (let id = added[next]; id !== undefined && id < entry.id; id = added[next]) yield take(id)
      const current = touched?.has(entry.id) ? this.get(type, entry.id) : entry
      if (current) yield current
    }
    for (let id = added[next]; id !== undefined; id = added[next]) yield take(id)
  }

  count(type: string): number {
    let count = this.#base.count(type)
    for (const { before, after } of this.#touched.get(type)?.values() ?? []) {
      count += Number(after?.deleted === false) - Number(before?.deleted === false)
    }
    return count
  }

  /** The live cluster, other than `except`, that has this DNS name. */
  dnsHolder(dns: string, except: string): Entry | undefined {
    const name = canonicalDns(dns)
    const type = this.#cluster.type.name
    for (const id of this.#dnsIds.get(name) ?? []) {
      const entry = id === except ? undefined : this.get(type, id)
      if (entry && dnsOf(this.#cluster, entry.document) === name) return entry
    }
    const base = this.#base.clusterByDns(name)
    const stands = base && !base.deleted && base.id !== except && !this.#touched.get(type)?.has(base.id)
    return stands ? base : undefined
  }

  /** Lays a document over the base. */
  put(type: string, document: Document, origin: Origin, deleted = false): void {
    this.#set(type, document.id, { document, deleted, json: JSON.stringify(document) }, origin)
    if (type !== this.#cluster.type.name) return
    getOrSet(this.#dnsIds, dnsOf(this.#cluster, document), () => new Set()).add(document.id)
  }

  remove(type: string, id: string, origin: Origin): void {
    this.#set(type, id, undefined, origin)
  }

  /** Everything laid over the base so far, whether it differs or not. */
  touched(): readonly Readonly<Touched>[] {
    return [...this.#touched.values()].flatMap((byId) => [...byId.values()])
  }

  /** What really differs from the base. */
  changes(): Change[] {
    return [...this.#touched.values()].flatMap((byId) => [...byId.values()].filter(({ changed }) => changed))
  }

  #set(type: string, id: string, after: Slot | undefined, origin: Origin): void {
    const byId = getOrSet(this.#touched, type, () => new Map<string, Touched>())
    const known = byId.get(id)
    const before = known ? known.before : (this.#base.get(type, id) ?? this.#base.tombstone(type, id))
    const changed = differs(before, after)
    if (known) Object.assign(known, { after, changed, origin })
    else byId.set(id, { type, id, before, after, changed, origin })
  }

  #entry(touched: Touched): Entry {
    const { id, before, changed } = touched
    const { document, deleted, json } = touched.after as Slot
    if (before && !changed) return before
    return { id, document, revision: this.revision, deleted, size: json.length }
  }
}

function differs(before: Entry | undefined, after: Slot | undefined): boolean {
  if (!before || !after) return Boolean(before) !== Boolean(after)
  return before.deleted !== after.deleted || !equalJson(before.document, after.document)
}

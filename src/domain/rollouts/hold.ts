// Holds: a cluster keeps being served exactly what it was served when it was held.
import type { Ceilings, Entry, View } from '../documents/view.ts'
import { type DeliveredType, type Document, referencesOf, type Types } from '../types/resource-type.ts'

/** The system type of holds; the id is that of the cluster. */
export const HOLDS = 'holds'

export interface Hold {
  /** Of the cluster. */
  readonly id: string
  /** RFC 3339, UTC; without it the hold lasts until it is released. */
  readonly until?: string
  readonly reason: string
  readonly held_by: string
  readonly since: string
  /** The cluster and what it was assigned, as they were, by type. */
  readonly documents: { readonly [type: string]: readonly Document[] }
}

export function asHold({ document }: Pick<Entry, 'document'>): Hold {
  return document as unknown as Hold
}

/** The documents that the answers to a cluster are made of. `served` is the view that it is served from. */
export function documentsOf(types: Types, served: View, cluster: Entry): Hold['documents'] {
  const { name } = types.cluster.type
  const definitions = types.delivered.map((type: DeliveredType) => {
    const ids = new Set(referencesOf(cluster.document, type.delivery).map(({ id }) => id))
    const documents = [...ids].flatMap((id) => served.get(type.name, id)?.document ?? [])
    return [type.name, documents] as const
  })
  return { [name]: [cluster.document], ...Object.fromEntries(definitions) }
}

/** What a held cluster is rendered from: nothing but the documents of its hold. */
export class HeldView implements View {
  readonly revision: number
  readonly #base: View
  readonly #entries = new Map<string, Map<string, Entry>>()

  constructor(base: View, hold: Entry) {
    this.#base = base
    this.revision = hold.revision
    for (const [type, documents] of Object.entries(asHold(hold).documents))
      this.#entries.set(type, new Map(documents.map((document) => [document.id, entryOf(document, hold)])))
  }

  get ceilings(): Ceilings {
    return this.#base.ceilings
  }

  stamp(type: string): number {
    return this.#base.stamp(type)
  }

  get(type: string, id: string): Entry | undefined {
    return this.#entries.get(type)?.get(id)
  }

  tombstone(type: string, id: string): Entry | undefined {
    return this.#base.tombstone(type, id)
  }

  tombstones(type: string): Iterable<Entry> {
    return this.#base.tombstones(type)
  }

  *all(type: string): Generator<Entry> {
    for (const entry of this.#entries.get(type)?.values() ?? []) yield entry
  }

  count(type: string): number {
    return this.#entries.get(type)?.size ?? 0
  }

  dnsHolder(dns: string, except?: string): Entry | undefined {
    return this.#base.dnsHolder(dns, except)
  }

  tombstonesWithDns(dns: string): readonly Entry[] {
    return this.#base.tombstonesWithDns(dns)
  }
}

function entryOf(document: Document, { revision }: Entry): Entry {
  return { id: document.id, document, deleted: false, size: JSON.stringify(document).length, revision }
}

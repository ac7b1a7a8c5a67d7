// What rules and renderings read: one consistent set of documents, wherever it comes from.
import type { Document } from '../types/resource-type.ts'

/** A document as it stands in a view. Entries are immutable: a change makes a new one. */
export interface Entry {
  readonly id: string
  readonly document: Document
  /** The revision that made it so; its ETag. */
  readonly revision: number
  /** A deleted cluster stays as a tombstone, so that its polls can be answered with no inputs. */
  readonly deleted: boolean
  /** Length of its JSON, for a quick upper bound of answer sizes. */
  readonly size: number
  /** A cache of render-inputs, and of nobody else: what polls repeat of this entry. It goes with the entry. */
  rendered?: object
}

/** What a change leaves behind. */
export interface Slot {
  readonly document: Document
  readonly deleted: boolean
  /** The document as JSON, made once for the store. */
  readonly json: string
}

export interface Change {
  readonly type: string
  readonly id: string
  readonly before: Entry | undefined
  readonly after: Slot | undefined
}

export interface View {
  /** The last revision that this view includes. */
  readonly revision: number
  /** A live document. */
  get(type: string, id: string): Entry | undefined
  /** What deleting left of a document. */
  tombstone(type: string, id: string): Entry | undefined
  /** What deleting left of all documents of a type, in any order; costs no more than there are. */
  tombstones(type: string): Iterable<Entry>
  /** All live documents, ordered by id. */
  all(type: string): Iterable<Entry>
  /** How many documents are live. */
  count(type: string): number
  /** The live cluster, other than `except`, that has this DNS name. */
  dnsHolder(dns: string, except?: string): Entry | undefined
  /** Deleted clusters that had this DNS name. */
  tombstonesWithDns(dns: string): readonly Entry[]
  /** What no cluster passes. */
  readonly ceilings: Ceilings
}

/** A view that can be polled. */
export interface PolledView extends View {
  /** The live cluster of that DNS name, or else a tombstone that had it. */
  clusterByDns(dns: string): Entry | undefined
  /** The token that has, or had, a secret with this digest. */
  tokenByHash(hash: string): Entry | undefined
}

/** Upper bounds over all clusters, cheap to keep and good enough to rule most things out. */
export interface Ceilings {
  /** Length of a cluster's JSON. */
  readonly size: number
  /** Characters of what an input says of its cluster. */
  readonly identity: number
  /** References of one cluster, by type. */
  readonly references: ReadonlyMap<string, number>
}

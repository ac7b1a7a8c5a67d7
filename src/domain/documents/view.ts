// What rules and renderings read: one consistent set of documents, wherever it comes from.
import type { Document } from '../types/resource-type.ts'

/** A document at a version: live, or the tombstone that deleting it left. */
export interface DocumentVersion {
  readonly document: Document
  /** A deleted cluster stays as a tombstone, so that its polls can be answered with no inputs. */
  readonly deleted: boolean
}

/** A version as it stands in a view. Entries are immutable: a change makes a new one. */
export interface Entry extends DocumentVersion {
  readonly id: string
  /** The revision that made this version; its ETag. */
  readonly revision: number
  /** Length of its JSON, for a quick upper bound of answer sizes. */
  readonly size: number
  /**
   * What polls would make anew of this entry, and is dropped with it: of clusters it belongs to rendered-cluster
   * alone, of definitions to render-inputs, of tokens to identify.
   */
  rendered?: object | undefined
}

/** What a change makes of a document. */
export interface NewVersion extends DocumentVersion {
  /** The document as JSON, for the store. */
  readonly json: string
  /** The length of that. */
  readonly size: number
}

export interface Change {
  readonly type: string
  readonly id: string
  readonly before: Entry | undefined
  readonly after: NewVersion | undefined
}

export interface View {
  /** The last revision that this view includes. */
  readonly revision: number
  /** Returns a live document. */
  get(type: string, id: string): Entry | undefined
  /** Returns the tombstone of a deleted document. */
  tombstone(type: string, id: string): Entry | undefined
  /** Returns all tombstones of a type, in any order; costs no more than there are. */
  tombstones(type: string): Iterable<Entry>
  /** Returns all live documents of a type, ordered by id. */
  all(type: string): Iterable<Entry>
  /** Returns how many documents of a type are live. */
  count(type: string): number
  /** Returns the live cluster, other than `except`, that has this DNS name. */
  dnsHolder(dns: string, except?: string): Entry | undefined
  /** Returns the deleted clusters that had this DNS name. */
  tombstonesWithDns(dns: string): readonly Entry[]
  /** Upper bounds that no cluster exceeds. */
  readonly ceilings: Ceilings
  /** Stays the same as long as no document of a type changes in this view. */
  stamp(type: string): number
}

/** A view that can be polled. */
export interface PolledView extends View {
  /** Returns the live cluster of a DNS name, or else a tombstone that had it. */
  clusterByDns(dns: string): Entry | undefined
  /** Returns the token that has, or had, a secret with this digest. */
  tokenByHash(hash: string): Entry | undefined
}

/** Upper bounds over all clusters: cheap to keep, and good enough to rule most things out. */
export interface Ceilings {
  /** Length of a cluster's JSON. */
  readonly size: number
  /** Characters of the identity that every input carries. */
  readonly identity: number
  /** References of one cluster, by type. */
  readonly references: ReadonlyMap<string, number>
}

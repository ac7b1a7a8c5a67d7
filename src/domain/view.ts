// What rules and renderings read: one consistent set of documents, wherever it comes from.
import type { Document } from './resource-type.ts'

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
  /** All live documents, ordered by id. */
  all(type: string): Iterable<Entry>
  /** How many documents are live. */
  count(type: string): number
}

/** A view that can be polled. */
export interface PolledView extends View {
  /** The live cluster of that DNS name, or else a tombstone that had it. */
  clusterByDns(dns: string): Entry | undefined
}

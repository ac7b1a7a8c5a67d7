// What survives a restart: the documents, and beside them the log of every change. Small and dumb on purpose.
import type { Document } from '../domain/resource-type.ts'
import type { Applied } from '../domain/state.ts'

/** Who asked for a revision, when and why. */
export interface RevisionMeta {
  /** RFC 3339, UTC. */
  readonly time: string
  readonly actor: string
  readonly message: string | null
  readonly request_id: string
}

/** What a change leaves in the store: the document as JSON, or nothing. */
export interface NewChange {
  readonly type: string
  readonly id: string
  readonly after: { readonly json: string; readonly deleted: boolean } | undefined
}

export interface NewRevision extends RevisionMeta {
  readonly changes: readonly NewChange[]
}

export interface RecordedChange {
  readonly type: string
  readonly id: string
  readonly before: Document | null
  readonly after: Document | null
  /** True where `before` or `after` is a tombstone: the document as it was when it was deleted. */
  readonly before_deleted: boolean
  readonly after_deleted: boolean
}

export interface RecordedRevision extends RevisionMeta {
  readonly revision: number
  /** How many changes it holds; `changes` may be a part of them. */
  readonly change_count: number
  readonly changes: readonly RecordedChange[]
}

export interface HistoryQuery {
  /** Only this revision. */
  readonly revision?: number
  /** Only revisions before this one. */
  readonly before?: number
  /** Only revisions that changed this document, with only its change in each. */
  readonly document?: { readonly type: string; readonly id: string }
  readonly limit: number
  /** Which changes of each revision to answer. */
  readonly changeOffset?: number
  readonly changeLimit: number
}

export type CommitResult = { readonly ok: true } | { readonly ok: false; readonly head: number }

/** Every method throws StoreError when the store cannot do its part; nothing is then half done. */
export interface Store {
  /**
   * Hands over every document, tombstones included, of one consistent moment, each with the revision that made it
   * so; answers the last revision of that moment, 0 for an empty store.
   */
  load(take: (revision: number, document: Applied) => void): Promise<number>

  /** The last committed revision, by whatever process. */
  head(): Promise<number>

  /**
   * Writes the changes as revision base + 1, all of them or none, durable when it returns. When the store has moved
   * past base nothing is written and `head` says where it is. Records what each document was before.
   */
  commit(base: number, revision: NewRevision): Promise<CommitResult>

  /** All revisions after the given one, oldest first and without gaps. */
  changesSince(
    revision: number,
  ): AsyncIterable<{ readonly revision: number; readonly changes: readonly Applied[] }>

  /** Recorded revisions, newest first; the changes of each in the order they were made. */
  history(query: HistoryQuery): Promise<RecordedRevision[]>

  /** Calls back soon after another process may have committed; answers how to stop that. */
  watch(moved: () => void): () => void

  close(): Promise<void>
}

/** The store is away, full or broken. What it says is fit for an operator's eyes. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
}

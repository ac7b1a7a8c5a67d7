// What survives a restart: the documents, and beside them the log of every change. Small and dumb on purpose.
import type { BeforeAndAfter } from '../domain/describe-change.ts'
import type { Document } from '../domain/resource-type.ts'
import type { Applied } from '../domain/state.ts'

/** Who asked for a revision, when, from where, and why. */
export interface RevisionMeta {
  /** RFC 3339, UTC. */
  readonly time: string
  readonly actor: string
  readonly message: string | null
  readonly request_id: string
  readonly client_address: string | null
  /** What was asked for, in a line. */
  readonly operation: string
}

/** What a change leaves in the store: the document as JSON, or nothing. */
export interface NewChange {
  readonly type: string
  readonly id: string
  readonly after: { readonly json: string; readonly deleted: boolean } | undefined
}

export interface NewRevision extends RevisionMeta {
  readonly changes: readonly NewChange[]
  /** Kept with the revision, or not at all. */
  readonly remember?: Remembered
}

/** The answer to a write that may be sent again. */
export interface Remembered {
  readonly key: string
  /** Tells a repetition from another request with the same key. */
  readonly fingerprint: string
  /** RFC 3339, UTC. */
  readonly time: string
  readonly answer: string
}

const REMEMBERED_FOR_MS = 24 * 60 * 60 * 1000

/** Answers from before this time are forgotten by now. */
export function forgottenBefore(now: string): string {
  return new Date(Date.parse(now) - REMEMBERED_FOR_MS).toISOString()
}

export interface RecordedRevision extends RevisionMeta {
  readonly revision: number
  /** SHA-256 of its content and of its predecessor's hash, in hex. */
  readonly hash: string
  /** How many changes it holds; `changes` may be a part of them. */
  readonly change_count: number
  readonly changes: readonly BeforeAndAfter[]
}

/** One document, in a range of revisions. */
export interface DocumentSpan {
  readonly type: string
  readonly id: string
  /** The first revision that counts. */
  readonly from?: number
  /** The first one that does not count any more. */
  readonly until?: number
}

export interface HistoryQuery {
  /** Only this revision. */
  readonly revision?: number
  /** Only revisions before this one. */
  readonly before?: number
  /** Only revisions that changed one of these, with only those changes in each. */
  readonly documents?: readonly DocumentSpan[]
  /** Only revisions that changed a document of this type, with only those changes in each. */
  readonly type?: string
  readonly actor?: string
  /** Only from this time on, and only up to this time (RFC 3339, UTC). */
  readonly since?: string
  readonly until?: string
  /** Only where this text is in the message, the operation, the actor or the request id, in either case. */
  readonly text?: string
  readonly limit: number
  /** Which changes of each revision to answer. */
  readonly changeOffset?: number
  readonly changeLimit: number
}

/** A change as it is stored, its documents as JSON. */
export interface LoggedChange {
  readonly type: string
  readonly id: string
  readonly before: string | null
  readonly before_deleted: boolean
  /** The revision that had made it so; 0 when there was none. */
  readonly before_revision: number
  readonly after: string | null
  readonly after_deleted: boolean
}

/** A part of a revision's changes, in their order; the last part says so. */
export interface LogSlice {
  readonly revision: number
  readonly meta: RevisionMeta
  readonly hash: string
  readonly change_count: number
  readonly changes: readonly LoggedChange[]
  readonly last: boolean
}

/** A document as it is stored, and the revision that made it so. */
export interface StoredDocument {
  readonly type: string
  readonly id: string
  readonly revision: number
  readonly deleted: boolean
  readonly json: string
}

/** A document as it stood at some revision, which had made it so. */
export interface PastDocument {
  readonly type: string
  readonly id: string
  readonly was:
    | {
        readonly document: Document
        readonly deleted: boolean
        readonly size: number
        readonly revision: number
      }
    | undefined
}

/** When a token was last used, and from where. */
export interface TokenUse {
  readonly id: string
  /** RFC 3339, UTC. */
  readonly time: string
  readonly address: string | null
}

/** Where the log begins once its older part was given up. */
export interface Anchor {
  /** The last revision that was given up, with its time and hash. */
  readonly revision: number
  readonly time: string
  readonly hash: string
  /** SHA-256 of all documents as they stood then. */
  readonly state: string
}

export type CommitResult = { readonly ok: true } | { readonly ok: false; readonly head: number }

/** Every method throws StoreError when the store cannot do its part; nothing is then half done. */
export interface Store {
  /**
   * Hands over every document, tombstones included, of one consistent moment, each with the revision that made it
   * so; answers the last revision of that moment, 0 for an empty store.
   */
  load(take: (revision: number, document: Applied) => void): Promise<number>

  /** The same as they are stored, a few at a time, and so not of one moment. */
  documents(): AsyncIterable<StoredDocument>

  /** The last committed revision, by whatever process. */
  head(): Promise<number>

  /**
   * Writes the changes as revision base + 1, all of them or none, durable when it returns. When the store has moved
   * past base, or remembers the key already, nothing is written and `head` says where it is. Records what each document
   * was before, and the hash. Its time is not before that of the last revision, even if the clock was set back.
   */
  commit(base: number, revision: NewRevision): Promise<CommitResult>

  /** All revisions after the given one, oldest first and without gaps. */
  changesSince(
    revision: number,
  ): AsyncIterable<{ readonly revision: number; readonly changes: readonly Applied[] }>

  /** Recorded revisions, newest first; the changes of each in the order they were made. */
  history(query: HistoryQuery): Promise<RecordedRevision[]>

  /** The log after `since`, up to `until` where that is given, oldest first and without gaps. */
  log(since: number, until?: number): AsyncIterable<LogSlice>

  /**
   * Every document that was changed after a revision, as it stood at that revision; where `only` is given, only those
   * of that type, or with an id only that one. Fails when the log does not reach back that far.
   */
  changedAfter(
    revision: number,
    only?: { readonly type: string; readonly id?: string },
  ): AsyncIterable<PastDocument>

  /** The last revision at or before a time (RFC 3339, UTC), if the log has one. */
  revisionAt(time: string): Promise<number | undefined>

  /** Where the log begins, when it does not begin with revision 1. */
  anchor(): Promise<Anchor | undefined>

  /**
   * Gives up the log up to and including the anchor's revision. What comes after it stays as it is. Does nothing when
   * more than that was given up already.
   */
  prune(anchor: Anchor): Promise<void>

  /** What is remembered under a key at this time (RFC 3339, UTC); answers are kept for a day. */
  recall(key: string, now: string): Promise<Remembered | undefined>

  /** Keeps the answer of a write that changed nothing, unless another one is remembered under the key. */
  remember(remembered: Remembered): Promise<void>

  /** When these tokens were last used, those of them that were. */
  usesOf(ids: readonly string[]): Promise<TokenUse[]>

  /** Keeps the newest use of each token; outside the log, and no revision. */
  recordUses(uses: readonly TokenUse[]): Promise<void>

  /** Calls back soon after another process may have committed; answers how to stop that. */
  watch(moved: () => void): () => void

  close(): Promise<void>
}

/** The store is away, full or broken. What it says is fit for an operator's eyes. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
}

/** What a store says that is asked for what was given up. */
export function prunedError(revision: number, anchor: Anchor): StoreError {
  return new StoreError(`history reaches back to revision ${anchor.revision}, not to ${revision}, any more`)
}

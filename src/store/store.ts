// What survives a restart: documents with the log of every change, and beside it notes, idempotency records and leases.
import type { BeforeAndAfter } from '../domain/documents/describe-change.ts'
import type { Applied } from '../domain/documents/state.ts'
import type { IdempotencyRecord, IdempotencyRecords } from './idempotency.ts'
import type { Leases } from './leases.ts'
import type { Notes } from './notes.ts'

/** Who asked for a revision, when, from where, and why. */
export interface RevisionMeta {
  /** RFC 3339, UTC. */
  readonly time: string
  readonly actor: string
  readonly message: string | null
  readonly request_id: string
  readonly client_address: string | null
  /** The request, in one line. */
  readonly operation: string
}

/** A document as JSON at a version: which revision made it so, and whether it is a tombstone. */
export interface DocumentVersion {
  readonly type: string
  readonly id: string
  readonly revision: number
  readonly deleted: boolean
  readonly json: string
}

/** What a change leaves of a document; undefined when it removes it. */
export interface NewChange {
  readonly type: string
  readonly id: string
  readonly after: Pick<DocumentVersion, 'json' | 'deleted'> | undefined
}

export interface NewRevision extends RevisionMeta {
  readonly changes: readonly NewChange[]
  /** Saved in the transaction of the revision. */
  readonly idempotency?: IdempotencyRecord
  /** The hash that it must have: of a revision that is copied from another store. */
  readonly hash?: string
}

/** Where a log ends: its last revision, 0 for none, and the hash of that, empty where there is none. */
export interface Head {
  readonly revision: number
  readonly hash: string
}

export interface StoreHead extends Head {
  /** Set while an import is incomplete: serving the store would take clusters back to an older state. */
  readonly importInProgress?: true
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
  /** Which changes of each revision to return. */
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

/** A document as it stood at some revision; undefined when it did not exist. */
export interface PastDocument {
  readonly type: string
  readonly id: string
  readonly was: (NonNullable<Applied['after']> & { readonly revision: number }) | undefined
}

/** Where a log begins whose older part was pruned. */
export interface Anchor {
  /** The last revision that was pruned, with its time and hash. */
  readonly revision: number
  readonly time: string
  readonly hash: string
  /** SHA-256 of all documents as they stood then. */
  readonly state: string
}

export type CommitResult =
  | { readonly ok: true; readonly hash: string }
  /** Where the store is instead. */
  | { readonly ok: false; readonly head: number }

/** Versions of the schema, before and after. */
export interface Migrated {
  readonly from: number
  readonly to: number
}

/** The log as a process follows it. Every method throws StoreError when the store cannot do its part; nothing is then half done. */
export interface Log {
  /** No other process can commit: there is nothing to follow. */
  readonly isPrivate?: true

  /**
   * Hands over every document, tombstones included, of one consistent moment, each with the revision that made it so;
   * returns where the log ended at that moment.
   */
  load(take: (revision: number, document: Applied) => void): Promise<Head>

  /** Where the log ends, whatever process committed last. */
  head(): Promise<StoreHead>

  /** The hash of a revision; undefined when the log does not hold it, and is not pruned right there. */
  hashOf(revision: number): Promise<string | undefined>

  /** All revisions after the given one, oldest first and without gaps. */
  changesSince(revision: number): AsyncIterable<Head & { readonly changes: readonly Applied[] }>

  /** Calls back soon after another process may have committed; returns a function that stops it. */
  watch(moved: () => void): () => void

  /**
   * Writes the changes as revision base + 1, and of any more as base + 2 and so on: all of them or none, durable when it
   * returns, with the hash of the last. When the store is not at base, or has a valid record under an idempotency key,
   * nothing is written and `head` says where the store is. Records what each document was before, and the hash. The time
   * of a revision is not before that of the last one, even if the clock was moved back.
   */
  commit(base: number, ...revisions: readonly NewRevision[]): Promise<CommitResult>

  /**
   * Runs something while no other process is in its own `withWriteLock`, where waiting for that pays: a commit without
   * the lock still passes. Where the lock cannot be had soon, it runs without.
   */
  withWriteLock<T>(run: () => Promise<T>): Promise<T>
}

/** What the log recorded. */
export interface LogReader {
  /** Every document, tombstones included, read a page at a time and so not of one moment. */
  documents(): AsyncIterable<DocumentVersion>

  /** The log after `since`, up to `until` where that is given, oldest first and without gaps. */
  log(since: number, until?: number): AsyncIterable<LogSlice>

  /** Recorded revisions, newest first; the changes of each in the order they were made. */
  history(query: HistoryQuery): Promise<RecordedRevision[]>

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
}

/** Where a log begins, and whether all of it is there. */
export interface LogMaintenance {
  /** Fills an empty store with the documents as they stood where another log begins. */
  initFromSnapshot(anchor: Anchor, documents: readonly DocumentVersion[]): Promise<void>

  /**
   * Prunes the log up to and including the anchor's revision. What comes after it stays as it is. Does nothing when more
   * than that was pruned already.
   */
  prune(anchor: Anchor): Promise<void>

  /** Sets or removes the marker of an import, which outlives a crash; while it is set, `head` says so. */
  setImportInProgress(inProgress: boolean): Promise<void>
}

/** A store of documents and their log, with what is kept beside the log. */
export interface Store extends Log, LogReader, LogMaintenance {
  readonly notes: Notes
  readonly idempotency: IdempotencyRecords
  readonly leases: Leases
  close(): Promise<void>
}

/** The store is unreachable, full or broken. The message is fit for an operator's eyes. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  /** Whether the store cannot be reached now, and may well be later. */
  readonly isTransient: boolean

  constructor(
    message: string,
    { isTransient = false, ...options }: ErrorOptions & { isTransient?: boolean } = {},
  ) {
    super(message, options)
    this.isTransient = isTransient
  }
}

/** For reading what was pruned. */
export function prunedError(revision: number, anchor: Anchor): StoreError {
  return new StoreError(`history reaches back to revision ${anchor.revision}, not to ${revision}, any more`)
}

/** For filling a store that holds something. */
export function notEmptyError(): StoreError {
  return new StoreError('the store is not empty')
}

/** For reading what is pruned meanwhile. */
export function prunedMeanwhileError(revision: number): StoreError {
  return new StoreError(`revision ${revision} was given up while it was read`)
}

/** For serving or copying a store that an import has not filled yet. */
export function importInProgressError(): StoreError {
  return new StoreError(
    'the store is being filled by copy, restore or bundle import: let that finish, or run it again if it was broken off',
    { isTransient: true },
  )
}

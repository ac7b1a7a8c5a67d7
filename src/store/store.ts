// What survives a restart: the documents, and beside them the log of every change. Small and dumb on purpose.
import type { BeforeAndAfter } from '../domain/documents/describe-change.ts'
import type { Applied } from '../domain/documents/state.ts'
import type { Document } from '../domain/types/resource-type.ts'

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
  /** What its hash must come to, of a revision that another store has had. */
  readonly hash?: string
  /** Only while the lease has not been taken by another holder. */
  readonly lease?: Pick<Lease, 'name' | 'term'>
}

/** Where a log ends: its last revision, 0 for none, and the hash of that, empty where there is none. */
export interface Head {
  readonly revision: number
  readonly hash: string
}

/** The head of a store. */
export interface StoreHead extends Head {
  /** It is not all there yet of what is being brought in from elsewhere: clusters would be taken back to what is. */
  readonly importInProgress?: true
}

/** Who has it brings a log into a store that was empty; kept over a crash, until all of it is there. */
export const FILLING = 'filling'

/** What a store says of itself while somebody has that. */
export function importInProgressError(): StoreError {
  return new StoreError(
    'the store is being filled by copy, restore or bundle import: let that finish, or run it again if it was broken off',
    { isTransient: true },
  )
}

/** The right to do what must be done by one process at a time. */
export interface Lease {
  readonly name: string
  readonly holder: string
  /** Grows whenever the lease changes hands: what was begun under an earlier one is known by it. */
  readonly term: number
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

export type CommitResult =
  | { readonly ok: true; readonly hash: string }
  /** Where the store is instead; whether it is the lease that is lost. */
  | { readonly ok: false; readonly head: number; readonly isFenced?: true }

/** Versions of the schema, before and after. */
export interface Migrated {
  readonly from: number
  readonly to: number
}

/** Every method throws StoreError when the store cannot do its part; nothing is then half done. */
export interface Store {
  /** Nobody else can commit: there is nothing to look out for. */
  readonly isPrivate?: true

  /**
   * Hands over every document, tombstones included, of one consistent moment, each with the revision that made it
   * so; answers where the log ended at that moment.
   */
  load(take: (revision: number, document: Applied) => void): Promise<Head>

  /** The same as they are stored, a few at a time, and so not of one moment. */
  documents(): AsyncIterable<StoredDocument>

  /** Where the log ends, whatever process committed last. */
  head(): Promise<StoreHead>

  /** The hash of a revision; undefined when the log does not hold it, and is not cut off right there. */
  hashOf(revision: number): Promise<string | undefined>

  /**
   * Writes the changes as revision base + 1, and of any more as base + 2 and so on: all of them or none, durable when it
   * returns, with the hash of the last. When the store is not at base, or remembers the key already, or the lease is
   * lost, nothing is written and `head` says where it is. Records what each document was before, and the hash. Its time
   * is not before that of the last revision, even if the clock was set back.
   */
  commit(base: number, ...revisions: readonly NewRevision[]): Promise<CommitResult>

  /**
   * Runs something while no other process is in its turn, where waiting for it pays: whoever commits without being asked
   * still may. Where a turn cannot be had soon, it runs without.
   */
  withWriteLock<T>(run: () => Promise<T>): Promise<T>

  /** Fills an empty store with the documents as they stood where another log begins. */
  initFromSnapshot(anchor: Anchor, documents: readonly StoredDocument[]): Promise<void>

  /** All revisions after the given one, oldest first and without gaps. */
  changesSince(revision: number): AsyncIterable<Head & { readonly changes: readonly Applied[] }>

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

  /** Every answer that is still remembered at this time. */
  answers(now: string): AsyncIterable<Remembered>

  /** When these tokens were last used, those of them that were. */
  usesOf(ids: readonly string[]): Promise<TokenUse[]>

  /** Keeps the newest use of each token; outside the log, and no revision. */
  recordUses(uses: readonly TokenUse[]): Promise<void>

  /** Takes a lease that nobody has, or renews one's own, for a time by the store's clock; answers who has it now. */
  acquire(name: string, holder: string, ms: number): Promise<Lease>

  /** Lets go of a lease, unless another one has it already. */
  release(lease: Lease): Promise<void>

  /** Calls back soon after another process may have committed; answers how to stop that. */
  watch(moved: () => void): () => void

  close(): Promise<void>
}

/** The store is away, full or broken. What it says is fit for an operator's eyes. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  /** Whether it cannot be reached now, and may well be later. */
  readonly isTransient: boolean

  constructor(
    message: string,
    { isTransient = false, ...options }: ErrorOptions & { isTransient?: boolean } = {},
  ) {
    super(message, options)
    this.isTransient = isTransient
  }
}

/** What a store says that is asked for what was given up. */
export function prunedError(revision: number, anchor: Anchor): StoreError {
  return new StoreError(`history reaches back to revision ${anchor.revision}, not to ${revision}, any more`)
}

/** What a store says that is to be filled and holds something. */
export function notEmptyError(): StoreError {
  return new StoreError('the store is not empty')
}

/** What a store says when what is being read is given up meanwhile. */
export function prunedMeanwhileError(revision: number): StoreError {
  return new StoreError(`revision ${revision} was given up while it was read`)
}

// Imports a log from lines into a store, revision by revision.
import { TimeSlice } from '../runtime/time-slice.ts'
import type { IdempotencyRecord } from '../store/idempotency.ts'
import { noteOfUse, TOKEN_USES, type TokenUse } from '../store/notes.ts'
import {
  type DocumentVersion,
  type Head,
  type NewRevision,
  type RevisionMeta,
  type Store,
  StoreError,
} from '../store/store.ts'
import { checkFit, checkSame, upstreamChange, upstreamOf } from './log-fit.ts'
import type { Progress } from './replication-status.ts'
import { type Header, type SentChange, type SentRevision, StreamError } from './transfer-items.ts'
import { readItems } from './transfer-lines.ts'
import { StateSeal } from './verify-log.ts'

export interface ImportOptions {
  readonly progress?: Progress | undefined
}

export interface Imported {
  /** Where the store was, and where it is now. */
  readonly from: Head
  readonly head: Head
  /** How many revisions were new, and how many were here already. */
  readonly revisions: number
  readonly known: number
  /** Documents that the log begins with, where its older part was pruned. */
  readonly initialDocuments: number
  readonly answers: number
  readonly uses: number
}

/** Most revisions and bytes in one commit, and most token uses in one write. */
const REVISIONS_AT_ONCE = 200
const SIZE_AT_ONCE = 5 * 1024 * 1024
const USES_AT_ONCE = 500

/**
 * Imports lines into a store that is empty or holds an earlier part of the same log. Revisions that the store has are
 * skipped; the others are replayed, many at a time, each checked by its hash. Throws StreamError when the lines are damaged
 * or do not continue the store's log, and StoreError when another process writes meanwhile. Revisions that were committed
 * before the error stay, and the import can be repeated.
 */
export async function importLog(
  store: Store,
  lines: AsyncIterable<string>,
  options: ImportOptions = {},
): Promise<Imported> {
  let running: LogImport | undefined
  const timeSlice = new TimeSlice()
  for await (const item of readItems(lines)) {
    if ('header' in item) running = await startImport(store, item.header, options)
    else if ('document' in item) running?.document(item.document)
    else if ('revision' in item) await running?.revision(item.revision)
    else if ('changes' in item) await running?.changes(item.changes, item.last)
    else if ('answer' in item) await running?.record(item.answer)
    else if ('use' in item) await running?.use(item.use)
    else if ('end' in item) await running?.end()
    if (timeSlice.expired) await timeSlice.yield()
  }
  return (running as LogImport).imported
}

/** Throws StreamError when the log that the header announces does not continue that of the store. */
async function startImport(store: Store, header: Header, options: ImportOptions): Promise<LogImport> {
  const { importInProgress, ...head } = await store.head()
  const known = header.selector === undefined ? head : await upstreamOf(store, head, header.selector)
  await checkFit(store, header, known)
  const fillsStore = head.revision === 0 || importInProgress === true
  if (fillsStore) await store.setImportInProgress(true)
  return new LogImport(store, header, head, known, options, fillsStore)
}

/** Takes the items of a log in the order of their lines. */
class LogImport {
  readonly #store: Store
  readonly #header: Header
  readonly #from: Head
  readonly #known: Head
  readonly #options: ImportOptions
  /** The store was empty, or an earlier import was not finished: the import marker is removed at the end. */
  readonly #fillsStore: boolean
  #head: Head
  #documents: DocumentVersion[] = []
  /** The revision whose changes are coming. */
  #open: SentRevision | undefined
  #changes: SentChange[] = []
  #batch: NewRevision[] = []
  #size = 0
  #uses: TokenUse[] = []
  #counts = { revisions: 0, known: 0, initialDocuments: 0, answers: 0, uses: 0 }

  constructor(
    store: Store,
    header: Header,
    from: Head,
    known: Head,
    options: ImportOptions,
    fillsStore: boolean,
  ) {
    this.#store = store
    this.#header = header
    this.#from = from
    this.#head = from
    this.#known = known
    this.#options = options
    this.#fillsStore = fillsStore
  }

  get imported(): Imported {
    return { from: this.#from, head: this.#head, ...this.#counts }
  }

  document(document: DocumentVersion): void {
    if (this.#from.revision === 0) this.#documents.push(document)
  }

  async revision(revision: SentRevision): Promise<void> {
    await this.#initFromSnapshot()
    this.#open = revision
    if (revision.revision <= this.#known.revision)
      await checkSame(this.#store, this.#header, this.#known, revision.revision, revision.hash)
  }

  async changes(changes: readonly SentChange[], last: boolean): Promise<void> {
    const open = this.#open as SentRevision
    if (open.revision <= this.#known.revision) {
      if (last) this.#counts.known++
      return
    }
    for (const change of changes) {
      this.#changes.push(change)
      this.#size += change.after?.length ?? 0
    }
    if (!last) return
    this.#batch.push(this.#newRevision(open, this.#changes))
    this.#changes = []
    if (this.#batch.length >= REVISIONS_AT_ONCE || this.#size >= SIZE_AT_ONCE) await this.#commit()
  }

  #newRevision(
    { revision, hash, change_count: _, ...meta }: SentRevision,
    sent: readonly SentChange[],
  ): NewRevision {
    const { selector } = this.#header
    const changes = selector === undefined ? sent : [...sent, upstreamChange({ selector, revision, hash })]
    return {
      ...(meta as RevisionMeta),
      changes: changes.map(({ type, id, after, after_deleted }) => ({
        type,
        id,
        after: after === null ? undefined : { json: after, deleted: after_deleted },
      })),
      ...(selector === undefined && { hash }),
    }
  }

  async #commit(): Promise<void> {
    if (this.#batch.length === 0) return
    const base = this.#head.revision
    const committed = await this.#store.commit(base, ...this.#batch)
    // Everything in the store is from another writer, and nothing from this import.
    if (!committed.ok && base === 0) await this.#removeMarker()
    if (!committed.ok)
      throw new StoreError(
        `somebody else wrote to this store meanwhile: it is at revision ${committed.head}, not at ${base}`,
      )
    this.#head = { revision: base + this.#batch.length, hash: committed.hash }
    this.#counts.revisions += this.#batch.length
    this.#batch = []
    this.#size = 0
    this.#options.progress?.(this.#head.revision, this.#header.until)
  }

  /** The documents that the log begins with, once all of them are there. */
  async #initFromSnapshot(): Promise<void> {
    const { anchor, selector } = this.#header
    if (!anchor || this.#head.revision > 0) return
    if (selector !== undefined) {
      const { revision, hash } = anchor
      const { type, id, after } = upstreamChange({ selector, revision, hash })
      this.#documents.push({ type, id, revision, deleted: false, json: after as string })
    }
    const seal = new StateSeal()
    for (const document of this.#documents) seal.add(document)
    const state = seal.digest(anchor)
    if (selector === undefined && state !== anchor.state)
      throw new StreamError('the documents that it begins with are not what they were', { isDamaged: true })
    await this.#store.initFromSnapshot({ ...anchor, state }, this.#documents)
    this.#counts.initialDocuments = this.#documents.length
    this.#documents = []
    this.#head = { revision: anchor.revision, hash: anchor.hash }
  }

  async record(record: IdempotencyRecord): Promise<void> {
    await this.#finish()
    await this.#store.idempotency.save(record)
    this.#counts.answers++
  }

  async use(use: TokenUse): Promise<void> {
    await this.#finish()
    this.#uses.push(use)
    if (this.#uses.length >= USES_AT_ONCE) await this.#recordUses()
  }

  async #recordUses(): Promise<void> {
    if (this.#uses.length > 0) await this.#store.notes.record(TOKEN_USES, this.#uses.map(noteOfUse))
    this.#counts.uses += this.#uses.length
    this.#uses = []
  }

  async end(): Promise<void> {
    await this.#finish()
    await this.#recordUses()
    await this.#removeMarker()
  }

  async #removeMarker(): Promise<void> {
    if (this.#fillsStore) await this.#store.setImportInProgress(false)
  }

  async #finish(): Promise<void> {
    await this.#initFromSnapshot()
    await this.#commit()
  }
}

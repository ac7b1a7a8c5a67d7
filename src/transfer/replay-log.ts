// Bringing a log that came in lines into a store: whether it goes on from what is here, and then revision by revision.

import { SOURCES } from '../domain/types/system-types.ts'
import {
  FILLING,
  type Head,
  type Lease,
  type NewRevision,
  type Remembered,
  type RevisionMeta,
  type Store,
  type StoredDocument,
  StoreError,
  type TokenUse,
} from '../store/store.ts'
import type { Imported, ImportOptions } from './transfer.ts'
import { type Header, type SentChange, type SentRevision, StreamError } from './transfer-lines.ts'
import { StateSeal } from './verify-log.ts'

/** What is committed at once. */
const REVISIONS_AT_ONCE = 200
const SIZE_AT_ONCE = 5 * 1024 * 1024
const USES_AT_ONCE = 500
const UPSTREAM = 'upstream'
/** A century: whoever was killed may be called again at any time, and until then nobody may serve what is there. */
const UNTIL_IT_IS_THERE_MS = 100 * 365 * 24 * 60 * 60 * 1000

/** Throws StreamError when what the header tells of does not go on from what the store holds. */
export async function startReplay(store: Store, header: Header, options: ImportOptions): Promise<Replay> {
  const { importInProgress, ...head } = await store.head()
  const known = header.selector === undefined ? head : await upstreamOf(store, head, header.selector)
  await checkFit(store, header, known)
  const filling =
    head.revision === 0 || importInProgress
      ? await store.acquire(FILLING, 'import', UNTIL_IT_IS_THERE_MS)
      : undefined
  return new Replay(store, header, head, known, { ...options, filling })
}

/** What a store that holds a part says of its source. */
interface Upstream extends Head {
  readonly id: string
  readonly selector: string
}

async function findUpstream(store: Store): Promise<Upstream | undefined> {
  const [last] = await store.history({
    documents: [{ type: SOURCES, id: UPSTREAM }],
    limit: 1,
    changeLimit: 1,
  })
  if (last) return (last.changes[0]?.after ?? undefined) as Upstream | undefined
  for await (const { type, id, json } of store.documents())
    if (type === SOURCES && id === UPSTREAM) return JSON.parse(json)
  return undefined
}

/** Where in the log of its source a store that holds a part is. */
async function upstreamOf(store: Store, head: Head, selector: string): Promise<Head> {
  if (head.revision === 0) return head
  const upstream = await findUpstream(store)
  if (!upstream)
    throw unfit(
      `holds only the clusters with "${selector}", but this store holds a whole log: a part needs a store of its own`,
    )
  if (upstream.selector !== selector)
    throw unfit(
      `holds the clusters with "${selector}", but this store holds those with "${upstream.selector}": another part needs a store of its own`,
    )
  if (upstream.revision !== head.revision)
    throw unfit(`follows its source, but this store went its own way after revision ${upstream.revision}`)
  return { revision: upstream.revision, hash: upstream.hash }
}

/** Whether lines go on from where a store is, as far as their header tells. */
async function checkFit(store: Store, header: Header, known: Head): Promise<void> {
  const { since, until, anchor } = header
  const at = known.revision
  if (since > at) throw unfit(`starts at revision ${since}, this store is at ${at}: export one from ${at}`)
  if (until < at) {
    throw unfit(`ends at revision ${until}, this store is at ${at}: it is older than what is here`)
  }
  if (anchor && at > 0 && at < anchor.revision)
    throw unfit(
      `begins with revision ${anchor.revision}, as the source gave up what is before it, and this store is at ${at}: begin with an empty store`,
    )
  const told = [
    [since, header.hash],
    [until, header.until_hash],
    ...(anchor ? [[anchor.revision, anchor.hash]] : []),
  ]
  for (const [revision, hash] of told as [number, string][]) {
    if (revision > at) continue
    await checkSame(store, header, known, revision, hash)
  }
}

/** Of the log of a part only the last hash of its source is known. */
async function checkSame(
  store: Store,
  { selector }: Header,
  known: Head,
  revision: number,
  hash: string,
): Promise<void> {
  const here =
    revision === known.revision
      ? known.hash
      : selector === undefined
        ? await store.hashOf(revision)
        : undefined
  if (here === undefined || here === hash) return
  const upstream = selector === undefined ? await findUpstream(store) : undefined
  const hint = upstream ? `: it holds only the clusters with "${upstream.selector}"` : ''
  throw unfit(`has another history: revision ${revision} is not the one of this store${hint}`)
}

function unfit(message: string): StreamError {
  return new StreamError(message, { isDamaged: false })
}

interface ReplayOptions extends ImportOptions {
  /** Let go of once everything is there. */
  readonly filling: Lease | undefined
}

/** What is being brought into a store, in the order of its lines. */
export class Replay {
  readonly #store: Store
  readonly #header: Header
  readonly #from: Head
  readonly #known: Head
  readonly #options: ReplayOptions
  #head: Head
  #documents: StoredDocument[] = []
  /** The revision whose changes are coming. */
  #open: SentRevision | undefined
  #changes: SentChange[] = []
  #batch: NewRevision[] = []
  #size = 0
  #uses: TokenUse[] = []
  #counts = { revisions: 0, known: 0, initialDocuments: 0, answers: 0, uses: 0 }

  constructor(store: Store, header: Header, from: Head, known: Head, options: ReplayOptions) {
    this.#store = store
    this.#header = header
    this.#from = from
    this.#head = from
    this.#known = known
    this.#options = options
  }

  get imported(): Imported {
    return { from: this.#from, head: this.#head, ...this.#counts }
  }

  document(document: StoredDocument): void {
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
      ...(this.#options.lease && { lease: this.#options.lease }),
    }
  }

  async #commit(): Promise<void> {
    if (this.#batch.length === 0) return
    const base = this.#head.revision
    const committed = await this.#store.commit(base, ...this.#batch)
    // What is here then is all of somebody else's.
    if (!committed.ok && base === 0) await this.#release()
    if (!committed.ok)
      throw new StoreError(
        committed.isFenced
          ? 'another process has taken over: this one stopped'
          : `somebody else wrote to this store meanwhile: it is at revision ${committed.head}, not at ${base}`,
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

  async answer(answer: Remembered): Promise<void> {
    await this.#finish()
    await this.#store.remember(answer)
    this.#counts.answers++
  }

  async use(use: TokenUse): Promise<void> {
    await this.#finish()
    this.#uses.push(use)
    if (this.#uses.length >= USES_AT_ONCE) await this.#recordUses()
  }

  async #recordUses(): Promise<void> {
    if (this.#uses.length > 0) await this.#store.recordUses(this.#uses)
    this.#counts.uses += this.#uses.length
    this.#uses = []
  }

  async end(): Promise<void> {
    await this.#finish()
    await this.#recordUses()
    await this.#release()
  }

  async #release(): Promise<void> {
    if (this.#options.filling) await this.#store.release(this.#options.filling)
  }

  async #finish(): Promise<void> {
    await this.#initFromSnapshot()
    await this.#commit()
  }
}

/** Written with every revision of a part, so that its place in the log of its source is never another one. */
function upstreamChange({ selector, revision, hash }: Omit<Upstream, 'id'>): SentChange {
  const upstream: Upstream = { id: UPSTREAM, selector, revision, hash }
  return { type: SOURCES, id: UPSTREAM, after: JSON.stringify(upstream), after_deleted: false }
}

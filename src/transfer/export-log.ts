// Exports a store's log as lines of JSON, for another store.
import { createHash } from 'node:crypto'
import { asToken, TOKENS, useKeyOf } from '../domain/access/token.ts'
import { TimeSlice } from '../runtime/time-slice.ts'
import { RevisionHash } from '../store/hash-chain.ts'
import { TOKEN_USES, useOfNote } from '../store/notes.ts'
import {
  type Anchor,
  type DocumentVersion,
  type Head,
  importInProgressError,
  prunedError,
  prunedMeanwhileError,
  type Store,
  StoreError,
} from '../store/store.ts'
import { PartialLog, type Selection, sent } from './partial-log.ts'
import type { Progress } from './replication-status.ts'
import { FORMAT, type Header, type SentChange, VERSION } from './transfer-items.ts'
import { MAX_LINE } from './transfer-lines.ts'
import { documentsAt, StateSeal } from './verify-log.ts'

export interface ExportOptions {
  /** The revision that the target has already; 0 for an empty one. */
  readonly since: number
  /** The last revision to export; the head of the store by default. */
  readonly until?: number | undefined
  /** Exports only the part of the log that this selects. */
  readonly selection?: Selection | undefined
  /** Also what is kept beside the log: idempotency records, and when tokens were last used. */
  readonly includeAuxiliary?: boolean
  readonly now: Date
  readonly progress?: Progress | undefined
}

/** The longest line of changes, except for a single change that is longer. */
const LINE_SIZE = 1024 * 1024
/** Replaces the operation of a revision in a partial log: the original may name clusters that are not in it. */
const OF_A_PART = 'copied in part'

/**
 * The log after a revision as lines, without their line feeds. Where revisions after it were pruned, the lines start with
 * the documents as they were at the anchor. Throws StoreError when the log is not whole: the lines then have no end item.
 */
export async function* exportLog(store: Store, options: ExportOptions): AsyncGenerator<string> {
  const digest = createHash('sha256')
  const timeSlice = new TimeSlice()
  for await (const item of exportItems(store, options)) {
    const line = JSON.stringify(
      'end' in item ? { end: { ...(item.end as object), sha256: digest.copy().digest('hex') } } : item,
    )
    // The response to a fleet-wide write can be longer than a reader accepts. Without its record, a repetition of the
    // write is decided again.
    if ('answer' in item && Buffer.byteLength(line) > MAX_LINE) continue
    digest.update(`${line}\n`)
    yield line
    if (timeSlice.expired) await timeSlice.yield()
  }
}

type Line = Readonly<Record<string, unknown>>

async function* exportItems(
  store: Store,
  { includeAuxiliary = false, selection, now, progress, ...range }: ExportOptions,
): AsyncGenerator<Line> {
  // Listed before the head is read, so that no record is of a write after it.
  const records = includeAuxiliary ? await recordTimes(store, now.toISOString()) : new Map<string, string>()
  const begin = await store.anchor()
  const header = await headerOf(store, begin, range, now)
  const part = selection && new PartialLog(store, selection)
  const { until, until_hash, anchor } = header
  yield {
    format: FORMAT,
    version: VERSION,
    ...header,
    ...(selection && { selector: selection.selector.text }),
  }
  if (anchor) {
    const heldOf = part ? await part.heldAt(anchor.revision) : (document: DocumentVersion) => document
    for await (const document of sealedDocuments(store, anchor)) {
      const held = heldOf(document)
      if (held) yield { document: held }
    }
  }
  yield* exportRevisions(store, begin, header, part, progress)
  if (includeAuxiliary) yield* exportRecords(store, records, now)
  const documents = includeAuxiliary ? yield* exportUses(store, until) : undefined
  yield { end: { revision: until, hash: until_hash, ...(includeAuxiliary && { documents }) } }
}

async function* exportRecords(
  store: Store,
  times: ReadonlyMap<string, string>,
  now: Date,
): AsyncGenerator<Line> {
  for await (const answer of store.idempotency.list(now.toISOString()))
    if (times.get(answer.key) === answer.time) yield { answer }
}

/** Yields when the tokens of a revision were last used; returns the number of documents. */
async function* exportUses(store: Store, revision: number): AsyncGenerator<Line, number> {
  let documents = 0
  const tokens: string[] = []
  for await (const { type, json } of documentsAt(store, revision)) {
    documents++
    if (type === TOKENS) tokens.push(useKeyOf(asToken(JSON.parse(json))))
  }
  for await (const note of store.notes.read(TOKEN_USES, tokens)) yield { use: useOfNote(note) }
  return documents
}

async function recordTimes(store: Store, now: string): Promise<Map<string, string>> {
  const times = new Map<string, string>()
  for await (const { key, time } of store.idempotency.list(now)) times.set(key, time)
  return times
}

async function headerOf(
  store: Store,
  anchor: Anchor | undefined,
  { since: wanted, until: end }: { readonly since: number; readonly until?: number | undefined },
  now: Date,
): Promise<Header> {
  const { importInProgress, ...head } = await store.head()
  if (importInProgress) throw importInProgressError()
  const until = end ?? head.revision
  if (wanted > head.revision || until > head.revision)
    throw new StoreError(
      `the source is at revision ${head.revision}, before revision ${Math.max(wanted, until)}`,
    )
  if (wanted > until) throw new StoreError(`revision ${until} is before revision ${wanted}`)
  if (anchor && until < anchor.revision) throw prunedError(until, anchor)
  const isCut = anchor !== undefined && wanted < anchor.revision
  const since = isCut ? 0 : wanted
  const [hash, until_hash] = [await store.hashOf(since), await store.hashOf(until)]
  if (hash === undefined || until_hash === undefined) throw prunedMeanwhileError(since)
  return { since, hash, until, until_hash, time: now.toISOString(), ...(isCut && { anchor }) }
}

/** The documents as they were at the anchor; throws when they do not match its digest. */
async function* sealedDocuments(store: Store, anchor: Anchor): AsyncGenerator<DocumentVersion> {
  const seal = new StateSeal()
  for await (const document of documentsAt(store, anchor.revision)) {
    seal.add(document)
    yield document
  }
  if (seal.digest(anchor) !== anchor.state)
    throw await notWhole(store, anchor, `the documents are not what they were at revision ${anchor.revision}`)
}

async function* exportRevisions(
  store: Store,
  begin: Anchor | undefined,
  { since, hash, until, anchor }: Header,
  part: PartialLog | undefined,
  progress: Progress | undefined,
): AsyncGenerator<Line> {
  let last: Head = anchor ?? { revision: since, hash }
  let made: RevisionHash | undefined
  for await (const { revision, meta, hash: sealed, change_count, ...slice } of store.log(
    last.revision,
    until,
  )) {
    if (!made) {
      if (revision !== last.revision + 1) break
      made = new RevisionHash(last.hash, revision, meta)
      yield { revision, hash: sealed, change_count, ...meta, ...(part && { operation: OF_A_PART }) }
    }
    const changes: SentChange[] = []
    for (const change of slice.changes) {
      made.add(change)
      if (part) changes.push(...(await part.take(revision, change)))
      else changes.push(sent(change))
    }
    if (slice.last && part) changes.push(...part.end())
    yield* linesOfChanges(changes, slice.last)
    if (!slice.last) continue
    if (made.digest() !== sealed)
      throw await notWhole(store, begin, `revision ${revision} is not what it was: its hash is another`)
    made = undefined
    last = { revision, hash: sealed }
    progress?.(revision, until)
  }
  if (last.revision < until) throw await notWhole(store, begin, `revision ${last.revision + 1} is missing`)
}

function* linesOfChanges(changes: readonly SentChange[], last: boolean): Generator<Line> {
  let line: SentChange[] = []
  let size = 0
  for (const change of changes) {
    const more = change.after?.length ?? 0
    if (line.length > 0 && size + more > LINE_SIZE) {
      yield { changes: line, last: false }
      line = []
      size = 0
    }
    line.push(change)
    size += more
  }
  if (last || line.length > 0) yield { changes: line, last }
}

/** The error for a log that is not whole; a log that was pruned since the anchor was read has an error of its own. */
async function notWhole(store: Store, begin: Anchor | undefined, problem: string): Promise<StoreError> {
  const anchor = await store.anchor()
  if (anchor && anchor.revision !== begin?.revision) return prunedMeanwhileError(anchor.revision)
  return new StoreError(`${problem}: see what "verify" finds`)
}

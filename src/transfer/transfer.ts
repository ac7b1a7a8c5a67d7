// Moving what a store holds: its log as lines of JSON, and bringing such lines into another store.
import { createHash } from 'node:crypto'
import { asToken, TOKENS, useKeyOf } from '../domain/access/token.ts'
import { Pace } from '../runtime/time-slice.ts'
import { RevisionHash } from '../store/hash-chain.ts'
import {
  type Anchor,
  fillingError,
  type Head,
  type Lease,
  prunedError,
  prunedMeanwhileError,
  type Store,
  type StoredDocument,
  StoreError,
} from '../store/store.ts'
import { PartialLog, type Selection, sent } from './partial-log.ts'
import { type Replay, startReplay } from './replay-log.ts'
import { FORMAT, type Header, MAX_LINE, readItems, type SentChange, VERSION } from './transfer-lines.ts'
import { documentsAt, StateSeal } from './verify-log.ts'

/** Where a transfer has come to, of where it ends. */
export type Progress = (revision: number, until: number) => void

export interface ExportOptions {
  /** The revision that the target has already; 0 for an empty one. */
  readonly since: number
  /** The last one to go; the head of the store otherwise. */
  readonly until?: number | undefined
  /** Only a part. */
  readonly selection?: Selection | undefined
  /** Also what is kept beside the log: remembered answers and when tokens were used. */
  readonly beside?: boolean
  readonly now: Date
  readonly progress?: Progress | undefined
}

export interface ImportOptions {
  /** Only while the lease has not been taken by another holder. */
  readonly lease?: Pick<Lease, 'name' | 'term'> | undefined
  readonly progress?: Progress | undefined
}

export interface Imported {
  /** Where the store was, and where it is now. */
  readonly from: Head
  readonly head: Head
  /** How many revisions were new, and how many were here already. */
  readonly revisions: number
  readonly known: number
  /** Documents that the log begins with, where its older part was given up. */
  readonly planted: number
  readonly answers: number
  readonly uses: number
}

/** What a line of changes comes to at most, but for a single change that is larger. */
const LINE_SIZE = 1024 * 1024
const USES_AT_ONCE = 500
/** What was asked for may name clusters that are not in the part. */
const OF_A_PART = 'copied in part'

/**
 * The log after a revision as lines, without their line breaks. Where that part of the log was given up, the documents
 * as they stood where it begins now come first. Throws StoreError when the log is not whole: the lines then have no end.
 */
export async function* exportLog(store: Store, options: ExportOptions): AsyncGenerator<string> {
  const digest = createHash('sha256')
  const pace = new Pace()
  for await (const item of exportItems(store, options)) {
    const line = JSON.stringify(
      'end' in item ? { end: { ...(item.end as object), sha256: digest.copy().digest('hex') } } : item,
    )
    // The answer to a write on much of a fleet can be longer than any reader takes: what is left out is decided anew.
    if ('answer' in item && Buffer.byteLength(line) > MAX_LINE) continue
    digest.update(`${line}\n`)
    yield line
    if (pace.isDue) await pace.rest()
  }
}

type Line = Readonly<Record<string, unknown>>

async function* exportItems(
  store: Store,
  { beside = false, selection, now, progress, ...range }: ExportOptions,
): AsyncGenerator<Line> {
  // Looked for before the end is known: none may be of a write that comes after it.
  const answers = beside ? await answerTimes(store, now.toISOString()) : new Map<string, string>()
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
    const isHeld = part ? await part.heldAt(anchor.revision) : () => true
    for await (const document of sealedDocuments(store, anchor)) if (isHeld(document)) yield { document }
  }
  yield* exportRevisions(store, begin, header, part, progress)
  for await (const answer of beside ? store.answers(now.toISOString()) : [])
    if (answers.get(answer.key) === answer.time) yield { answer }
  let documents = 0
  const tokens: string[] = []
  for await (const { type, json } of beside ? documentsAt(store, until) : []) {
    documents++
    if (type === TOKENS) tokens.push(useKeyOf(asToken(JSON.parse(json))))
  }
  for (let at = 0; at < tokens.length; at += USES_AT_ONCE)
    for (const use of await store.usesOf(tokens.slice(at, at + USES_AT_ONCE))) yield { use }
  yield { end: { revision: until, hash: until_hash, ...(beside && { documents }) } }
}

async function answerTimes(store: Store, now: string): Promise<Map<string, string>> {
  const times = new Map<string, string>()
  for await (const { key, time } of store.answers(now)) times.set(key, time)
  return times
}

async function headerOf(
  store: Store,
  anchor: Anchor | undefined,
  { since: wanted, until: end }: { readonly since: number; readonly until?: number | undefined },
  now: Date,
): Promise<Header> {
  const { isFilling, ...head } = await store.head()
  if (isFilling) throw fillingError()
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

/** The documents as they stood where the log begins, which must be what they were when it was cut there. */
async function* sealedDocuments(store: Store, anchor: Anchor): AsyncGenerator<StoredDocument> {
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

/** What is missing may have been given up since the log was seen to begin at an anchor. */
async function notWhole(store: Store, begin: Anchor | undefined, problem: string): Promise<StoreError> {
  const anchor = await store.anchor()
  if (anchor && anchor.revision !== begin?.revision) return prunedMeanwhileError(anchor.revision)
  return new StoreError(`${problem}: see what "verify" finds`)
}

/**
 * Brings lines into a store that is empty or holds what they go on from: what it has already is skipped, the rest is
 * replayed, many revisions at a time, each of them checked by its hash. Throws StreamError when the lines are damaged or
 * do not go on from what is here, and StoreError when somebody else writes meanwhile; whole revisions that were in order
 * stay, and the same lines can be given again.
 */
export async function importLog(
  store: Store,
  lines: AsyncIterable<string>,
  options: ImportOptions = {},
): Promise<Imported> {
  let replay: Replay | undefined
  const pace = new Pace()
  for await (const item of readItems(lines)) {
    if ('header' in item) replay = await startReplay(store, item.header, options)
    else if ('document' in item) replay?.document(item.document)
    else if ('revision' in item) await replay?.revision(item.revision)
    else if ('changes' in item) await replay?.changes(item.changes, item.last)
    else if ('answer' in item) await replay?.answer(item.answer)
    else if ('use' in item) await replay?.use(item.use)
    else if ('end' in item) await replay?.end()
    if (pace.isDue) await pace.rest()
  }
  return (replay as Replay).imported
}

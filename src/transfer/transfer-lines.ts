// The lines that a log travels in: what each may hold, in which order they come, and that none is missing.
import { createHash } from 'node:crypto'
import { isObject } from '../base/json.ts'
import { type LineProblem, readLines } from '../runtime/read-lines.ts'
import type { IdempotencyRecord } from '../store/idempotency.ts'
import { MAX_NOTE_LENGTH, type TokenUse } from '../store/notes.ts'
import { type Anchor, type DocumentVersion, type RevisionMeta, StoreError } from '../store/store.ts'

export const FORMAT = 'flux-resourceset-log'
export const VERSION = 1

/** What the lines go on from and where they end: revisions of the source, with their hashes. */
export interface Header {
  readonly since: number
  readonly hash: string
  readonly until: number
  readonly until_hash: string
  /** RFC 3339, UTC. */
  readonly time: string
  /** Of a part: which clusters it is about. */
  readonly selector?: string
  /** Where the log of the source begins, when it comes with the documents as they stood there. */
  readonly anchor?: Anchor
}

/** Its changes follow; of a part not all of them do. */
export interface SentRevision extends RevisionMeta {
  readonly revision: number
  readonly hash: string
  readonly change_count: number
}

/** What a document was before is known to whoever has the revision before. */
export interface SentChange {
  readonly type: string
  readonly id: string
  readonly after: string | null
  readonly after_deleted: boolean
}

export interface End {
  readonly revision: number
  readonly hash: string
  /** How many documents the source had there; not told of a part. */
  readonly documents?: number
  /** Over all lines before this one. */
  readonly sha256: string
}

export interface Signature {
  /** SHA-256 of the public key, in hex. */
  readonly key: string
  /** Over the line of the end, in base64. */
  readonly value: string
}

export type Item =
  | { readonly header: Header }
  | { readonly document: DocumentVersion }
  | { readonly revision: SentRevision }
  | { readonly changes: readonly SentChange[]; readonly last: boolean }
  | { readonly answer: IdempotencyRecord }
  | { readonly use: TokenUse }
  | { readonly end: End; readonly line: string }
  | { readonly signature: Signature }

/** Lines that are not taken: damaged on their way, or sound but not made for this store. */
export class StreamError extends StoreError {
  readonly isDamaged: boolean

  constructor(message: string, { isDamaged }: { isDamaged: boolean }) {
    super(message)
    this.isDamaged = isDamaged
  }
}

function damaged(message: string): StreamError {
  return new StreamError(message, { isDamaged: true })
}

/** Far above what one document can come to. */
export const MAX_LINE = 64 * 1024 * 1024
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The lines of a file or of an answer; the last one ends like all others, or was cut off. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const toError = (problem: LineProblem): StreamError =>
    damaged(problem === 'too_long' ? `a line is longer than ${MAX_LINE} bytes` : 'the last line is cut off')
  for await (const line of readLines(chunks, { maxBytes: MAX_LINE, toError })) yield decode(line)
}

function decode(line: Uint8Array): string {
  try {
    return UTF8.decode(line)
  } catch {
    throw damaged('a line is not UTF-8')
  }
}

/** Reads to the end, and throws StreamError at the first line that is not right or not in its place. */
export async function* readItems(lines: AsyncIterable<string>): AsyncGenerator<Item> {
  const digest = createHash('sha256')
  const order = new Order()
  let number = 0
  for await (const line of lines) {
    number++
    const item = parseItem(line, number)
    if ('end' in item && item.end.sha256 !== digest.copy().digest('hex'))
      throw damaged(`line ${number}: what comes before it has another SHA-256: it was changed on its way`)
    const problem = order.take(item)
    if (problem !== undefined) throw damaged(`line ${number}: ${problem}`)
    digest.update(`${line}\n`)
    yield item
  }
  if (!order.isComplete) throw damaged('there is no end: the rest was cut off')
}

/** What a whole stream says of itself. */
export interface Checked {
  readonly header: Header
  readonly end: End
  /** The line that a signature is over. */
  readonly endLine: string
  readonly signature: Signature | undefined
}

/** Reads all lines without doing anything with them. */
export async function checkLines(lines: AsyncIterable<string>): Promise<Checked> {
  let header: Header | undefined
  let end: { end: End; line: string } | undefined
  let signature: Signature | undefined
  for await (const item of readItems(lines)) {
    if ('header' in item) header = item.header
    else if ('end' in item) end = item
    else if ('signature' in item) signature = item.signature
  }
  if (!header || !end) throw damaged('there is nothing in it')
  return { header, end: end.end, endLine: end.line, signature }
}

/** Follows the lines from the header to the end; every revision comes once, after the one before it. */
class Order {
  #header: Header | undefined
  #last = 0
  /** A revision whose changes are not all there yet, and how many of them are. */
  #open: SentRevision | undefined
  #count = 0
  #stage: 'documents' | 'revisions' | 'auxiliary' | 'end' | 'signature' = 'documents'

  get isComplete(): boolean {
    return this.#stage === 'end' || this.#stage === 'signature'
  }

  /** What is wrong with this line in this place. */
  take(item: Item): string | undefined {
    if (!this.#header) return 'header' in item ? this.#begin(item.header) : 'the header is missing'
    if ('header' in item) return 'there is a second header'
    if (this.#stage === 'signature') return 'there is something after the signature'
    if (this.isComplete !== 'signature' in item)
      return this.isComplete ? 'there is something after the end' : 'there is a signature before the end'
    if (this.#open && !('changes' in item))
      return `changes of revision ${this.#open.revision} are missing before it`
    if ('document' in item) return this.#document(this.#header, item.document)
    if ('revision' in item) return this.#revision(this.#header, item.revision)
    if ('changes' in item) return this.#changes(this.#header, item.changes.length, item.last)
    if ('end' in item) return this.#end(this.#header, item.end)
    if ('signature' in item) this.#stage = 'signature'
    else return this.#auxiliary(this.#header)
    return undefined
  }

  #begin(header: Header): string | undefined {
    this.#header = header
    this.#last = header.anchor?.revision ?? header.since
    if (header.anchor && header.since > 0) return 'documents come with it, but not for an empty store'
    if (this.#last > header.until) return 'the header ends before it begins'
    const start = header.anchor?.hash ?? header.hash
    return this.#last === header.until && start !== header.until_hash
      ? 'the header has two hashes for one revision'
      : undefined
  }

  #document({ anchor }: Header, { revision }: DocumentVersion): string | undefined {
    if (!anchor || this.#stage !== 'documents') return 'a document is out of its place'
    return revision > anchor.revision ? `a document is newer than revision ${anchor.revision}` : undefined
  }

  #revision({ until, until_hash }: Header, revision: SentRevision): string | undefined {
    if (this.#stage === 'auxiliary') return 'a revision is out of its place'
    if (revision.revision !== this.#last + 1)
      return `revision ${revision.revision} comes after ${this.#last}: it is out of order`
    if (revision.revision > until) return `revision ${revision.revision} is beyond the end of the header`
    if (revision.revision === until && revision.hash !== until_hash)
      return `revision ${until} has another hash than the header says`
    this.#stage = 'revisions'
    this.#open = revision
    this.#count = 0
    return undefined
  }

  #changes({ selector }: Header, count: number, last: boolean): string | undefined {
    if (!this.#open) return 'changes are out of their place'
    this.#count += count
    if (!last) return undefined
    const { revision, change_count } = this.#open
    this.#last = revision
    this.#open = undefined
    return selector === undefined && this.#count !== change_count
      ? `revision ${revision} has ${change_count} changes, not ${this.#count}`
      : undefined
  }

  #auxiliary({ until }: Header): string | undefined {
    this.#stage = 'auxiliary'
    return this.#last < until ? `revision ${this.#last + 1} is missing before it` : undefined
  }

  #end({ until, until_hash }: Header, { revision, hash }: End): string | undefined {
    this.#stage = 'end'
    if (this.#last < until) return `revision ${this.#last + 1} is missing before it`
    return revision !== until || hash !== until_hash ? 'the end is not that of the header' : undefined
  }
}

function parseItem(line: string, number: number): Item {
  const value = parseObject(line)
  if (number === 1) return { header: parseHeader(value) }
  const item = value && itemIn(value, line)
  if (!item) throw damaged(`line ${number}: cannot be read`)
  return item
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function parseHeader(value: Readonly<Record<string, unknown>> | undefined): Header {
  if (value?.format !== FORMAT)
    throw new StreamError('is not a log of flux-resourceset', { isDamaged: false })
  if (value.version !== VERSION) {
    const message = `is in version ${JSON.stringify(value.version)} of the format, not in ${VERSION}: use the program that made it, or a newer one`
    throw new StreamError(message, { isDamaged: false })
  }
  const header = pick(value, HEADER)
  if (!header) throw damaged('line 1: the header cannot be read')
  return header
}

function itemIn(value: Readonly<Record<string, unknown>>, line: string): Item | undefined {
  if ('document' in value) return wrap('document', pick(value.document, DOCUMENT))
  if ('revision' in value) return wrap('revision', pick(value, REVISION))
  if ('answer' in value) return wrap('answer', pick(value.answer, ANSWER))
  if ('use' in value) return wrap('use', pick(value.use, USE))
  if ('signature' in value) return wrap('signature', pick(value.signature, SIGNATURE))
  if ('end' in value) {
    const end = pick(value.end, END)
    return end && { end, line }
  }
  if (!Array.isArray(value.changes) || !isFlag(value.last)) return undefined
  const changes = value.changes.map((change: unknown) => pick(change, CHANGE))
  return changes.every(isWhole) ? { changes, last: value.last } : undefined
}

/** Of what is gone nothing more can be said. */
function isWhole(change: SentChange | undefined): change is SentChange {
  return change !== undefined && !(change.after === null && change.after_deleted)
}

function wrap<K extends string, T>(name: K, value: T | undefined): Record<K, T> | undefined {
  return value && ({ [name]: value } as Record<K, T>)
}

type Shape<T> = { readonly [K in keyof T]-?: (value: unknown) => boolean }

/** The members that a line is made of, and nothing else it may hold. */
function pick<T>(value: unknown, shape: Shape<T>): T | undefined {
  if (!isObject(value)) return undefined
  const fields = Object.entries(shape) as [string, (value: unknown) => boolean][]
  if (!fields.every(([name, is]) => is(value[name]))) return undefined
  return Object.fromEntries(
    fields.map(([name]) => [name, value[name]]).filter(([, member]) => member !== undefined),
  ) as T
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isName(value: unknown): boolean {
  return isText(value) && value !== ''
}

function isTextOrNull(value: unknown): boolean {
  return value === null || isText(value)
}

function isNoteOrNull(value: unknown): boolean {
  return value === null || (isText(value) && value.length <= MAX_NOTE_LENGTH)
}

function isFlag(value: unknown): value is boolean {
  return typeof value === 'boolean'
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isTime(value: unknown): boolean {
  return isText(value) && !Number.isNaN(Date.parse(value))
}

function isHash(value: unknown): boolean {
  return isText(value) && /^[0-9a-f]{64}$/.test(value)
}

/** The store keeps it as it is, and the hash of a revision takes it in as one line. */
function isDocument(value: unknown): boolean {
  return isText(value) && !value.includes('\n') && parseObject(value) !== undefined
}

function orAbsent(is: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => value === undefined || is(value)
}

/** The first revision of all follows no hash. */
function isHashOrNone(value: unknown): boolean {
  return value === '' || isHash(value)
}

const ANCHOR: Shape<Anchor> = { revision: isCount, time: isTime, hash: isHash, state: isHash }

const HEADER: Shape<Header> = {
  since: isCount,
  hash: isHashOrNone,
  until: isCount,
  until_hash: isHashOrNone,
  time: isTime,
  selector: orAbsent(isName),
  anchor: orAbsent((value) => pick(value, ANCHOR) !== undefined),
}

const DOCUMENT: Shape<DocumentVersion> = {
  type: isName,
  id: isName,
  revision: isCount,
  deleted: isFlag,
  json: isDocument,
}

const REVISION: Shape<SentRevision> = {
  revision: isCount,
  hash: isHash,
  change_count: isCount,
  time: isTime,
  actor: isText,
  message: isTextOrNull,
  request_id: isText,
  client_address: isTextOrNull,
  operation: isText,
}

const CHANGE: Shape<SentChange> = {
  type: isName,
  id: isName,
  after: (value) => value === null || isDocument(value),
  after_deleted: isFlag,
}

const ANSWER: Shape<IdempotencyRecord> = { key: isText, fingerprint: isText, time: isTime, answer: isText }

const USE: Shape<TokenUse> = { id: isText, time: isTime, address: isNoteOrNull }

const END: Shape<End> = {
  revision: isCount,
  hash: isHashOrNone,
  documents: orAbsent(isCount),
  sha256: isHash,
}

const SIGNATURE: Shape<Signature> = { key: isHash, value: isText }

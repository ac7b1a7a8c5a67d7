// The items of a log in lines: what each line holds, and how it is parsed.
import { isObject } from '../base/json.ts'
import type { IdempotencyRecord } from '../store/idempotency.ts'
import { MAX_NOTE_LENGTH, type TokenUse } from '../store/notes.ts'
import { type Anchor, type DocumentVersion, type RevisionMeta, StoreError } from '../store/store.ts'

export const FORMAT = 'flux-resourceset-log'
/** Programs that know version 1 alone serve neither rollouts nor holds: a copy of theirs would answer something else. */
export const VERSION = 2
const READABLE: readonly unknown[] = [1, VERSION]

/** The revisions of the source that the lines start after and end with, and their hashes. */
export interface Header {
  readonly since: number
  readonly hash: string
  readonly until: number
  readonly until_hash: string
  /** RFC 3339, UTC. */
  readonly time: string
  /** Only of a partial log: the selector of its clusters. */
  readonly selector?: string
  /** Where the log of the source begins, when it comes with the documents as they stood there. */
  readonly anchor?: Anchor
}

/** A revision, whose changes follow in other items; a partial log leaves some of them out. */
export interface SentRevision extends RevisionMeta {
  readonly revision: number
  readonly hash: string
  readonly change_count: number
}

/** A change without the previous version of its document, which the receiver has. */
export interface SentChange {
  readonly type: string
  readonly id: string
  readonly after: string | null
  readonly after_deleted: boolean
}

export interface End {
  readonly revision: number
  readonly hash: string
  /** How many documents the source had there; absent in a partial log. */
  readonly documents?: number
  /** The digest of all lines before this one. */
  readonly sha256: string
}

export interface Signature {
  /** SHA-256 of the public key, in hex. */
  readonly key: string
  /** The signature over the end line, in base64. */
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

/** Lines that cannot be imported: damaged, or sound but not a continuation of this store's log. */
export class StreamError extends StoreError {
  readonly isDamaged: boolean

  constructor(message: string, { isDamaged }: { isDamaged: boolean }) {
    super(message)
    this.isDamaged = isDamaged
  }
}

export function damaged(message: string): StreamError {
  return new StreamError(message, { isDamaged: true })
}

/** Throws StreamError for a line that is not valid; line 1 is the header. */
export function parseItem(line: string, number: number): Item {
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
  if (!READABLE.includes(value.version)) {
    const message = `is in version ${JSON.stringify(value.version)} of the format, not in ${READABLE.join(' or ')}: use the program that made it, or a newer one`
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

/** A change that removes its document (null) cannot also leave a tombstone. */
function isWhole(change: SentChange | undefined): change is SentChange {
  return change !== undefined && !(change.after === null && change.after_deleted)
}

function wrap<K extends string, T>(name: K, value: T | undefined): Record<K, T> | undefined {
  return value && ({ [name]: value } as Record<K, T>)
}

type Shape<T> = { readonly [K in keyof T]-?: (value: unknown) => boolean }

/** Returns only the members that the shape names; undefined when one of them is not valid. */
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

/** A document as JSON on one line: it is stored as it is, and the hash of a revision covers it as one line. */
function isDocument(value: unknown): boolean {
  return isText(value) && !value.includes('\n') && parseObject(value) !== undefined
}

function orAbsent(is: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => value === undefined || is(value)
}

/** Empty before the first revision of a log, which has no predecessor. */
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

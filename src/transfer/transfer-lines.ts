// Reads a log from lines, and checks that they are in order and that none is missing.
import { createHash } from 'node:crypto'
import { type LineProblem, readLines } from '../runtime/read-lines.ts'
import type { DocumentVersion } from '../store/store.ts'
import {
  damaged,
  type End,
  type Header,
  type Item,
  parseItem,
  type SentRevision,
  type Signature,
  type StreamError,
} from './transfer-items.ts'

/** Far more than the longest document. */
export const MAX_LINE = 64 * 1024 * 1024
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The lines of a file or of a response; throws when the last one has no line feed, and so was cut off. */
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

/** Reads to the end; throws StreamError at the first line that is not valid or not in order. */
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

/** The first and the last items of a stream that is whole. */
export interface Checked {
  readonly header: Header
  readonly end: End
  /** The line that is signed. */
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
  /** The revision whose changes are still coming, and how many of them have come. */
  #open: SentRevision | undefined
  #count = 0
  #stage: 'documents' | 'revisions' | 'auxiliary' | 'end' | 'signature' = 'documents'

  get isComplete(): boolean {
    return this.#stage === 'end' || this.#stage === 'signature'
  }

  /** Returns what is wrong with the item in this place; undefined when it is in order. */
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

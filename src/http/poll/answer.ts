// Sends the bytes of an answer to a poll, with the headers that pollers and caches need.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzip, gzipSync } from 'node:zlib'
import type { Digest } from '../../base/digest.ts'
import type { RenderedAnswer } from '../../domain/delivery/render-inputs.ts'
import type { DirectAnswer } from '../direct/direct-polls.ts'
import type { RequestHead } from '../direct/parse-poll.ts'
import { REVISION_HEADER } from '../request/revision-header.ts'
import { KEEP_ALIVE_MS } from '../service-limits.ts'
import type { CachedAnswer } from './answer-cache.ts'

/**
 * A shorter answer arrives in one round trip: TCP sends ten segments before it waits for the first acknowledgement
 * (RFC 6928). Compressing it would cost more CPU than all the rest of the poll and save no time.
 */
const GZIP_MIN_LENGTH = 14 * 1024
/** Longer answers are compressed by another thread. */
const GZIP_MAX_SYNC_LENGTH = 64 * 1024
/** Higher levels take several times as long to save another tenth. */
const FAST = { level: 1 }

/** An answer, and the revision that it is of. */
export interface SentAnswer {
  /** A text, or for a client that takes gzip, what is kept of it. */
  readonly body: string | CachedAnswer
  readonly digest: Digest
  readonly revision: number
}

export function bodyOf(answer: RenderedAnswer | CachedAnswer): Pick<SentAnswer, 'body' | 'digest'> {
  return { body: 'text' in answer ? answer.text : answer, digest: answer.digest }
}

/** Sends an answer; closes the connection while the process is draining. */
export function sendAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  answer: SentAnswer,
  draining: boolean,
): void {
  const { headers } = request
  const { body, digest } = answer
  const isPacked = isPackable(body) && acceptsGzip(headers['accept-encoding'])
  const etag = etagOf(answer, isPacked)
  const head = headersOf(answer, etag, closesConnection(request, draining))
  // Only for a request with If-None-Match: Flux takes a 304 for a failure.
  if (matchesEtag(headers['if-none-match'], etag)) {
    response.writeHead(304, head).end()
    return
  }
  head.push('Content-Type', 'application/json')
  if (typeof body !== 'string') {
    const bytes = Buffer.from(body.bytes)
    head.push('Content-Encoding', 'gzip', 'Content-Length', String(bytes.length))
    response.writeHead(200, head).end(bytes)
  } else if (isPacked) {
    sendPacked(response, head, body)
  } else {
    head.push('Content-Length', String(byteLengthOf(body, digest)))
    response.writeHead(200, head).end(body, digest.ascii ? 'latin1' : 'utf8')
  }
}

/** Returns a whole response; undefined for an answer that may have to be compressed. */
export function composeAnswer(answer: SentAnswer, closes: boolean): DirectAnswer | undefined {
  const { body, digest } = answer
  if (typeof body !== 'string') return composeCached(answer, body, closes)
  if (isPackable(body)) return undefined
  const head = headersOf(answer, etagOf(answer, false), closes)
  head.push('Content-Type', 'application/json', 'Content-Length', String(byteLengthOf(body, digest)))
  const encoding = digest.ascii ? 'latin1' : 'utf8'
  return { bytes: `${composeHead(head, closes)}${body}`, encoding, closes }
}

function composeCached(answer: SentAnswer, { bytes }: CachedAnswer, closes: boolean): DirectAnswer {
  const list = headersOf(answer, etagOf(answer, true), closes)
  list.push('Content-Type', 'application/json', 'Content-Encoding', 'gzip')
  list.push('Content-Length', String(bytes.length))
  const head = composeHead(list, closes)
  const whole = Buffer.allocUnsafe(head.length + bytes.length)
  whole.write(head, 'latin1')
  whole.set(bytes, head.length)
  return { bytes: whole, encoding: undefined, closes }
}

function composeHead(headers: readonly string[], closes: boolean): string {
  let head = 'HTTP/1.1 200 OK\r\n'
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`
  return `${head}Date: ${httpDate()}\r\n${closes ? '' : KEEP}\r\n`
}

/** What node:http says of connections that stay open. */
const KEEP = `Connection: keep-alive\r\nKeep-Alive: timeout=${KEEP_ALIVE_MS / 1000}\r\n`

let date = { second: 0, text: '' }

function httpDate(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== date.second) date = { second, text: new Date(second * 1000).toUTCString() }
  return date.text
}

function isPackable(body: SentAnswer['body']): boolean {
  return typeof body !== 'string' || body.length >= GZIP_MIN_LENGTH
}

function etagOf({ digest }: SentAnswer, isPacked: boolean): string {
  return `"${digest.a}.${digest.b}${isPacked ? '-gzip' : ''}"`
}

function headersOf({ revision }: SentAnswer, etag: string, closes: boolean): string[] {
  const head = ['ETag', etag, 'Cache-Control', 'no-store', 'Vary', 'Accept-Encoding']
  head.push(REVISION_HEADER, String(revision))
  if (closes) head.push('Connection', 'close')
  return head
}

/** ASCII text has one byte per character, and is sent as Latin-1, which is faster. */
function byteLengthOf(text: string, { ascii }: Digest): number {
  return ascii ? text.length : Buffer.byteLength(text)
}

function sendPacked(response: ServerResponse, headers: string[], text: string): void {
  const send = (body: Buffer): void => {
    headers.push('Content-Encoding', 'gzip', 'Content-Length', String(body.length))
    response.writeHead(200, headers).end(body)
  }
  if (text.length <= GZIP_MAX_SYNC_LENGTH) send(gzipSync(text, FAST))
  else
    gzip(text, FAST, (error, body) => {
      if (error) response.destroy(error)
      else if (!response.destroyed) send(body)
    })
}

/**
 * Flux opens a connection for every poll and never uses it again; a proxy's connection serves other clusters too.
 * HTTP/2 has no such header.
 */
export function closesConnection({ headers, httpVersionMajor }: RequestHead, draining: boolean): boolean {
  if (httpVersionMajor >= 2) return false
  if (draining) return true
  const isFlux = headers['user-agent']?.startsWith('flux-operator/') ?? false
  return isFlux && headers['x-forwarded-for'] === undefined && headers.via === undefined
}

/** The longest Accept-Encoding that is parsed; real ones have some dozens of characters. */
const MAX_ACCEPTED = 1000
/** RFC 9110: a weight has at most three decimals, and one of zero means never. */
const WEIGHT = '0\\.(?:[1-9]\\d{0,2}|0[1-9]\\d?|00[1-9])|1(?:\\.0{0,3})?'
const GZIP = new RegExp(`^\\s*gzip\\s*(?:;\\s*q=(?:${WEIGHT})\\s*)?$`, 'i')

export function acceptsGzip(accepted: string | string[] | undefined): boolean {
  if (accepted === 'gzip' || accepted === undefined) return accepted !== undefined
  const text = String(accepted)
  return text.length <= MAX_ACCEPTED && text.split(',').some((coding) => GZIP.test(coding))
}

export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}

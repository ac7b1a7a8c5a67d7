// Sends the bytes of an answer to a poll, with the headers that pollers and caches need.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { RenderedAnswer } from '../domain/render-inputs.ts'

/** Below this an answer fits a packet or two anyway. */
const GZIP_MIN_LENGTH = 2048

/** What the bytes were made from, and whether this process is about to stop. */
interface Served {
  readonly revision: number
  readonly draining: boolean
}

export function sendAnswer(
  { revision, draining }: Served,
  request: IncomingMessage,
  response: ServerResponse,
  { text, digest }: RenderedAnswer,
): void {
  const { headers } = request
  const gzip = text.length >= GZIP_MIN_LENGTH && acceptsGzip(headers['accept-encoding'])
  const etag = `"${digest.a}.${digest.b}${gzip ? '-gzip' : ''}"`
  const answer = ['ETag', etag, 'Cache-Control', 'no-store', 'Vary', 'Accept-Encoding']
  answer.push('X-Revision', String(revision))
  if (closesConnection(request, draining)) answer.push('Connection', 'close')
  // Only when asked: Flux takes a 304 for a failure.
  if (matchesEtag(headers['if-none-match'], etag)) {
    response.writeHead(304, answer).end()
    return
  }
  const body = gzip ? gzipSync(text, { level: 1 }) : text
  if (gzip) answer.push('Content-Encoding', 'gzip')
  // Text that is known to be ASCII need not be counted, nor encoded with care.
  const plain = digest.ascii && !gzip
  const length = plain ? text.length : Buffer.byteLength(body)
  answer.push('Content-Type', 'application/json', 'Content-Length', String(length))
  response.writeHead(200, answer).end(body, plain ? 'latin1' : 'utf8')
}

/** Flux opens a connection for every poll and never uses it again. HTTP/2 has no such header. */
export function closesConnection({ headers, httpVersionMajor }: IncomingMessage, draining: boolean): boolean {
  return httpVersionMajor < 2 && (draining || (headers['user-agent']?.startsWith('flux-operator/') ?? false))
}

/** Real ones have some dozens of characters. */
const MAX_ACCEPTED = 1000
/** RFC 9110: a weight has at most three decimals, and one of zero means never. */
const WEIGHT = '0\\.(?:[1-9]\\d{0,2}|0[1-9]\\d?|00[1-9])|1(?:\\.0{0,3})?'
const GZIP = new RegExp(`^\\s*gzip\\s*(?:;\\s*q=(?:${WEIGHT})\\s*)?$`, 'i')

export function acceptsGzip(accepted: string | string[] | undefined): boolean {
  if (accepted === undefined) return false
  const text = String(accepted)
  return text.length <= MAX_ACCEPTED && text.split(',').some((coding) => GZIP.test(coding))
}

export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}

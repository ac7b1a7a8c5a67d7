// Reads the one request that most connections bring. It takes less than a parser of HTTP does, and takes it alike.
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { POLL_BASE } from '../../base/urls.ts'

/** What of a request says who sends it, and how it wants its answer. */
export interface RequestHead {
  readonly headers: IncomingHttpHeaders
  readonly httpVersionMajor: number
  readonly socket: Socket
}

export interface DirectPoll extends RequestHead {
  readonly dns: string
  readonly endpoint: string
}

/** A whole request without a body or a query, and nothing after it. */
const POLL = new RegExp(
  `^GET ${POLL_BASE}/([\\w.-]{1,253})/([\\w-]{1,100}) HTTP/1\\.1\\r\\n((?:[A-Za-z-]+: [\\x21-\\x7e](?:[\\x20-\\x7e]*[\\x21-\\x7e])?\\r\\n)+)\\r\\n$`,
)

/** Headers that a poll may have: none of them changes how long the request is, or what becomes of the connection. */
const KNOWN: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'authorization',
  'host',
  'traceparent',
  'user-agent',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-real-ip',
])

const MAX_LENGTH = 8 * 1024

/** Returns undefined for whatever is not plainly a poll, each header once: two parsers could read it differently. */
export function parsePoll(bytes: Buffer, socket: Socket): DirectPoll | undefined {
  if (bytes.length > MAX_LENGTH) return undefined
  const [, dns, endpoint, lines] = POLL.exec(bytes.toString('latin1')) ?? []
  if (dns === undefined || endpoint === undefined || lines === undefined) return undefined
  const headers: Record<string, string> = {}
  for (let start = 0; start < lines.length; ) {
    const colon = lines.indexOf(':', start)
    const end = lines.indexOf('\r', colon)
    const name = lines.slice(start, colon).toLowerCase()
    if (!KNOWN.has(name) || headers[name] !== undefined) return undefined
    headers[name] = lines.slice(colon + 2, end)
    start = end + 2
  }
  return headers.host === undefined ? undefined : { dns, endpoint, headers, httpVersionMajor: 1, socket }
}

// Talks to the API: tokens, retries, and what came back as a value or as a failure that says what to do.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Impact } from '../domain/impact.ts'
import type { Json } from '../domain/json.ts'
import { EXIT, Failure } from './failure.ts'
import { hintFor } from './refusal-hints.ts'
import type { Settings } from './settings.ts'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  // biome-ignore lint/suspicious/noExplicitAny: the API's documents are looked into freely
  readonly body: any
}

export interface Call {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Json
  /** Statuses that the caller deals with itself. */
  readonly expect?: readonly number[]
}

export interface Api {
  readonly url: URL
  /** Reads with the read token. */
  get(path: string, call?: Call): Promise<Answer>
  /** Writes once, however often it has to be sent. */
  write(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, call?: Call): Promise<Answer>
  close(): void
}

/** A refusal by the API, with what it said. */
export class Refusal extends Failure {
  readonly status: number
  readonly code: string
  readonly impact: Impact | undefined

  constructor(
    status: number,
    body: { error: string; message: string; details?: { path: string; message: string }[]; impact?: Impact },
    requestId: string | undefined,
  ) {
    const { error, message, details = [], impact } = body
    // A message of one detail says the same already.
    const lines = details.length > 1 ? details.map((detail) => `${detail.path || '/'} ${detail.message}`) : []
    const who = `HTTP ${status} ${error}${requestId ? `, request id ${requestId}` : ''}`
    super(EXIT.refused, message, { details: [...lines, who], hint: hintFor(status, body) })
    this.status = status
    this.code = error
    this.impact = impact
  }
}

interface Options {
  readonly settings: Settings
  readonly env: Readonly<Record<string, string | undefined>>
  readonly version: string
  /** How often a call is tried that did not get through. */
  readonly tries?: number
  note(text: string): void
}

const TRIES = 4
const FIRST_DELAY_MS = 250
const LONGEST_DELAY_MS = 10_000
/** What a proxy or a busy server says of a request that it did not carry out. */
const TRY_AGAIN = new Set([429, 502, 503, 504])

export function openApi({ settings, env, version, tries = TRIES, note }: Options): Api {
  const { url, timeoutMs } = settings
  // An import would load all that these modules can do, the websocket client included: twice the time to start.
  const { request, Agent, globalAgent } = process.getBuiltinModule(
    url.protocol === 'https:' ? 'node:https' : 'node:http',
  )
  const isProxied = Object.keys(env).some((name) => /^https?_proxy$/i.test(name))
  const agent = isProxied ? new Agent({ keepAlive: true, proxyEnv: { ...env } }) : globalAgent

  function send(method: string, path: string, token: string | undefined, call: Call): Promise<Raw> {
    const target = new URL(path.replace(/^\//, ''), url)
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) target.searchParams.set(name, String(value))
    }
    // Bytes: in front of a string, headers would be sent in its encoding.
    const payload = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body))
    const headers = {
      accept: 'application/json',
      'user-agent': `flux-resourceset-cli/${version}`,
      ...(token && { authorization: `Bearer ${token}` }),
      ...(payload !== undefined && {
        'content-type': 'application/json',
        'content-length': payload.length,
      }),
      ...call.headers,
    }
    return new Promise((resolve, reject) => {
      const sent = request(target, { method, headers, agent }, (response) => {
        readAll(response).then((text) => {
          clearTimeout(timer)
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
        }, reject)
      })
      const timer = setTimeout(() => sent.destroy(new TimeoutError(timeoutMs)), timeoutMs)
      sent.on('error', (error) => {
        clearTimeout(timer)
        reject(error)
      })
      sent.end(payload)
    })
  }

  async function exchange(
    method: string,
    path: string,
    token: string | undefined,
    call: Call,
  ): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      let reason: string
      let delay = (FIRST_DELAY_MS * 2 ** (attempt - 1) * (1 + Math.random())) / 2
      try {
        const raw = await send(method, path, token, call)
        if (attempt === tries || !TRY_AGAIN.has(raw.status)) return understand(url, raw, call.expect)
        reason = `HTTP ${raw.status}`
        delay = retryAfter(raw.headers) ?? delay
      } catch (error) {
        if (error instanceof Failure) throw error
        if (attempt === tries || !isPassing(error)) throw unreachable(url, error)
        reason = explain(error)
      }
      note(`${url.origin}: ${reason}; trying again in ${(delay / 1000).toFixed(1)} s`)
      await new Promise((resolve) => setTimeout(resolve, delay))
    }
  }

  return {
    url,
    get: (path, call = {}) => exchange('GET', path, settings.readToken, call),
    write(method, path, call = {}) {
      const headers = { 'idempotency-key': crypto.randomUUID(), ...call.headers }
      return exchange(method, path, settings.writeToken, { ...call, headers })
    },
    close: () => agent.destroy(),
  }
}

interface Raw {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

function readAll(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    response.on('error', reject)
  })
}

class TimeoutError extends Error {
  readonly code = 'ETIMEDOUT'
  constructor(ms: number) {
    super(`no answer within ${ms / 1000} s`)
  }
}

function retryAfter(headers: IncomingHttpHeaders): number | undefined {
  const seconds = Number(headers['retry-after'])
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds * 1000, LONGEST_DELAY_MS) : undefined
}

/** JSON of the API, or a failure: a login page or a proxy's error is never taken for an answer. */
function understand(url: URL, { status, headers, text }: Raw, expected: readonly number[] = []): Answer {
  const requestId = headers['x-request-id'] as string | undefined
  const isOk = status >= 200 && status < 300
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    if (status === 304 || (isOk && text === '')) return { status, headers, body: undefined }
    throw strange(url, { status, headers, text })
  }
  if (isOk || expected.includes(status)) return { status, headers, body }
  const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown }
  if (typeof error !== 'string' || typeof message !== 'string') throw strange(url, { status, headers, text })
  throw new Refusal(status, body as ConstructorParameters<typeof Refusal>[1], requestId)
}

function strange(url: URL, { status, headers, text }: Raw): Failure {
  const type = String(headers['content-type'] ?? 'no content type').split(';')[0]
  const where = headers.location ? `, and points to ${headers.location}` : ''
  const excerpt = text.trim().slice(0, 100).split('\n')[0] ?? ''
  return new Failure(
    EXIT.unreachable,
    `what answers at ${url.href} is not this API: HTTP ${status}, ${type}${where}`,
    {
      details: excerpt ? [excerpt] : [],
      hint: 'check --api-url or FLUX_API_URL, and what is in between: a proxy, a login page, a port-forward',
    },
  )
}

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'connection refused: nothing listens there',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the host name could not be looked up',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'the network cannot be reached',
  HPE_INVALID_CONSTANT: 'what answers does not speak HTTP',
  EPROTO: 'what answers does not speak TLS: is it http instead of https?',
}

function explain(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return REASONS[code] ?? (message || code)
}

/** Whether trying again may help. */
function isPassing(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException
  return ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EAI_AGAIN', 'EHOSTUNREACH'].includes(code)
}

function unreachable(url: URL, error: unknown): Failure {
  return new Failure(EXIT.unreachable, `cannot reach ${url.href}: ${explain(error)}`, {
    hint: 'is the service running, and is --api-url or FLUX_API_URL right?',
  })
}

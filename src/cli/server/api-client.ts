// Talks to the API: tokens, retries, and what came back as a value or as a failure that says what to do.

import type { IncomingHttpHeaders } from 'node:http'
import { BATCH_BODY_LIMIT } from '../../api/limits.ts'
import { isObject, type Json } from '../../base/json.ts'
import type { Reason } from '../../base/problem.ts'
import type { Impact } from '../../domain/delivery/impact.ts'
import type { Settings } from '../config/settings.ts'
import { EXIT, Failure } from '../failure.ts'
import { hintFor } from '../output/refusal-hints.ts'
import type { Env } from '../output/terminal.ts'
import { describeAnswer, EVENTS, explain, openSender, type Raw } from './send-request.ts'

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
  /** The same for server-sent events: the body is what comes, until it ends. */
  stream(path: string, call?: Call): Promise<Answer>
  /** Reads with the write token what only those may see who may change it. */
  getAsWriter(path: string, call?: Call): Promise<Answer>
  /** Writes once, however often it has to be sent. */
  write(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, call?: Call): Promise<Answer>
  close(): void
}

interface ProblemBody {
  readonly error: string
  readonly reason?: Reason
  readonly message: string
  readonly details?: unknown
  readonly impact?: Impact
}

/** A refusal by the API, with what it said. */
export class Refusal extends Failure {
  readonly status: number
  readonly code: string
  readonly reason: Reason | undefined
  readonly impact: Impact | undefined

  constructor(status: number, body: ProblemBody, requestId: string | undefined) {
    const { error, message, impact } = body
    const details = Array.isArray(body.details) ? body.details.filter(isObject) : []
    // A message of one detail mostly says the same already.
    const isTold = details.length === 1 && message.includes(String(details[0]?.message))
    const lines = isTold ? [] : details.map((detail) => `${detail.path || '/'} ${detail.message}`)
    const who = `HTTP ${status} ${error}${requestId ? `, request id ${requestId}` : ''}`
    super(EXIT.refused, message, { details: [...lines, who], hint: hintFor(status, body) })
    this.status = status
    this.code = error
    this.reason = body.reason
    this.impact = impact
  }
}

interface Options {
  readonly settings: Settings
  readonly env: Env
  readonly version: string
  /** How often a call is tried that did not get through. */
  readonly tries?: number
  /** Makes sure before each call that the tokens are still good. */
  fresh?(settings: Settings): Promise<Settings>
  note(text: string): void
}

const TRIES = 4
const FIRST_DELAY_MS = 250
const LONGEST_DELAY_MS = 10_000
/** What a proxy or a busy server says of a request that it did not carry out. */
const TRY_AGAIN = new Set([429, 502, 503, 504])

export function openApi(options: Options): Api {
  const { settings, env, version, tries = TRIES, fresh, note } = options
  const { url, timeoutMs } = settings
  const sender = openSender(url.protocol, env, timeoutMs)
  let current = settings
  let renewing: Promise<Settings> | undefined
  const hide = (text: string): string =>
    [current.readToken, current.writeToken].reduce<string>(
      (hidden, token) => (token ? hidden.replaceAll(token, '(token)') : hidden),
      text,
    )

  function send(method: string, path: string, token: string | undefined, call: Call): Promise<Raw> {
    const target = new URL(path.replace(/^\//, ''), url)
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) target.searchParams.set(name, String(value))
    }
    // Bytes: in front of a string, headers would be sent in its encoding.
    const payload = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body))
    if (payload && payload.length > BATCH_BODY_LIMIT) throw tooLarge(payload.length)
    const headers = {
      accept: 'application/json',
      'user-agent': `flux-resourceset-cli/${version}`,
      ...(token && { authorization: `Bearer ${token}` }),
      ...(payload && { 'content-type': 'application/json', 'content-length': payload.length }),
      ...call.headers,
    }
    return sender.send(target, { method, headers, payload })
  }

  /** Once for all calls that are under way together. */
  async function freshSettings(): Promise<Settings> {
    if (!fresh) return settings
    renewing ??= fresh(current).finally(() => {
      renewing = undefined
    })
    current = await renewing
    return current
  }

  let isClosed = false

  async function exchange(
    method: string,
    path: string,
    use: 'readToken' | 'writeToken',
    call: Call,
  ): Promise<Answer> {
    const { expect = [] } = call
    const token = (await freshSettings())[use]
    for (let attempt = 1; ; attempt++) {
      let reason: string
      let delay = (FIRST_DELAY_MS * 2 ** (attempt - 1) * (1 + Math.random())) / 2
      try {
        const raw = await send(method, path, token, call)
        const isFinal = attempt === tries || !mayPass(raw) || expect.includes(raw.status)
        if (isFinal) return understand(url, raw, expect, hide)
        reason = `HTTP ${raw.status}`
        delay = retryAfter(raw.headers) ?? delay
      } catch (error) {
        // Another call has failed meanwhile: nobody waits for this one.
        if (error instanceof Failure || isClosed) throw error
        if (attempt === tries || !isPassing(error)) {
          const isWrite = method !== 'GET' && call.query?.dry_run === undefined
          throw unreachable(url, error, sender.isProxied, isWrite)
        }
        reason = explain(error)
      }
      note(`${url.origin}: ${reason}; trying again in ${(delay / 1000).toFixed(1)} s`)
      await new Promise((resolve) => setTimeout(resolve, delay))
    }
  }

  return {
    url,
    get: (path, call = {}) => exchange('GET', path, 'readToken', call),
    stream: (path, call = {}) =>
      exchange('GET', path, 'readToken', { ...call, headers: { ...call.headers, accept: EVENTS } }),
    getAsWriter: (path, call = {}) => exchange('GET', path, 'writeToken', call),
    write(method, path, call = {}) {
      const headers = { 'idempotency-key': crypto.randomUUID(), ...call.headers }
      return exchange(method, path, 'writeToken', { ...call, headers })
    },
    close() {
      isClosed = true
      sender.close()
    },
  }
}

function tooLarge(bytes: number): Failure {
  const size = `${Math.ceil(bytes / 1024 / 1024)} MiB`
  return new Failure(
    EXIT.usage,
    `this is ${size} in one request, and the service takes 32 MiB: send a part at a time`,
  )
}

/** Of ours, 429 is for credentials that are not valid: they will not be in a moment either. */
function mayPass({ status, text }: Raw): boolean {
  return TRY_AGAIN.has(status) && !(status === 429 && text.includes('"rate_limited"'))
}

function retryAfter(headers: IncomingHttpHeaders): number | undefined {
  const seconds = Number(headers['retry-after'])
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds * 1000, LONGEST_DELAY_MS) : undefined
}

/**
 * JSON of the API, or a failure: a login page or a proxy's error is never taken for an answer. Every answer of the
 * service says which revision it is from.
 */
function understand(url: URL, raw: Raw, expected: readonly number[], hide: (text: string) => string): Answer {
  const { status, headers, text } = raw
  const isOk = status >= 200 && status < 300
  let body: unknown
  // Manifests are handed on as they are.
  const isYaml = isOk && headers['content-type']?.startsWith('application/yaml')
  try {
    body = raw.stream ?? (isYaml ? text : JSON.parse(text))
  } catch {
    throw strange(url, raw, hide)
  }
  if (isOk && headers['x-revision'] !== undefined) return { status, headers, body }
  const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown }
  if (isOk || typeof error !== 'string' || typeof message !== 'string') throw strange(url, raw, hide)
  if (expected.includes(status)) return { status, headers, body }
  throw new Refusal(status, JSON.parse(hide(text)), headers['x-request-id'] as string | undefined)
}

function strange(url: URL, raw: Raw, hide: (text: string) => string): Failure {
  const excerpt = raw.text.trim().slice(0, 100).split('\n')[0] ?? ''
  const message = `what answers at ${url.href} is not this API: ${describeAnswer(raw)}`
  return new Failure(EXIT.unreachable, hide(message), {
    details: excerpt ? [hide(excerpt)] : [],
    hint: 'check --api-url or FLUX_API_URL, and what is in between: a proxy, a login page, a port-forward',
  })
}

/** Whether trying again may help. */
function isPassing(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException
  return ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EAI_AGAIN', 'EHOSTUNREACH'].includes(code)
}

/** A write that got lost on its way may have been made. */
function unreachable(url: URL, error: unknown, isProxied: boolean, isWrite: boolean): Failure {
  const { code, address, port } = error as NodeJS.ErrnoException & { address?: string; port?: number }
  const isElsewhere = isProxied && port !== undefined && String(port) !== url.port
  const who = isElsewhere ? ` (by the proxy at ${address}:${port})` : ''
  const isUnsure = isWrite && code !== 'ECONNREFUSED' && code !== 'ENOTFOUND'
  const hint =
    code === 'ECONNRESET' && url.protocol === 'http:'
      ? 'if it is always so: is it https instead of http?'
      : `is the service running, and is --api-url or FLUX_API_URL right${isProxied ? ', and the proxy' : ''}?`
  return new Failure(EXIT.unreachable, `cannot reach ${url.href}: ${explain(error)}${who}`, {
    details: isUnsure ? ['the change may have been made: see flux-resourceset-cli log'] : [],
    hint,
  })
}

// The client of the API: tokens, retries, and each response as a value or as a failure that says what to do.
import type { IncomingHttpHeaders } from 'node:http'
import { BATCH_BODY_LIMIT } from '../../api/limits.ts'
import { backoff } from '../../runtime/backoff.ts'
import { PROGRAM } from '../cli-command.ts'
import type { Settings } from '../config/settings.ts'
import { EXIT, Failure } from '../failure.ts'
import type { Env } from '../output/terminal.ts'
import type { Api, ApiResponse, Call } from './api.ts'
import { inOwnWords } from './own-words.ts'
import { Refusal } from './refusal.ts'
import { describeResponse, EVENTS, explain, type Outgoing, openSender, type Raw } from './send-request.ts'
import { tlsHint } from './tls-options.ts'

interface Options {
  readonly settings: Settings
  readonly env: Env
  readonly version: string
  /** How many attempts a call gets. */
  readonly tries?: number
  /** Renews tokens that are about to expire; called before each call. */
  renew?(settings: Settings): Promise<Settings>
  note(text: string): void
}

const TRIES = 4
const FIRST_DELAY_MS = 250
const MAX_DELAY_MS = 10_000
/** The statuses of a proxy or a busy server for a request that was not carried out. */
const RETRIED = new Set([429, 502, 503, 504])

export function openApi(options: Options): Api {
  const { settings, env, version, tries = TRIES, note } = options
  const { url, timeoutMs } = settings
  const sender = openSender(url.protocol, env, timeoutMs, settings.tls)
  const tokens = new Tokens(options)
  let isClosed = false

  async function exchange(
    method: string,
    path: string,
    use: 'readToken' | 'writeToken',
    call: Call,
  ): Promise<ApiResponse> {
    const { expect = [] } = call
    const token = (await tokens.renewed())[use]
    const target = targetOf(url, path, call)
    const outgoing = requestFor(method, call, { token, version })
    const delays = backoff({ first: FIRST_DELAY_MS, max: MAX_DELAY_MS })
    for (let attempt = 1; ; attempt++) {
      let reason: string
      let delay = delays.next()
      try {
        const raw = await sender.send(target, outgoing)
        const isFinal = attempt === tries || !isRetried(raw) || expect.includes(raw.status)
        if (isFinal) return parseResponse(url, raw, expect, (text) => tokens.hide(text))
        reason = `HTTP ${raw.status}`
        delay = retryAfter(raw.headers) ?? delay
      } catch (error) {
        if (error instanceof Refusal) throw inOwnWords(error, settings, use, method)
        // Nobody waits for a call after the client was closed, because another call has failed.
        if (error instanceof Failure || isClosed) throw error
        if (attempt === tries || !isTransient(error)) {
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

/** The tokens of the settings, renewed before they expire, and kept out of messages. */
class Tokens {
  readonly #renew: Options['renew']
  #settings: Settings
  #pending: Promise<Settings> | undefined

  constructor({ settings, renew }: Pick<Options, 'settings' | 'renew'>) {
    this.#settings = settings
    this.#renew = renew
  }

  /** Calls at the same time share one renewal. */
  async renewed(): Promise<Settings> {
    this.#pending ??= this.#renew?.(this.#settings).finally(() => {
      this.#pending = undefined
    })
    this.#settings = (await this.#pending) ?? this.#settings
    return this.#settings
  }

  hide(text: string): string {
    const { readToken, writeToken } = this.#settings
    return [readToken, writeToken].reduce<string>(
      (hidden, token) => (token ? hidden.replaceAll(token, '(token)') : hidden),
      text,
    )
  }
}

function targetOf(url: URL, path: string, { query = {} }: Call): URL {
  const target = new URL(path.replace(/^\//, ''), url)
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) target.searchParams.set(name, String(value))
  }
  return target
}

function requestFor(
  method: string,
  call: Call,
  { token, version }: { readonly token: string | undefined; readonly version: string },
): Outgoing {
  // Bytes: in front of a string, headers would be sent in its encoding.
  const payload = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body))
  if (payload && payload.length > BATCH_BODY_LIMIT) throw tooLarge(payload.length)
  const headers = {
    accept: 'application/json',
    'user-agent': `${PROGRAM}/${version}`,
    ...(token && { authorization: `Bearer ${token}` }),
    ...(payload && { 'content-type': 'application/json', 'content-length': payload.length }),
    ...call.headers,
  }
  return { method, headers, payload }
}

function tooLarge(bytes: number): Failure {
  const size = `${Math.ceil(bytes / 1024 / 1024)} MiB`
  return new Failure(
    EXIT.usage,
    `this is ${size} in one request, and the service takes 32 MiB: send a part at a time`,
  )
}

/** Whether a later attempt may get another status. The service's own 429 is for credentials that are not valid. */
function isRetried({ status, text }: Raw): boolean {
  return RETRIED.has(status) && !(status === 429 && text.includes('"rate_limited"'))
}

function retryAfter(headers: IncomingHttpHeaders): number | undefined {
  const seconds = Number(headers['retry-after'])
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds * 1000, MAX_DELAY_MS) : undefined
}

/**
 * Returns JSON of the API or throws: a login page or a proxy's error is never taken for a response of the API. Every
 * success of the service has an X-Revision.
 */
function parseResponse(
  url: URL,
  raw: Raw,
  expected: readonly number[],
  hide: (text: string) => string,
): ApiResponse {
  const { status, headers, text } = raw
  const isOk = status >= 200 && status < 300
  let body: unknown
  // Manifests are returned as text.
  const isYaml = isOk && headers['content-type']?.startsWith('application/yaml')
  try {
    body = raw.stream ?? (isYaml ? text : JSON.parse(text))
  } catch {
    throw notThisApi(url, raw, hide)
  }
  if (isOk && headers['x-revision'] !== undefined) return { status, headers, body }
  const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown }
  if (isOk || typeof error !== 'string' || typeof message !== 'string') throw notThisApi(url, raw, hide)
  if (expected.includes(status)) return { status, headers, body }
  throw new Refusal(status, JSON.parse(hide(text)), headers['x-request-id'] as string | undefined)
}

function notThisApi(url: URL, raw: Raw, hide: (text: string) => string): Failure {
  const excerpt = raw.text.trim().slice(0, 100).split('\n')[0] ?? ''
  const message = `what answers at ${url.href} is not this API: ${describeResponse(raw)}`
  return new Failure(EXIT.unreachable, hide(message), {
    details: excerpt ? [hide(excerpt)] : [],
    hint: 'check --api-url or FLUX_API_URL, and what is in between: a proxy, a login page, a port-forward',
  })
}

/** Whether a failed connection may work at a later attempt. */
function isTransient(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException
  return ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EAI_AGAIN', 'EHOSTUNREACH'].includes(code)
}

/** A failure to connect; a write whose response got lost may have been made, and the details say so. */
function unreachable(url: URL, error: unknown, isProxied: boolean, isWrite: boolean): Failure {
  const { code, address, port } = error as NodeJS.ErrnoException & { address?: string; port?: number }
  const isByProxy = isProxied && port !== undefined && String(port) !== url.port
  const source = isByProxy ? ` (by the proxy at ${address}:${port})` : ''
  const mayBeMade = isWrite && code !== 'ECONNREFUSED' && code !== 'ENOTFOUND'
  const hint =
    tlsHint(error) ??
    (code === 'ECONNRESET' && url.protocol === 'http:'
      ? 'if it is always so: is it https instead of http?'
      : `is the service running, and is --api-url or FLUX_API_URL right${isProxied ? ', and the proxy' : ''}?`)
  return new Failure(EXIT.unreachable, `cannot reach ${url.href}: ${explain(error)}${source}`, {
    details: mayBeMade ? [`the change may have been made: see ${PROGRAM} log`] : [],
    hint,
  })
}

// The one way to the API: requests of this tab's credential, typed responses, refusals with the server's own words.
import type { ErrorBody } from '../../src/api/wire-types.ts'
import { currentToken, logOut } from '../session/session.ts'
import { noteServerTime } from './server-clock.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
export type QueryValues = Readonly<Record<string, string | number | boolean | undefined>>

export interface Call {
  readonly method: Method
  readonly path: string
  readonly query?: QueryValues
  readonly body?: unknown
  /** The ETag that the document must still have. */
  readonly ifMatch?: string | undefined
  /** Why, for the audit. */
  readonly message?: string
  readonly signal?: AbortSignal
  /** Instead of that of the session. */
  readonly token?: string
}

export interface Reply<T> {
  readonly body: T
  readonly revision: number
  readonly etag: string | undefined
  readonly total: number | undefined
  readonly warnings: readonly string[]
}

/** A refusal of the service, or a request that did not reach it. */
export class ApiProblem extends Error {
  override readonly name = 'ApiProblem'
  readonly status: number
  readonly body: Partial<ErrorBody>
  readonly requestId: string | undefined
  readonly retryAfter: number | undefined

  constructor(status: number, body: Partial<ErrorBody>, headers?: Headers, cause?: unknown) {
    super(body.message ?? `the service responded with status ${status}`, { cause })
    this.status = status
    this.body = body
    this.requestId = headers?.get('X-Request-Id') ?? undefined
    this.retryAfter = Number(headers?.get('Retry-After')) || undefined
  }
}

export function urlOf(path: string, query: QueryValues = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return search === '' ? path : `${path}?${search}`
}

/** A path of segments that may hold any character. */
export function pathOf(...segments: readonly string[]): string {
  return `/${segments.map(encodeURIComponent).join('/')}`
}

export async function send<T>(call: Call): Promise<Reply<T>> {
  const response = await open(call)
  const text = await response.text()
  const { headers } = response
  return {
    body: (text === '' ? undefined : JSON.parse(text)) as T,
    revision: Number(headers.get('X-Revision') ?? 0),
    etag: headers.get('ETag') ?? undefined,
    total: headers.has('X-Total-Count') ? Number(headers.get('X-Total-Count')) : undefined,
    warnings: warningsIn(headers.get('Warning')),
  }
}

export async function read<T>(path: string, query: QueryValues, signal: AbortSignal): Promise<T> {
  return (await send<T>({ method: 'GET', path, query, signal })).body
}

/** Sends a request; a refusal is thrown, and the body of the response is still to be read. */
export async function open(call: Call): Promise<Response> {
  const { method, path, query, body, ifMatch, message, signal, token = currentToken() } = call
  let response: Response
  try {
    response = await fetch(urlOf(path, query), {
      method,
      cache: 'no-store',
      credentials: 'omit',
      headers: {
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...(ifMatch !== undefined && { 'If-Match': ifMatch }),
        ...(message && { 'X-Change-Message': asHeader(message) }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiProblem(0, { message: 'The service cannot be reached.' }, undefined, error)
  }
  noteServerTime(response.headers)
  if (response.ok) return response
  const problem = new ApiProblem(response.status, await problemIn(response), response.headers)
  // The login page tries a credential that is not that of the session.
  if (response.status === 401 && call.token === undefined) logOut(`You were logged out: ${problem.message}.`)
  throw problem
}

async function problemIn(response: Response): Promise<Partial<ErrorBody>> {
  try {
    return (await response.json()) as ErrorBody
  } catch {
    return {}
  }
}

/** Headers are bytes; the service reads them as UTF-8. */
function asHeader(text: string): string {
  return String.fromCharCode(...new TextEncoder().encode(text.replaceAll(/\s+/g, ' ').trim()))
}

/** The texts of `299 - "…"` warnings. */
function warningsIn(header: string | null): string[] {
  const quoted = [...(header ?? '').matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g)]
  return quoted.map(([, text = '']) => text.replaceAll(/\\(.)/g, '$1'))
}

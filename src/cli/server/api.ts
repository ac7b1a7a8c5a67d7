// What commands need of the API: requests with the right token, and responses as values.
import type { IncomingHttpHeaders } from 'node:http'
import type { Json } from '../../base/json.ts'

export interface ApiResponse {
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

/** Every method throws a Failure where no response of the API came, and a Refusal where it is an error. */
export interface Api {
  readonly url: URL
  /** Reads with the read token. */
  get(path: string, call?: Call): Promise<ApiResponse>
  /** Opens server-sent events with the read token: the body is a stream of bytes until the connection ends. */
  stream(path: string, call?: Call): Promise<ApiResponse>
  /** Reads with the write token what only those may see who may change it. */
  getAsWriter(path: string, call?: Call): Promise<ApiResponse>
  /** Writes with the write token and an idempotency key: retries make no second revision. */
  write(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, call?: Call): Promise<ApiResponse>
  close(): void
}

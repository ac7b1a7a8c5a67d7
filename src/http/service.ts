// What the routes work with, handed to each of them in the open.
import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import type { Template } from '../bootstrap/load-templates.ts'
import type { Engine } from '../engine/engine.ts'
import type { RegisteredTypes } from '../registry/build-types.ts'
import type { Auth } from './auth/auth.ts'
import type { AddressOf } from './auth/client-address.ts'
import type { Admission } from './load/admission.ts'
import type { Metrics } from './metrics.ts'
import type { Login } from './openapi/openapi.ts'

export interface Limits {
  /** Requests other than polls that may be under way at once; half as many writes. */
  readonly requests: number
  /** Open connections, and how many of them may come from one address; half where nobody says. */
  readonly connections: number
  readonly connectionsPerAddress?: number
  /** Addresses of proxies, which have connections for many. */
  readonly trusts?: (address: string) => boolean
  /** How long the headers of a request may take, and the whole of it. */
  readonly headersMs?: number
  readonly requestMs?: number
  /** How long a connection may stay without a byte on its way, while a request is answered. */
  readonly stalledMs?: number
  /** Streams of revisions that may be open at once. */
  readonly watchers?: number
  readonly watchersPerCaller?: number
  /** How often something is written to a stream where nothing happens. */
  readonly heartbeatMs?: number
  /** How much of a stream may wait for its reader, and for how long. */
  readonly unsentBytes?: number
  readonly stuckMs?: number
}

export interface Service {
  readonly mode: 'read-only' | 'crud'
  readonly version: string
  readonly engine: Engine
  readonly types: RegisteredTypes
  /** What bootstrap bundles carry. */
  readonly templates: readonly Template[]
  /** Where clusters reach the service, when that is known. */
  readonly externalUrl: string | undefined
  readonly auth: Auth
  readonly addressOf: AddressOf
  /** Whether what a request says of the way it came counts: it comes from a proxy that is trusted. */
  readonly isProxied: (request: IncomingMessage) => boolean
  readonly limits: Limits
  /** What callers have of it now. */
  readonly admission: Admission
  /** How old the state may become, with the store away, before this process says that it is not ready. */
  readonly maxStalenessMs: number
  /** Origins whose pages may call the API. */
  readonly corsOrigins: readonly string[]
  /** Whether metrics are served elsewhere. */
  readonly hasAdminPort: boolean
  /** How people log in, where they can. */
  readonly login: Login | undefined
  readonly now: () => Date
  readonly metrics: Metrics
  readonly log: Logger
}

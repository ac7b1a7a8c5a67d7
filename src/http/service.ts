// What the routes work with, handed to each of them in the open.
import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import type { Template } from '../bootstrap/load-templates.ts'
import type { Engine } from '../engine/engine.ts'
import type { RegisteredTypes } from '../registry/build-types.ts'
import type { AddressOf } from './auth/client-address.ts'
import type { Auth } from './auth/identify.ts'
import type { Admission } from './load/admission.ts'
import type { Metrics } from './metrics.ts'
import type { Limits } from './service-limits.ts'

/** Of the OIDC issuer, for those who log in on a command line. */
export interface Login {
  readonly issuer: string
  readonly clientId: string
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

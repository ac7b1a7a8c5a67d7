// What the routes work with, passed to each of them explicitly.
import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import type { Template } from '../bootstrap/template.ts'
import type { Engine } from '../engine/engine.ts'
import type { RegisteredTypes } from '../registry/build-types.ts'
import type { Tracer } from '../runtime/spans.ts'
import type { AddressOf } from './auth/client-address.ts'
import type { Auth } from './auth/identify.ts'
import type { ConsoleFiles } from './console/console-files.ts'
import type { Admission } from './load/admission.ts'
import type { Metrics } from './metrics.ts'
import type { AnswerCache } from './poll/answer-cache.ts'
import type { Limits } from './service-limits.ts'

/** The OIDC settings for a login on the command line. */
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
  /** The URL where clusters reach the service; undefined when it is not known. */
  readonly externalUrl: string | undefined
  readonly auth: Auth
  readonly answers: AnswerCache
  readonly addressOf: AddressOf
  /** Whether a request comes from a trusted proxy, so that its forwarding headers count. */
  readonly isProxied: (request: IncomingMessage) => boolean
  readonly limits: Limits
  /** What callers use of the service now. */
  readonly admission: Admission
  /** How stale the state may become, while the store is unavailable, before `/ready` fails. */
  readonly maxStalenessMs: number
  /** Origins whose pages may call the API. */
  readonly corsOrigins: readonly string[]
  /** Whether metrics are served elsewhere. */
  readonly hasAdminPort: boolean
  /** How people log in, where they can. */
  readonly login: Login | undefined
  /** The web console; undefined where it is switched off. */
  readonly console: ConsoleFiles | undefined
  readonly now: () => Date
  readonly metrics: Metrics
  /** Records what writes take; undefined where nobody looks. */
  readonly tracer?: Tracer | undefined
  /** Whether admins may take profiles of the process. */
  readonly hasProfiles?: boolean
  readonly log: Logger
}

// What the routes work with, handed to each of them in the open.
import type { Logger } from 'pino'
import type { Engine } from '../engine/engine.ts'
import type { RegisteredTypes } from '../registry/build-types.ts'
import type { Template } from '../registry/load-templates.ts'
import type { Tokens } from './auth.ts'
import type { Metrics } from './metrics.ts'

export interface Service {
  readonly mode: 'read-only' | 'crud'
  readonly version: string
  readonly engine: Engine
  readonly types: RegisteredTypes
  /** What bootstrap bundles carry. */
  readonly templates: readonly Template[]
  /** Where clusters reach the service, when that is known. */
  readonly externalUrl: string | undefined
  readonly tokens: Tokens
  readonly metrics: Metrics
  readonly log: Logger
}

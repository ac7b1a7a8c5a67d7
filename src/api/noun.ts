// A resource type as tools learn it from `x-flux-types` of the API's description.
import type { SchemaObject } from '../base/json-schema.ts'

export interface Noun {
  /** As in routes: `platform_components`. */
  readonly name: string
  /** In sentences: `platform component`. */
  readonly singular: string
  /** As a command: `component`. */
  readonly noun: string
  readonly description: string
  readonly bookkeeping: boolean
  readonly schema: SchemaObject
  readonly filters: readonly string[]
  /** The methods of its routes. An older server leaves this out: all methods are allowed there. */
  readonly methods?: readonly string[]
  /** Fields that name documents of a type. */
  readonly references: Readonly<Record<string, string>>
  readonly cluster?: {
    readonly dns: string
    readonly patches: string
    readonly labels?: string
    readonly environment?: string
  }
  readonly delivery?: {
    readonly endpoint: string
    readonly assigned_by: string
    readonly patches: boolean
    /** Whether clusters can be counted by the version that they have. */
    readonly versions?: boolean
    readonly enabled_by?: string
    readonly reference: SchemaObject
  }
}

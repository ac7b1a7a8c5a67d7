// What can be asked for. A write is a list of commands; `decide` turns it into changes.
import type { Json, JsonObject } from './json.ts'

/** The state a caller expects the document to be in: If-Match and If-None-Match of HTTP. */
export type Expectation =
  | { readonly exists: true }
  | { readonly exists: false }
  | { readonly revisions: readonly number[] }

interface Base {
  /** JSON pointer to the command's payload in what was sent; the payload's problems are reported below it. */
  readonly path: string
  readonly expect?: Expectation
}

export interface Create extends Base {
  readonly op: 'create'
  readonly type: string
  readonly document: Json
}
/** Replaces a document; with `exists: false` expected, creates it. */
export interface Replace extends Base {
  readonly op: 'replace'
  readonly type: string
  readonly id: string
  readonly document: Json
}
export interface Patch extends Base {
  readonly op: 'patch'
  readonly type: string
  readonly id: string
  readonly patch: Json
  /** RFC 7396 or RFC 6902. */
  readonly format: 'merge' | 'json'
}
export interface Delete extends Base {
  readonly op: 'delete'
  readonly type: string
  readonly id: string
  /** Also removes every reference to it. */
  readonly cascade: boolean
  /** Leaves no tombstone. */
  readonly purge: boolean
}
export interface Restore extends Base {
  readonly op: 'restore'
  readonly type: string
  readonly id: string
}
/** Assigns a document to a cluster, or changes how it is assigned; keeps its place in the list. */
export interface Assign extends Base {
  readonly op: 'assign'
  readonly type: string
  readonly cluster: string
  readonly id: string
  readonly reference: Json
  /** Changes the named fields of an existing reference instead of replacing it. */
  readonly merge: boolean
}
export interface Unassign extends Base {
  readonly op: 'unassign'
  readonly type: string
  readonly cluster: string
  readonly id: string
}
/** Sets a cluster's values for one of its components; null removes a value. */
export interface PatchValues extends Base {
  readonly op: 'patch_values'
  readonly cluster: string
  readonly component: string
  readonly values: Json
  /** Keeps the values that are not named. */
  readonly merge: boolean
}

export type Command = Create | Replace | Patch | Delete | Restore | Assign | Unassign | PatchValues

/** The document that a command is about. */
export interface Outcome {
  readonly type: string
  readonly id: string
  readonly created: boolean
  /** What a deleting command took away. */
  readonly removed?: JsonObject
}

// A manifest that bundles carry, as it was loaded.
import type { Document } from 'yaml'

/** One manifest, with its comments and its scalars as its file has them. */
export interface Template {
  readonly kind: string
  readonly name: string
  /** The endpoints that the manifest takes inputs from. */
  readonly endpoints: readonly string[]
  /** Why it cannot say which answers it has applied; undefined when it can, or when it reads none. */
  readonly obstacle: string | undefined
  readonly yaml: Document
}

// The identity that the service takes a caller for.
import type { Grant } from '../../domain/access/grant.ts'

/** The body of /whoami. */
export interface CallerIdentity extends Grant {
  readonly name: string
  /** The kind of credential: `token`, `oidc` and so on. */
  readonly via: string
  readonly expires_at?: string
}

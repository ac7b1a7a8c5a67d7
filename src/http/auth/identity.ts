// Who is asking, as a value that requests carry.
import type { FastifyRequest } from 'fastify'
import type { Grant } from '../../domain/access/grant.ts'

export interface Identity {
  /** As it stands in the audit. */
  readonly name: string
  readonly via: 'environment' | 'token' | 'certificate' | 'oidc'
  readonly grant: Grant
  /** RFC 3339, UTC; when the credential stops being one. */
  readonly expiresAt?: string
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined until `requireAccess` has let the request pass; routes ask `identityOf`. */
    identity: Identity | undefined
  }
}

/** Throws where nobody was asked who they are: nothing may be done, or audited, for somebody unknown. */
export function identityOf({ identity, method, url }: FastifyRequest): Identity {
  if (!identity)
    throw new Error(`${method} ${url.split('?')[0]} is outside of the scope that requires access`)
  return identity
}

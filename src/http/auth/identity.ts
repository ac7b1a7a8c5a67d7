// The identity of a caller, as a value that requests carry.
import type { FastifyRequest } from 'fastify'
import type { Grant } from '../../domain/access/grant.ts'

export interface Identity {
  /** The name in the audit. */
  readonly name: string
  readonly via: 'environment' | 'token' | 'certificate' | 'oidc'
  readonly grant: Grant
  /** When the credential expires (RFC 3339, UTC). */
  readonly expiresAt?: string
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined until `requireAccess` has let the request pass; routes ask `identityOf`. */
    identity: Identity | undefined
  }
}

/** Throws on a route without authentication: nothing may be done, or audited, for an unknown caller. */
export function identityOf({ identity, method, url }: FastifyRequest): Identity {
  if (!identity)
    throw new Error(`${method} ${url.split('?')[0]} is outside of the scope that requires access`)
  return identity
}

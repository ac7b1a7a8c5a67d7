// Who is asking: bearer tokens, and HTTP Basic with the token as password.
import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '../domain/problem.ts'
import { sendProblem } from './problem-response.ts'

interface Identity {
  /** As it stands in the audit. */
  readonly name: string
  readonly canWrite: boolean
}

/** What a route asks of its caller. */
type Access = 'read' | 'write'

export interface Tokens {
  identify(authorization: string | undefined): Identity | undefined
}

/** Tokens are found by their digest, so the time it takes tells nothing about how much of a guess was right. */
export function createTokens(read: string, write: string): Tokens {
  const byDigest = new Map<string, Identity>([
    [hash('sha256', read), { name: 'reader', canWrite: false }],
    [hash('sha256', write), { name: 'writer', canWrite: true }],
  ])
  return {
    identify(authorization) {
      const token = authorization === undefined ? undefined : tokenIn(authorization)
      return token === undefined ? undefined : byDigest.get(hash('sha256', token))
    },
  }
}

function tokenIn(authorization: string): string | undefined {
  const space = authorization.indexOf(' ')
  const scheme = authorization.slice(0, space).toLowerCase()
  const credentials = authorization.slice(space + 1).trim()
  if (scheme === 'bearer') return credentials
  if (scheme !== 'basic') return undefined
  const pair = Buffer.from(credentials, 'base64').toString('utf8')
  const colon = pair.indexOf(':')
  return colon < 0 ? undefined : pair.slice(colon + 1)
}

declare module 'fastify' {
  interface FastifyRequest {
    identity: Identity | undefined
  }
  interface FastifyContextConfig {
    access?: Access
  }
}

export const UNAUTHORIZED: Problem = {
  code: 'unauthorized',
  message: 'a valid token is needed: send "Authorization: Bearer <token>"',
}

/** Lets a request pass only with what its route asks for; a route that says nothing asks for the write token. */
export function requireAccess(tokens: Tokens) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const { access = 'write' } = request.routeOptions.config
    const identity = tokens.identify(request.headers.authorization)
    if (!identity) {
      sendProblem(reply, UNAUTHORIZED)
    } else if (access === 'write' && !identity.canWrite) {
      sendProblem(reply, { code: 'forbidden', message: 'this token may only read: use the write token' })
    } else {
      request.identity = identity
      done()
    }
  }
}

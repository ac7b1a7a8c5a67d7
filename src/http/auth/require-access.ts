// Whether a caller may use a route: a role for every access.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '../../base/problem.ts'
import { type Grant, mayMirror, type Role, reaches } from '../../domain/access/grant.ts'
import { sendProblem } from '../request/problem-response.ts'
import type { Auth } from './identify.ts'

/** What a route asks of its caller; `open` asks for nothing, `poll` is decided by the poll handler. */
export type Access = 'open' | 'poll' | 'known' | 'mirror' | 'watch' | 'read' | 'write' | 'admin'

const NEEDED: Record<Exclude<Access, 'open' | 'poll'>, Role> = {
  known: 'cluster',
  mirror: 'mirror',
  watch: 'mirror',
  read: 'viewer',
  // A viewer may look at what a write would do; the write itself looks closer.
  write: 'viewer',
  admin: 'admin',
}

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
  }
}

/** Lets a request pass only with the role that its route asks for. */
export function requireAccess(auth: Auth) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const access = request.routeOptions.config.access as keyof typeof NEEDED
    const authenticated = await auth.identify(request.raw)
    if (!authenticated.ok) return sendProblem(reply, authenticated.problem)
    const identity = authenticated.value
    if (!reaches(identity.grant, NEEDED[access]) || (access === 'mirror' && !mayMirror(identity.grant)))
      return sendProblem(reply, lacking(identity.grant, NEEDED[access]))
    if (access === 'write' && !reaches(identity.grant, 'editor') && !mayBePreview(request))
      return sendProblem(reply, onlyPreviews(identity.grant))
    request.identity = identity
    return undefined
  }
}

function lacking({ role }: Grant, needed: Role): Problem {
  const message = `this needs the role ${needed}, and yours is ${role}`
  // Everybody has at least the lowest role.
  const reason = needed === 'cluster' ? 'no_role' : (`needs_${needed}` as const)
  return { code: 'forbidden', reason, message }
}

export function onlyPreviews(grant: Grant): Problem {
  const problem = lacking(grant, 'editor')
  return { ...problem, message: `${problem.message}: you may preview it with dry_run=true` }
}

/** A write of the whole fleet says so in its body, which is not read yet. */
function mayBePreview({ query, routeOptions }: FastifyRequest): boolean {
  return routeOptions.config.isFleet === true || (query as { dry_run?: unknown }).dry_run === 'true'
}

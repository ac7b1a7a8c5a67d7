// Whether a caller may use a route: every route names the permission that it needs.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '../../base/problem.ts'
import type { Grant } from '../../domain/access/grant.ts'
import { leastRoleWith, may, type Permission } from '../../domain/access/permissions.ts'
import { sendProblem } from '../request/problem-response.ts'
import type { Auth } from './identify.ts'

/** What a route asks of its caller; `open` asks for nothing, `poll` is decided by the poll handler. */
export type Access = 'open' | Permission

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
  }
}

/** What routes ask for that write. */
const WRITES: readonly Permission[] = ['write', 'own_hold']

/** Lets a request pass only with the permission that its route asks for. */
export function requireAccess(auth: Auth) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const access = request.routeOptions.config.access as Permission
    const authenticated = await auth.identify(request.raw)
    if (!authenticated.ok) return sendProblem(reply, authenticated.problem)
    const identity = authenticated.value
    const { grant } = identity
    if (!may(grant, access)) {
      // A write may be a preview, which asks for less.
      const isPreviewed = WRITES.includes(access)
      if (!isPreviewed || !may(grant, 'preview'))
        return sendProblem(reply, lacking(grant, isPreviewed ? 'preview' : access))
      if (!mayBePreview(request)) return sendProblem(reply, onlyPreviews(grant))
    }
    request.identity = identity
    return undefined
  }
}

function lacking({ role }: Grant, needed: Permission): Problem {
  const least = leastRoleWith(needed)
  // Everybody has at least the lowest role.
  const reason = least === 'cluster' ? 'no_role' : (`needs_${least}` as const)
  return { code: 'forbidden', reason, message: `this needs the role ${least}, and yours is ${role}` }
}

export function onlyPreviews(grant: Grant): Problem {
  const problem = lacking(grant, 'write')
  return { ...problem, message: `${problem.message}: you may preview it with dry_run=true` }
}

/** Whether a write may be a preview: a fleet write says so in its body, which is not read yet. */
function mayBePreview({ query, routeOptions }: FastifyRequest): boolean {
  return routeOptions.config.isFleet === true || (query as { dry_run?: unknown }).dry_run === 'true'
}

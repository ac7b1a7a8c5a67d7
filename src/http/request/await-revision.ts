// Reads that wait until this process is at a revision.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { fail, invalid, type Result, succeed } from '../../base/problem.ts'
import { callerOf, refuseShare } from '../load/callers.ts'
import type { Service } from '../service.ts'
import { MIN_REVISION, problemWith, type Query } from './parameters.ts'
import { sendProblem } from './problem-response.ts'
import { isWrite } from './query.ts'
import { setRevision } from './revision-header.ts'

/** How long to wait for a revision that is still to come. */
const MAX_WAIT_MS = 5_000

/** A caller that has just written to another process can read its own write here. */
export function awaitRevision(service: Service) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const { min_revision } = request.query as Query
    if (min_revision === undefined || isWrite(request)) return undefined
    const reached = await reachRevision(service, callerOf(service, request), min_revision)
    if (!reached.ok) return sendProblem(reply, reached.problem)
    setRevision(reply, service.engine.state.revision)
    return undefined
  }
}

export async function reachRevision(
  { engine, admission }: Service,
  caller: string,
  text: string,
): Promise<Result<undefined>> {
  const message = problemWith(MIN_REVISION, text)
  if (message !== undefined) return invalid([{ path: '?min_revision', message }])
  const wanted = Number(text)
  if (engine.state.revision >= wanted) return succeed(undefined)
  const taken = admission.waits.take(caller)
  if (taken !== 'taken') return fail(refuseShare(taken, 'too many requests wait for a revision'))
  const isReached = await engine.reach(wanted, MAX_WAIT_MS).finally(() => admission.waits.give(caller))
  if (isReached) return succeed(undefined)
  const behind = `this process is at revision ${engine.state.revision}, and not at ${wanted} yet: try again`
  return fail({ code: 'unavailable', reason: 'behind_revision', message: behind, retryAfter: 1 })
}

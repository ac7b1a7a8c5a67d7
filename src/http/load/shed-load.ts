// Load shedding: hooks that refuse requests while the service is full or stopping.
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Problem } from '../../base/problem.ts'
import { networkOf } from '../auth/failure-limit.ts'
import { sendProblem } from '../request/problem-response.ts'
import { isWrite } from '../request/query.ts'
import type { Service } from '../service.ts'
import { CALLER_SHARE, Shares } from './admission.ts'
import { atEnd, callerOf, hasPriority, refuseShare } from './callers.ts'

/** Places reserved for managing tokens, so that a token can always be revoked. */
const TOKEN_PLACES = 50

/** Requests that began after the service was told to stop. */
const late = new WeakSet<IncomingMessage>()

export const DRAINING: Problem = {
  code: 'unavailable',
  reason: 'draining',
  message: 'the service is stopping',
}

/** Limits requests for pages by network: they cost memory and file descriptors until they are read. */
export function limitPages(scope: FastifyInstance, { addressOf, admission: { pages } }: Service): void {
  scope.addHook('onRequest', (request, reply, done) => {
    const network = networkOf(addressOf(request.raw))
    const taken = pages.take(network)
    if (taken !== 'taken')
      return void sendProblem(reply, refuseShare(taken, 'too many pages are on their way'))
    atEnd(request, () => pages.give(network))
    done()
  })
}

/** Called when a request begins: it may wait for its turn from here on. */
export function noteLate({ engine }: Service, request: IncomingMessage): void {
  if (engine.draining) late.add(request)
}

/** Refuses writes that begin while the service is draining; those that began before are finished. */
export function refuseLateWrites(scope: FastifyInstance): void {
  scope.addHook('preValidation', (request, reply, done) => {
    if (late.has(request.raw) && isWrite(request)) sendProblem(reply, DRAINING)
    else done()
  })
}

/**
 * Refuses writes, and then reads, while too many are under way: polls, which cost next to nothing, go on. A request
 * counts from when its body is complete, so that a half-sent body takes no place.
 */
export function shedLoad(scope: FastifyInstance, service: Service): void {
  const { limits, metrics } = service
  const underWay = { read: 0, write: 0, token: 0 }
  const ofCallers = new Shares({ perCaller: Math.max(1, Math.floor(limits.requests / CALLER_SHARE)) })

  function refusal(
    kind: 'read' | 'write',
    isToken: boolean,
    caller: string | undefined,
  ): Problem | undefined {
    const others = underWay.read + underWay.write
    const isFull = isToken
      ? underWay.token >= TOKEN_PLACES
      : others >= limits.requests || (kind === 'write' && underWay.write >= limits.requests / 2)
    if (isFull)
      return {
        code: 'unavailable',
        reason: 'too_many_requests',
        message: `too many requests are under way: try this ${kind} again`,
        retryAfter: 1,
      }
    if (caller === undefined || ofCallers.take(caller) === 'taken') return undefined
    return refuseShare('caller', 'too many requests are under way')
  }

  scope.addHook('preValidation', (request, reply, done) => {
    const kind = isWrite(request) ? 'write' : 'read'
    const isToken = request.routeOptions.config.access === 'admin'
    const caller = hasPriority(request) ? undefined : callerOf(service, request)
    const refused = refusal(kind, isToken, caller)
    if (refused) {
      metrics.countShed(kind)
      return void sendProblem(reply, refused)
    }
    const place = isToken ? 'token' : kind
    underWay[place]++
    atEnd(request, () => {
      underWay[place]--
      if (caller !== undefined) ofCallers.give(caller)
    })
    done()
  })
}

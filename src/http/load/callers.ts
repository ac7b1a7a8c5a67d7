// The callers of requests: how they are told apart, wait for their turn, and are dropped when they leave.
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { fail, type Problem, type Result } from '../../base/problem.ts'
import { may } from '../../domain/access/permissions.ts'
import type { Lane } from '../../engine/lane.ts'
import type { Past } from '../../engine/past.ts'
import type { Sender } from '../../engine/write-queue.ts'
import { Interrupted } from '../../runtime/run-time-sliced.ts'
import { networkOf } from '../auth/failure-limit.ts'
import { type Identity, identityOf } from '../auth/identity.ts'
import type { Service } from '../service.ts'

/** Time limits of work for a caller; shorter than the timeout of connections without progress. */
const PREVIEW_MS = 20_000
const WRITE_MS = 25_000

/** By name; a token that many share counts apart for each network that it comes from. */
export function callerNamed(
  { addressOf }: Pick<Service, 'addressOf'>,
  { name, via }: Identity,
  request: IncomingMessage,
): string {
  return via === 'environment' ? `${name} from ${networkOf(addressOf(request))}` : name
}

export function callerOf(service: Pick<Service, 'addressOf'>, request: FastifyRequest): string {
  return callerNamed(service, identityOf(request), request.raw)
}

export function hasPriority({ identity }: FastifyRequest): boolean {
  return identity !== undefined && may(identity.grant, 'priority')
}

/** The abort reason of work whose caller has left. */
export const LEFT = new Interrupted({
  code: 'unavailable',
  reason: 'caller_left',
  message: 'the caller has left',
})

declare module 'fastify' {
  interface FastifyRequest {
    /** Aborted at the end of the request, whatever ends it. */
    left: AbortSignal
  }
}

/** Has to come before anything that takes a while: a caller may leave at any time. */
export function followCaller(scope: FastifyInstance): void {
  scope.addHook('onRequest', (request, reply, done) => {
    const controller = new AbortController()
    request.left = controller.signal
    reply.raw.once('close', () => controller.abort(LEFT))
    done()
  })
}

/** Runs something at the end of a request; at once when it has ended. */
export function atEnd({ left }: FastifyRequest, run: () => void): void {
  if (left.aborted) run()
  else left.addEventListener('abort', run, { once: true })
}

/** The sender of a request, for queues; its signal is aborted when the caller leaves or the time limit is over. */
export function senderOf(
  service: Pick<Service, 'addressOf'>,
  request: FastifyRequest,
  kind: 'preview' | 'write' | 'read',
): Sender & { readonly signal: AbortSignal } {
  const late = new AbortController()
  const ms = kind === 'write' ? WRITE_MS : PREVIEW_MS
  const timer = setTimeout(() => {
    const message = `this ${kind} took longer than ${ms / 1000} seconds${ADVICE[kind]}`
    late.abort(new Interrupted({ code: 'unavailable', reason: 'timed_out', message }))
  }, ms).unref()
  atEnd(request, () => clearTimeout(timer))
  const signal = AbortSignal.any([request.left, late.signal])
  return { caller: callerOf(service, request), isUrgent: hasPriority(request), signal }
}

const ADVICE = {
  preview: ': ask for less at once',
  read: ': ask for less at once',
  write: ', and nothing was stored: others were served first. Try again, or write less at once',
} as const

/** Reads the log for a caller. */
export function inspectFor<T>(
  service: Service,
  request: FastifyRequest,
  read: (past: Past) => Promise<Result<T>>,
): Promise<Result<T>> {
  return inLane(service.admission.costly, senderOf(service, request, 'read'), () =>
    service.engine.inspect(read),
  )
}

/** Runs expensive work when its caller's turn comes. */
export async function inLane<T>(
  lane: Lane,
  sender: Sender,
  task: () => Promise<Result<T>>,
): Promise<Result<T>> {
  try {
    return await lane.run(sender, task)
  } catch (error) {
    if (error instanceof Interrupted) return fail(error.problem)
    throw error
  }
}

/** A caller beyond its own share gets 429; when all together are beyond the limit, 503. */
export function refuseShare(refused: 'caller' | 'all', what: string): Problem {
  if (refused === 'all')
    return {
      code: 'unavailable',
      reason: 'too_many_requests',
      message: `${what} of all callers: try again`,
      retryAfter: 1,
    }
  return {
    code: 'rate_limited',
    reason: 'caller_share',
    message: `${what} of yours: wait for some of them to end`,
    retryAfter: 1,
  }
}

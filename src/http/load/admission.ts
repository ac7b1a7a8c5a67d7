// How much of the service each caller may have at once: places, waits, bytes, and what costs much.
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { fail, type Problem, type Result } from '../../base/problem.ts'
import { may } from '../../domain/access/permissions.ts'
import { Lane } from '../../engine/lane.ts'
import type { Past } from '../../engine/past.ts'
import type { Sender } from '../../engine/write-queue.ts'
import { Interrupted } from '../../runtime/run-time-sliced.ts'
import type { Identity } from '../auth/auth.ts'
import { networkOf } from '../auth/failure-limit.ts'
import { sendProblem } from '../request/problem-response.ts'
import { isWrite } from '../request/query.ts'
import type { Limits, Service } from '../service.ts'
import { FairQueue } from './fair-queue.ts'

/** One caller may take this part of all places, and of all streams; administrators may take all places. */
const CALLER_SHARE = 4
/** For managing tokens: nobody else can take these, so that a token can always be revoked. */
const TOKEN_PLACES = 50
const WAITS_PER_CALLER = 20
/** Parsed, a body takes several times as much memory. */
const BODY_BYTES = { total: 96 * 1024 * 1024, perCaller: 40 * 1024 * 1024 }
const PREVIEW_BYTES = { total: 32 * 1024 * 1024, perCaller: 8 * 1024 * 1024 }
const POLL_BYTES = { total: 256 * 1024 * 1024, perCaller: 32 * 1024 * 1024 }
const PAGES_PER_NETWORK = 50
const WATCHERS = 1000
const COSTLY = { total: 6, reserved: 2, perCaller: 2 }
/** Longer than anything that somebody waits for, and shorter than what connections without progress get. */
const PREVIEW_MS = 20_000
const WRITE_MS = 25_000

/** Amounts that callers hold, up to a limit for each and one for all. */
export class Shares {
  readonly #held = new Map<string, number>()
  readonly #perCaller: number
  readonly #all: number
  #sum = 0

  constructor({ perCaller, total = Number.POSITIVE_INFINITY }: { perCaller: number; total?: number }) {
    this.#perCaller = perCaller
    this.#all = total
  }

  /** Takes what there is room for, or nothing; says whether the caller or all together hold too much. */
  take(caller: string, amount = 1): 'taken' | 'caller' | 'all' {
    const held = (this.#held.get(caller) ?? 0) + amount
    if (held > this.#perCaller) return 'caller'
    if (this.#sum + amount > this.#all) return 'all'
    this.#held.set(caller, held)
    this.#sum += amount
    return 'taken'
  }

  give(caller: string, amount = 1): void {
    const held = (this.#held.get(caller) ?? 0) - amount
    if (held > 0) this.#held.set(caller, held)
    else this.#held.delete(caller)
    this.#sum -= amount
  }
}

export interface Admission {
  /** Previews, and reading the log. */
  readonly costly: Lane
  /** Lists of what is there now: they wait for no store, and so for nobody who does. */
  readonly lists: Lane
  /** Whose request, and whose part of a long body, is next. */
  readonly turns: FairQueue
  /** Of requests whose bodies are being read or worked on. */
  readonly bodyBytes: Shares
  /** The same of those who may not write. */
  readonly previewBytes: Shares
  /** Those who wait for a revision that is still to come. */
  readonly waits: Shares
  /** Streams of revisions. */
  readonly streams: Shares
  /** Long answers to polls that are on their way. */
  readonly pollBytes: Shares
  /** Of pages that anybody may ask for, by network. */
  readonly pages: Shares
}

export function createAdmission({ watchers = WATCHERS, watchersPerCaller }: Limits): Admission {
  const perCaller = watchersPerCaller ?? Math.ceil(watchers / CALLER_SHARE)
  return {
    costly: new Lane(COSTLY),
    lists: new Lane(COSTLY),
    turns: new FairQueue(),
    bodyBytes: new Shares(BODY_BYTES),
    previewBytes: new Shares(PREVIEW_BYTES),
    waits: new Shares({ perCaller: WAITS_PER_CALLER }),
    pollBytes: new Shares(POLL_BYTES),
    pages: new Shares({ perCaller: PAGES_PER_NETWORK }),
    streams: new Shares({ perCaller, total: watchers }),
  }
}

/** By name; a token that many share counts apart for each network that it comes from. */
export function callerNamed(
  { addressOf }: Pick<Service, 'addressOf'>,
  { name, via }: Identity,
  request: IncomingMessage,
): string {
  return via === 'environment' ? `${name} from ${networkOf(addressOf(request))}` : name
}

export function callerOf(service: Pick<Service, 'addressOf'>, { identity, raw }: FastifyRequest): string {
  return callerNamed(service, identity as Identity, raw)
}

function hasPriority({ identity }: FastifyRequest): boolean {
  return identity !== undefined && may(identity.grant, 'priority')
}

/** The reason why work for somebody who is gone ends. */
export const LEFT = new Interrupted({ code: 'unavailable', message: 'the caller has left' })

declare module 'fastify' {
  interface FastifyRequest {
    /** Aborted at the end of the request, whatever ends it. */
    left: AbortSignal
    /** A write that began after the service was told to stop. */
    isLate: boolean
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

/** Does something at the end of a request, also when that has come. */
export function atEnd({ left }: FastifyRequest, run: () => void): void {
  if (left.aborted) run()
  else left.addEventListener('abort', run, { once: true })
}

/** Who sends a request, for queues: what they wait for ends when they leave, or take too long. */
export function senderOf(
  service: Pick<Service, 'addressOf'>,
  request: FastifyRequest,
  kind: 'preview' | 'write' | 'read',
): Sender & { readonly signal: AbortSignal } {
  const late = new AbortController()
  const ms = kind === 'write' ? WRITE_MS : PREVIEW_MS
  const timer = setTimeout(() => {
    const message = `this ${kind} took longer than ${ms / 1000} seconds${ADVICE[kind]}`
    late.abort(new Interrupted({ code: 'unavailable', message }))
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

/** Does what costs much when its caller's turn comes. */
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

/** The caller's own doing is 429, what all do together 503. */
export function refuseShare(refused: 'caller' | 'all', what: string): Problem {
  if (refused === 'all')
    return { code: 'unavailable', message: `${what} of all callers: try again`, retryAfter: 1 }
  return { code: 'rate_limited', message: `${what} of yours: wait for some of them to end`, retryAfter: 1 }
}

/** Pages, and what they are made of, cost memory and files until they are read. */
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

/** Writes that begin once the service is stopping are for another one; those whose bodies are on their way are finished. */
export function refuseLateWrites(scope: FastifyInstance, { engine }: Service): void {
  scope.addHook('onRequest', (request, _reply, done) => {
    request.isLate = engine.draining && isWrite(request)
    done()
  })
  scope.addHook('preValidation', (request, reply, done) => {
    if (request.isLate) sendProblem(reply, { code: 'unavailable', message: 'the service is stopping' })
    else done()
  })
}

/**
 * Refuses writes, and then reads, while too many are under way: polls, which cost next to nothing, go on. A request
 * counts from when its body is there, so that nobody takes a place by sending half of one.
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

// The log as it grows, as server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html
import type { FastifyReply, FastifyRequest } from 'fastify'
import { EVENT_STREAM } from '../../api/media-types.ts'
import { fail, forbidden, invalid, type Problem, type Result, succeed } from '../../base/problem.ts'
import { may, type Permission } from '../../domain/access/permissions.ts'
import { type Identity, identityOf } from '../auth/identity.ts'
import { atEnd, callerOf, refuseShare } from '../load/callers.ts'
import { DRAINING } from '../load/shed-load.ts'
import { json, ok, READING } from '../openapi/openapi-operation.ts'
import { flag, inHeader, inQuery, problemWith, type Query, WHOLE } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { setRevision } from '../request/revision-header.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'
import { type Check, Watchers } from '../watch/watchers.ts'

const SINCE = inQuery(
  'since',
  'The newest revision that the caller has; without it the stream begins now.',
  WHOLE,
)
const LAST_EVENT_ID = inHeader(
  'Last-Event-ID',
  'The same, of a client that comes back; it counts more.',
  WHOLE,
)
const STATUS = flag(
  'status',
  'Also sends when clusters change their contact, delivery or health, and rollouts their state; needs the role viewer.',
  false,
)
const EVENTS = {
  type: 'string',
  description:
    'The id of an event is the number of a revision, and its data is what a list of revisions shows of it. Events of the type status have no id; their data is cluster, kind, from, to and time. Events of the type rollout have no id either; their data is rollout, from (null for a new one), to, waiting_for and time.',
}
/** How long a process that is behind waits to reach the caller's revision. */
const REACH_MS = 5000
/** When a client reconnects, with jitter so that not all of them do at once. */
const RETRY_MS = { least: 1000, spread: 2000 }

const STREAM = {
  'Content-Type': `${EVENT_STREAM}; charset=utf-8`,
  'Cache-Control': 'no-store',
  // Turns off nginx's buffering, which would hold events back.
  'X-Accel-Buffering': 'no',
}

/** The last revision that the caller has, and the name of the parameter that says so. */
interface Start {
  readonly revision: number
  readonly name: string
}

export function watchRoutes(service: Service): Route[] {
  const watchers = new Watchers(service)
  let isClosing = false
  return [
    route({
      method: 'GET',
      path: '/watch',
      access: 'watch',
      tag: 'revisions',
      id: 'watch_revisions',
      summary:
        'Revisions as they are made, in order and without gaps, as server-sent events; it does not end.',
      description:
        'Each event is one revision. A client that comes back sends the last id as Last-Event-ID, and misses no revision. With status, changes of clusters come between them as they are noticed, which may take some seconds; those made while nobody was connected are not sent again.',
      parameters: [SINCE, LAST_EVENT_ID, STATUS],
      answers: { 200: { ...ok('Events.', {}, ['X-Request-Id']), content: json(EVENTS, EVENT_STREAM) } },
      problems: [...READING, 410],
      handler: async (request, reply) => {
        const idsOnly = !may(identityOf(request).grant, 'read')
        const withStatus = request.query.status === 'true'
        if (withStatus && idsOnly)
          return sendProblem(reply, forbidden('needs_viewer', 'status needs the role viewer'))
        const after = await admit(service, request)
        if (!after.ok) return sendProblem(reply, after.problem)
        if (isClosing) return sendProblem(reply, DRAINING)
        reply.hijack()
        if (request.left.aborted) return reply
        const { revision } = service.engine.state
        writeHead(request, reply, revision)
        if (request.method === 'HEAD') {
          reply.raw.end()
          return reply
        }
        const from = after.value ?? revision
        const retry = Math.round(RETRY_MS.least + Math.random() * RETRY_MS.spread)
        // An id without data is no event, but a client that reconnects before the first event sends it.
        reply.raw.write(`retry: ${retry}\nid: ${from}\n: revision ${revision}\n\n`)
        const sender = { caller: callerOf(service, request), isUrgent: false, signal: request.left }
        const check = checkOf(service, request, idsOnly ? 'watch' : 'read')
        watchers.add(reply.raw, from, check, { idsOnly, withStatus, sender })
        return reply
      },
      onClose: () => {
        isClosing = true
        watchers.endAll()
      },
    }),
  ]
}

/** Takes a place among the streams; returns the revision to begin after, undefined when the caller names none. */
async function admit(service: Service, request: FastifyRequest): Promise<Result<number | undefined>> {
  const { admission, metrics } = service
  const caller = callerOf(service, request)
  const taken = admission.streams.take(caller)
  if (taken !== 'taken') {
    metrics.countShed('read')
    return fail(refuseShare(taken, 'too many streams are open'))
  }
  atEnd(request, () => admission.streams.give(caller))
  const start = parseStart(request)
  return start.ok ? findStart(service, start.value) : start
}

async function findStart({ engine }: Service, start: Start | undefined): Promise<Result<number | undefined>> {
  if (!engine.isLoaded)
    return fail({ code: 'unavailable', reason: 'not_loaded', message: 'there is nothing to serve yet' })
  if (!start) return succeed(undefined)
  const { revision, name } = start
  if (!(await engine.reach(revision, REACH_MS))) return fail(await tooFar(engine, start))
  if (revision === engine.state.revision) return succeed(revision)
  return engine.inspect((past) => past.resolve({ revision }, name))
}

async function tooFar(engine: Service['engine'], { revision, name }: Start): Promise<Problem> {
  const { storeRevision, problem } = await engine.check()
  const current = engine.state.revision
  if (problem !== undefined || storeRevision >= revision)
    return {
      code: 'unavailable',
      reason: 'behind_revision',
      message: `this replica is at revision ${current}, not at ${revision} yet`,
    }
  const message = `is revision ${revision}, which is still to come: the newest is ${current}`
  return invalid([{ path: name, message }], 'revision_in_future').problem
}

/** Whether a stream may go on. */
function checkOf({ auth, now }: Service, request: FastifyRequest, needed: Permission): Check {
  const mayRead = (identified: Result<Identity>): boolean => stillMay(identified, needed)
  const { via, expiresAt = '' } = identityOf(request)
  const thorough = (): boolean | Promise<boolean> => {
    try {
      const identified = auth.identify(request.raw)
      return identified instanceof Promise ? identified.then(mayRead) : mayRead(identified)
    } catch {
      // An HTTP/2 session that has just closed has no certificate any more.
      return false
    }
  }
  // Verifying a signature takes long, and a token's expiry is known.
  const before = (): boolean => (via === 'oidc' ? now().toISOString() < expiresAt : thorough() === true)
  return { before, thorough }
}

/** Last-Event-ID goes before `?since`: a client that reconnects sends it, and its URL is older. */
function parseStart({ headers, query }: FastifyRequest): Result<Start | undefined> {
  const { since } = query as Query
  const { 'last-event-id': last } = headers as Query
  const name = last ? 'Last-Event-ID' : '?since'
  const text = last || since
  if (text === undefined) return succeed(undefined)
  const message = problemWith(last ? LAST_EVENT_ID : SINCE, text)
  return message === undefined
    ? succeed({ revision: Number(text), name })
    : invalid([{ path: name, message }])
}

function writeHead({ raw }: FastifyRequest, reply: FastifyReply, revision: number): void {
  setRevision(reply.headers(STREAM), revision)
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value)
  }
  // On HTTP/2, a request that was not read to its end counts as one that takes too long.
  raw.resume()
  reply.raw.writeHead(200)
}

/** Whether the caller keeps the permission; while the OIDC issuer is unavailable, it does. */
function stillMay(identified: Result<Identity>, needed: Permission): boolean {
  return identified.ok ? may(identified.value.grant, needed) : identified.problem.code === 'unavailable'
}

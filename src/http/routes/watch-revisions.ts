// The log as it grows, as server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Detail, fail, invalid, type Problem, type Result, succeed } from '../../base/problem.ts'
import { may, type Permission } from '../../domain/access/permissions.ts'
import { type Identity, identityOf } from '../auth/identity.ts'
import { atEnd, callerOf, refuseShare } from '../load/callers.ts'
import { DRAINING } from '../load/shed-load.ts'
import { sendProblem } from '../request/problem-response.ts'
import { parseWhole, type RawQuery } from '../request/query.ts'
import { setRevision } from '../request/revision-header.ts'
import type { Service } from '../service.ts'
import { type Check, Watchers } from '../watch/watchers.ts'

const WATCH = { config: { access: 'watch', parameters: ['since'] } } as const
/** What a process that is behind the others may take to get there. */
const REACH_MS = 5000
/** After how long a client comes back: not all of them at once. */
const RETRY_MS = { least: 1000, spread: 2000 }

const STREAM = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store',
  // Of nginx, which would keep what it gets until there is more of it.
  'X-Accel-Buffering': 'no',
}

/** The number of the last revision that the caller has, and what it is called. */
interface Start {
  readonly revision: number
  readonly name: string
}

export function watchRoute(app: FastifyInstance, service: Service): void {
  const { engine, auth, admission, metrics, now } = service
  const watchers = new Watchers(service)
  let isClosing = false

  /** The revision to begin after, when there is one; a problem when it cannot be. */
  async function findStart(start: Start | undefined): Promise<Result<number | undefined>> {
    if (!engine.isLoaded)
      return fail({ code: 'unavailable', reason: 'not_loaded', message: 'there is nothing to serve yet' })
    if (!start) return succeed(undefined)
    const { revision, name } = start
    if (!(await engine.reach(revision, REACH_MS))) return fail(await tooFar(start))
    if (revision === engine.state.revision) return succeed(revision)
    return engine.inspect((past) => past.resolve({ revision }, name))
  }

  async function tooFar({ revision, name }: Start): Promise<Problem> {
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

  function checkOf(request: FastifyRequest, needed: Permission): Check {
    const mayRead = (identified: Result<Identity>): boolean => stillMay(identified, needed)
    const { via, expiresAt = '' } = identityOf(request)
    const thorough = (): boolean | Promise<boolean> => {
      try {
        const identified = auth.identify(request.raw)
        return identified instanceof Promise ? identified.then(mayRead) : mayRead(identified)
      } catch {
        // A session of HTTP/2 that has just gone has no certificate to look at.
        return false
      }
    }
    // Signatures take long to check; what they are good for ends at a time that is known.
    const before = (): boolean => (via === 'oidc' ? now().toISOString() < expiresAt : thorough() === true)
    return { before, thorough }
  }

  app.get<{ Querystring: RawQuery }>('/watch', WATCH, async (request, reply) => {
    const caller = callerOf(service, request)
    const taken = admission.streams.take(caller)
    if (taken !== 'taken') {
      metrics.countShed('read')
      return sendProblem(reply, refuseShare(taken, 'too many streams are open'))
    }
    atEnd(request, () => admission.streams.give(caller))
    const start = parseStart(request)
    if (!start.ok) return sendProblem(reply, start.problem)
    const found = await findStart(start.value)
    if (!found.ok) return sendProblem(reply, found.problem)
    if (isClosing) return sendProblem(reply, DRAINING)
    reply.hijack()
    if (request.left.aborted) return reply
    const { revision } = engine.state
    writeHead(request, reply, revision)
    if (request.method === 'HEAD') {
      reply.raw.end()
      return reply
    }
    const retry = Math.round(RETRY_MS.least + Math.random() * RETRY_MS.spread)
    // The id alone is no event, but known to whoever comes back before there was one.
    const after = found.value ?? revision
    reply.raw.write(`retry: ${retry}\nid: ${after}\n: revision ${revision}\n\n`)
    const idsOnly = !may(identityOf(request).grant, 'read')
    const sender = { caller, isUrgent: false, signal: request.left }
    watchers.add(reply.raw, after, checkOf(request, idsOnly ? 'watch' : 'read'), { idsOnly, sender })
    return reply
  })

  app.addHook('preClose', (done) => {
    isClosing = true
    watchers.endAll()
    done()
  })
}

/** What a client says that comes back is newer than the address it came with first. */
function parseStart({ headers, query }: FastifyRequest): Result<Start | undefined> {
  const { since } = query as RawQuery
  const { 'last-event-id': last } = headers as RawQuery
  const details: Detail[] = []
  const name = last ? 'Last-Event-ID' : '?since'
  const revision = parseWhole(last || since, 'since', Number.MAX_SAFE_INTEGER, details)
  if (details.length > 0) return invalid(details.map((detail) => ({ ...detail, path: name })))
  return succeed(revision === undefined ? undefined : { revision, name })
}

function writeHead({ raw }: FastifyRequest, reply: FastifyReply, revision: number): void {
  setRevision(reply.headers(STREAM), revision)
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value)
  }
  // With HTTP/2, a request that nobody has read to its end is one that takes too long.
  raw.resume()
  reply.raw.writeHead(200)
}

/** While somebody else cannot be asked who this is, it is who it was. */
function stillMay(identified: Result<Identity>, needed: Permission): boolean {
  return identified.ok ? may(identified.value.grant, needed) : identified.problem.code === 'unavailable'
}

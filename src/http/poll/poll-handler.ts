// Polls of clusters: answered from memory, directly on node:http.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { fail, invalid, type Problem, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { POLL_BASE } from '../../base/urls.ts'
import { may } from '../../domain/access/permissions.ts'
import { refuseClusterList } from '../../domain/access/poll-access.ts'
import { renderClusterLine, renderClusterList } from '../../domain/delivery/render-inputs.ts'
import type { View } from '../../domain/documents/view.ts'
import type { ClusterType } from '../../domain/types/resource-type.ts'
import type { RegisteredType } from '../../registry/build-types.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import type { Identity } from '../auth/identity.ts'
import { callerNamed, inLane, LEFT, refuseShare } from '../load/callers.ts'
import { reachRevision } from '../request/await-revision.ts'
import { type ListQuery, parsePollQuery } from '../request/list-query.ts'
import { PageWindow } from '../request/page-window.ts'
import { internalError, writeProblem } from '../request/problem-response.ts'
import { requestId } from '../request/request-id.ts'
import { REVISION_HEADER } from '../request/revision-header.ts'
import type { Service } from '../service.ts'
import { bodyOf, closesConnection, sendAnswer } from './answer.ts'
import { ACK, answerPoll, type Target } from './answer-poll.ts'
import { noteSighting, type Poll, type ServedAnswer } from './note-sighting.ts'

/** Longer answers count against their caller until they are read. */
const LONG = 64 * 1024

/** Answers a poll and returns true, or leaves any other request alone and returns false. */
export type PollHandler = (request: IncomingMessage, response: ServerResponse) => boolean

export function createPollHandler(service: Service): PollHandler {
  const { engine, auth, types, metrics, log, admission } = service

  /** Sends the result, an answer or a problem, and counts it. */
  function finish(poll: Poll, identity: Identity | undefined, result: Result<ServedAnswer>): void {
    const { request, response, endpoint, started } = poll
    const answer =
      identity && result.ok && result.value.body.length > LONG ? hold(poll, identity, result.value) : result
    if (answer.ok) sendAnswer(request, response, answer.value, engine.draining)
    else refuse(request, response, answer.problem, engine.state.revision)
    if (request.method === 'GET') noteSighting(service, poll, identity, answer)
    const label = endpoint === undefined ? 'clusters' : isEndpoint(endpoint) ? endpoint : 'unknown'
    metrics.countPoll(label, response.statusCode, (performance.now() - started) / 1000)
  }

  const isEndpoint = (name: string): boolean => name === ACK || types.byEndpoint(name) !== undefined

  /** Counts a long answer against its caller until it is read, and refuses it beyond the caller's share. */
  function hold({ request, response }: Poll, identity: Identity, answer: ServedAnswer): Result<ServedAnswer> {
    const { length } = answer.body
    const caller = callerNamed(service, identity, request)
    const taken = admission.pollBytes.take(caller, length)
    if (taken !== 'taken') return fail(refuseShare(taken, 'too many long answers have not been read'))
    response.once('close', () => admission.pollBytes.give(caller, length))
    return succeed(answer)
  }

  function giveUp(poll: Poll, error: unknown): void {
    const id = requestId(poll.request)
    log.error({ err: error, request_id: id, path: poll.request.url?.split('?')[0] }, 'poll failed')
    poll.response.setHeader('X-Request-Id', id)
    finish(poll, undefined, { ok: false, problem: internalError(id) })
  }

  /** For polls that have to wait: for the OIDC issuer, the store or a revision, and for lists, which take long. */
  async function answerLater(
    poll: Poll,
    known: Result<Identity> | Promise<Result<Identity>>,
    target: Target,
  ): Promise<void> {
    const identity = await known
    if (!identity.ok) return finish(poll, undefined, identity)
    finish(poll, identity.value, await answerFor(service, poll, identity.value, target))
  }

  return (request, response) => {
    const { method, url = '' } = request
    if (!url.startsWith(POLL_BASE) || (method !== 'GET' && method !== 'HEAD')) return false
    const target = parseTarget(url)
    if (!target) return false
    const { dns, endpoint } = target
    const poll: Poll = { request, response, dns, endpoint, started: performance.now() }
    try {
      const known = auth.identify(request)
      if (known instanceof Promise || endpoint === undefined || target.query.includes('min_revision='))
        answerLater(poll, known, target).catch((error) => giveUp(poll, error))
      else if (known.ok)
        finish(
          poll,
          known.value,
          answerPoll(service, known.value, target, request.headers['accept-encoding']),
        )
      else finish(poll, undefined, known)
    } catch (error) {
      giveUp(poll, error)
    }
    return true
  }
}

async function answerFor(
  service: Service,
  { request, response }: Poll,
  identity: Identity,
  target: Target,
): Promise<Result<ServedAnswer>> {
  const { endpoint, query } = target
  const caller = callerNamed(service, identity, request)
  const [wanted, ...more] = new URLSearchParams(query).getAll('min_revision')
  if (more.length > 0) return invalid([{ path: '?min_revision', message: 'is given more than once' }])
  const reached = wanted === undefined ? succeed(undefined) : await reachRevision(service, caller, wanted)
  if (!reached.ok) return reached
  if (endpoint !== undefined) return answerPoll(service, identity, target, undefined)
  const { grant } = identity
  const refused = refuseClusterList(grant)
  if (refused) return fail(refused)
  const left = new AbortController()
  response.once('close', () => left.abort(LEFT))
  const sender = { caller, isUrgent: may(grant, 'priority'), signal: left.signal }
  return inLane(service.admission.lists, sender, () => answerList(service, query, left.signal))
}

function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  problem: Problem,
  revision: number,
): void {
  if (!response.hasHeader('X-Request-Id')) response.setHeader('X-Request-Id', requestId(request))
  if (closesConnection(request, false)) response.setHeader('Connection', 'close')
  response.setHeader(REVISION_HEADER, String(revision))
  writeProblem(response, problem)
}

function parseTarget(url: string): Target | undefined {
  const question = url.indexOf('?')
  const path = question < 0 ? url : url.slice(0, question)
  const query = question < 0 ? '' : url.slice(question + 1)
  if (path.length === POLL_BASE.length) return { dns: '', endpoint: undefined, query }
  const slash = path.indexOf('/', POLL_BASE.length + 1)
  const dns = path.slice(POLL_BASE.length + 1, slash)
  const endpoint = path.slice(slash + 1)
  if (
    path[POLL_BASE.length] !== '/' ||
    slash < 0 ||
    dns === '' ||
    endpoint === '' ||
    endpoint.includes('/')
  ) {
    return undefined
  }
  if (!path.includes('%')) return { dns, endpoint, query }
  try {
    return { dns: decodeURIComponent(dns), endpoint: decodeURIComponent(endpoint), query }
  } catch {
    return undefined
  }
}

async function answerList(
  { engine, types }: Service,
  queryText: string,
  signal: AbortSignal,
): Promise<Result<ServedAnswer>> {
  const { cluster } = types
  const parameters = Object.fromEntries(new URLSearchParams(queryText))
  const query = parsePollQuery(types.get(cluster.type.name) as RegisteredType, parameters)
  if (!query.ok) return query
  const view = engine.state.freeze()
  const lines = await runTimeSliced(linesOf(view, cluster, query.value), signal).finally(view.release)
  const list = { revision: view.revision, cluster: undefined, endpoint: undefined }
  return succeed({ ...bodyOf(renderClusterList(lines)), ...list })
}

function* linesOf(view: View, cluster: ClusterType, query: ListQuery): Steps<string[]> {
  const lines: string[] = []
  const page = new PageWindow(query)
  for (const { document } of view.all(cluster.type.name)) {
    yield
    if (page.isFull) break
    if (page.takes(document, view)) lines.push(renderClusterLine(cluster, document))
  }
  return lines
}

// What clusters ask for, every few minutes, for ever: answered from memory, straight on node:http.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as breathe } from 'node:timers/promises'
import { POLL_BASE } from '../domain/base-url.ts'
import { type Grant, reaches } from '../domain/grant.ts'
import { fail, invalid, notFound, type Problem, type Result, succeed } from '../domain/problem.ts'
import {
  type RenderedAnswer,
  renderClusterLine,
  renderClusterList,
  renderInputs,
} from '../domain/render-inputs.ts'
import type { DeliveredType, Types } from '../domain/resource-type.ts'
import type { Entry } from '../domain/view.ts'
import type { RegisteredType } from '../registry/build-types.ts'
import { closesConnection, sendAnswer } from './answer.ts'
import type { Identity } from './auth.ts'
import { parsePollQuery } from './list-query.ts'
import { internalError, writeProblem } from './problem-response.ts'
import { reachRevision } from './query.ts'
import { requestId } from './request-id.ts'
import type { Service } from './service.ts'

const LINES_PER_SLICE = 1000

/** Answers a poll and says true, or leaves any other request alone and says false. */
export type PollHandler = (request: IncomingMessage, response: ServerResponse) => boolean

export function createPollHandler(service: Service): PollHandler {
  const { engine, auth, types, metrics, log } = service

  /** Sends what the work comes to, whatever it comes to, and counts it. */
  function finish(poll: Poll, answer: Result<Rendered>): void {
    const { request, response, endpoint, started } = poll
    if (answer.ok)
      sendAnswer(
        { revision: answer.value.revision ?? engine.state.revision, draining: engine.draining },
        request,
        response,
        answer.value,
      )
    else refuse(request, response, answer.problem, engine.state.revision)
    const label = endpoint === undefined ? 'clusters' : types.byEndpoint(endpoint) ? endpoint : 'unknown'
    metrics.countPoll(label, response.statusCode, (performance.now() - started) / 1000)
  }

  function giveUp(poll: Poll, error: unknown): void {
    const id = requestId(poll.request)
    log.error({ err: error, request_id: id, path: poll.request.url?.split('?')[0] }, 'poll failed')
    poll.response.setHeader('X-Request-Id', id)
    finish(poll, { ok: false, problem: internalError(id) })
  }

  return (request, response) => {
    const { method, url = '' } = request
    if (!url.startsWith(POLL_BASE) || (method !== 'GET' && method !== 'HEAD')) return false
    const target = parseTarget(url)
    if (!target) return false
    const { dns, endpoint } = target
    const poll: Poll = { request, response, endpoint, started: performance.now() }
    try {
      const known = auth.identify(request)
      if (known instanceof Promise || endpoint === undefined || target.query.includes('min_revision='))
        answerLater(service, known, target)
          .then((answer) => finish(poll, answer))
          .catch((error) => giveUp(poll, error))
      else finish(poll, known.ok ? answerPoll(service, known.value, dns, endpoint) : known)
    } catch (error) {
      giveUp(poll, error)
    }
    return true
  }
}

/** For whom others have to be asked, and for lists, which take long. */
async function answerLater(
  service: Service,
  known: Result<Identity> | Promise<Result<Identity>>,
  { dns, endpoint, query }: Target,
): Promise<Result<Rendered>> {
  const identity = await known
  if (!identity.ok) return identity
  const [wanted, ...more] = new URLSearchParams(query).getAll('min_revision')
  if (more.length > 0) return invalid([{ path: '?min_revision', message: 'is given more than once' }])
  const reached =
    wanted === undefined ? succeed(undefined) : await reachRevision(service, identity.value.name, wanted)
  if (!reached.ok) return reached
  if (endpoint !== undefined) return answerPoll(service, identity.value, dns, endpoint)
  const { grant } = identity.value
  if (copiesSome(grant)) return pollsForNone(grant)
  if (reaches(grant, 'poller')) return answerList(service, query)
  return fail({
    code: 'forbidden',
    message: 'this token polls for one cluster: the list of all needs the role poller',
  })
}

/** What it may have of its clusters comes with the log, where the others are left out. */
function copiesSome({ role, selector }: Grant): boolean {
  return role === 'mirror' && selector !== undefined
}

function pollsForNone({ selector }: Grant) {
  return fail({
    code: 'forbidden',
    message: `this token copies the clusters (${selector}), and polls for none`,
  })
}

/** An answer that took a while says of which revision it is. */
type Rendered = RenderedAnswer & { readonly revision?: number }

interface Poll {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly endpoint: string | undefined
  readonly started: number
}

function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  problem: Problem,
  revision: number,
): void {
  if (!response.hasHeader('X-Request-Id')) response.setHeader('X-Request-Id', requestId(request))
  if (closesConnection(request, false)) response.setHeader('Connection', 'close')
  response.setHeader('X-Revision', String(revision))
  writeProblem(response, problem)
}

interface Target {
  readonly dns: string
  /** None for the list of clusters. */
  readonly endpoint: string | undefined
  readonly query: string
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

function answerPoll(
  service: Service,
  { grant }: Identity,
  dns: string,
  endpoint: string,
): Result<RenderedAnswer> {
  const { engine, types } = service
  if (copiesSome(grant)) return pollsForNone(grant)
  const type = findEndpoint(types, endpoint)
  if (!type.ok) return type
  // Flux keeps what it has on a 404; an empty list would make it delete everything.
  const cluster = engine.state.clusterByDns(dns)
  if (grant.role === 'cluster' && !isOwn(service, grant, dns, cluster))
    return fail({
      code: 'forbidden',
      message: `this token polls for cluster "${grant.cluster}" alone, which is not "${dns}"`,
    })
  if (!cluster) return notFound('cluster with the DNS name', dns)
  return succeed(renderInputs(engine.state, types, type.value, cluster))
}

/** Of several deleted clusters that had one name, each may learn that it is gone. */
function isOwn({ engine }: Service, { cluster }: Grant, dns: string, found: Entry | undefined): boolean {
  if (found === undefined || found.id === cluster) return found !== undefined
  return found.deleted && engine.state.tombstonesWithDns(dns).some(({ id }) => id === cluster)
}

export function findEndpoint(types: Types, endpoint: string): Result<DeliveredType> {
  const type = types.byEndpoint(endpoint)
  if (type) return succeed(type)
  const known = types.delivered.map(({ delivery }) => delivery.endpoint).join(', ')
  return fail({ code: 'not_found', message: `no endpoint "${endpoint}": known are ${known}` })
}

/** Long lists are made in slices, so that other polls get their turn. */
async function answerList({ engine, types }: Service, queryText: string): Promise<Result<Rendered>> {
  const { cluster } = types
  const parameters = Object.fromEntries(new URLSearchParams(queryText))
  const query = parsePollQuery(types.get(cluster.type.name) as RegisteredType, parameters)
  if (!query.ok) return query
  const { limit, offset, matches } = query.value
  const { revision } = engine.state
  const documents = Iterator.from(engine.state.all(cluster.type.name))
    .map(({ document }) => document)
    .filter(matches)
    .drop(offset)
    .take(limit)
    .toArray()
  const lines: string[] = []
  for (const document of documents) {
    lines.push(renderClusterLine(cluster, document))
    if (lines.length % LINES_PER_SLICE === 0) await breathe()
  }
  return succeed({ ...renderClusterList(lines), revision })
}

// What clusters ask for, every few minutes, for ever: answered from memory, straight on node:http.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as breathe } from 'node:timers/promises'
import { fail, type Problem, type Result, succeed } from '../domain/problem.ts'
import {
  type RenderedAnswer,
  renderClusterLine,
  renderClusterList,
  renderInputs,
} from '../domain/render-inputs.ts'
import type { RegisteredType } from '../registry/build-types.ts'
import { leavesConnectionsIdle, sendAnswer } from './answer.ts'
import { UNAUTHORIZED } from './auth.ts'
import { parsePollQuery } from './list-query.ts'
import { internalError, writeProblem } from './problem-response.ts'
import { requestId } from './request-id.ts'
import type { Service } from './service.ts'

export const POLL_BASE = '/api/v2/flux/clusters'
const LINES_PER_SLICE = 1000

/** Answers a poll and says true, or leaves any other request alone and says false. */
export type PollHandler = (request: IncomingMessage, response: ServerResponse) => boolean

export function createPollHandler(service: Service): PollHandler {
  const { tokens, types, metrics, log } = service

  function respond(request: IncomingMessage, response: ServerResponse, answer: Result<RenderedAnswer>): void {
    if (answer.ok) sendAnswer(service, request, response, answer.value)
    else refuse(request, response, answer.problem)
  }

  function refuse(
    request: IncomingMessage,
    response: ServerResponse,
    problem: Problem,
    id = requestId(request),
  ): void {
    response.setHeader('X-Request-Id', id)
    if (leavesConnectionsIdle(request)) response.setHeader('Connection', 'close')
    writeProblem(response, problem)
  }

  return (request, response) => {
    const { method, url = '' } = request
    if (!url.startsWith(POLL_BASE) || (method !== 'GET' && method !== 'HEAD')) return false
    const target = parseTarget(url)
    if (!target) return false
    const { dns, endpoint } = target
    const label = endpoint === undefined ? 'clusters' : types.byEndpoint(endpoint) ? endpoint : 'unknown'
    const started = performance.now()
    const done = (): void =>
      metrics.countPoll(label, response.statusCode, (performance.now() - started) / 1000)
    const failed = (error: unknown): void => {
      const id = requestId(request)
      log.error({ err: error, request_id: id, path: url }, 'poll failed')
      refuse(request, response, internalError(id), id)
      done()
    }
    try {
      if (!tokens.identify(request.headers.authorization)) refuse(request, response, UNAUTHORIZED)
      else if (endpoint !== undefined) respond(request, response, answerPoll(service, dns, endpoint))
      else {
        answerList(service, target.query)
          .then((answer) => respond(request, response, answer))
          .then(done, failed)
        return true
      }
      done()
    } catch (error) {
      failed(error)
    }
    return true
  }
}

interface Target {
  readonly dns: string
  /** None for the list of clusters. */
  readonly endpoint?: string
  readonly query: string
}

function parseTarget(url: string): Target | undefined {
  const question = url.indexOf('?')
  const path = question < 0 ? url : url.slice(0, question)
  const query = question < 0 ? '' : url.slice(question + 1)
  if (path.length === POLL_BASE.length) return { dns: '', query }
  const [empty, dns, endpoint, ...more] = path.slice(POLL_BASE.length).split('/')
  if (empty !== '' || !dns || !endpoint || more.length > 0) return undefined
  if (!path.includes('%')) return { dns, endpoint, query }
  try {
    return { dns: decodeURIComponent(dns), endpoint: decodeURIComponent(endpoint), query }
  } catch {
    return undefined
  }
}

function answerPoll({ engine, types }: Service, dns: string, endpoint: string): Result<RenderedAnswer> {
  const type = types.byEndpoint(endpoint)
  if (!type) {
    const known = types.delivered.map(({ delivery }) => delivery.endpoint).join(', ')
    return fail({ code: 'not_found', message: `no endpoint "${endpoint}": known are ${known}` })
  }
  // Flux keeps what it has on a 404; an empty list would make it delete everything.
  const cluster = engine.state.clusterByDns(dns)
  if (!cluster) return fail({ code: 'not_found', message: `no cluster with the DNS name "${dns}"` })
  return succeed(renderInputs(engine.state, types, type, cluster))
}

/** Long lists are made in slices, so that other polls get their turn. */
async function answerList({ engine, types }: Service, queryText: string): Promise<Result<RenderedAnswer>> {
  const { cluster } = types
  const parameters = Object.fromEntries(new URLSearchParams(queryText))
  const query = parsePollQuery(types.get(cluster.type.name) as RegisteredType, parameters)
  if (!query.ok) return query
  const { limit, offset, matches } = query.value
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
  return succeed(renderClusterList(lines))
}

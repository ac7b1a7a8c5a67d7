// What a request meets before any route: its caller's turn, a state that is not loaded yet, and the path of polls.
import type { RequestListener, Server, ServerResponse } from 'node:http'
import { POLL_BASE } from '../base/urls.ts'
import { createHttpServer, type Transport } from './http-server.ts'
import { noteLate } from './load/shed-load.ts'
import { createDirectPolls } from './poll/direct-handler.ts'
import type { PollHandler } from './poll/poll-handler.ts'
import { writeProblem } from './request/problem-response.ts'
import { REVISION_HEADER } from './request/revision-header.ts'
import type { Service } from './service.ts'

/** The least time that Fastify takes for a request. */
const REQUEST_MS = 0.2

/** Routes that work before a state is loaded; all others would be wrong with an empty one. */
const PROBES = ['/health', '/ready', '/metrics']

function refuseUnloaded({ engine }: Service, response: ServerResponse): void {
  const message = `there is nothing to serve yet: ${engine.status.problem ?? 'the state is being loaded'}`
  response.setHeader(REVISION_HEADER, '0')
  writeProblem(response, { code: 'unavailable', reason: 'not_loaded', message })
}

/** Callers take turns. Polls, which are nearly all requests, bypass Fastify. */
export function listenerFor(service: Service, transport: Transport, polls: PollHandler) {
  const { engine, auth, limits, admission, metrics } = service
  const { turns } = admission
  return (handle: RequestListener): Server =>
    createHttpServer(limits, transport, turns, metrics.traffic, listener(handle), createDirectPolls(service))
  function listener(handle: RequestListener): RequestListener {
    return (request, response) => {
      noteLate(service, request)
      const { url = '' } = request
      const isPoll = url.startsWith(POLL_BASE)
      // Lists of clusters, and polls that wait for a revision, cause work after this call.
      const leastMs = isPoll && url.length > POLL_BASE.length && !url.includes('?') ? 0 : REQUEST_MS
      turns.run(
        () => auth.callerOf(request),
        leastMs,
        () => {
          if (response.destroyed) return
          if (!engine.isLoaded && !PROBES.includes(request.url ?? ''))
            return refuseUnloaded(service, response)
          if (!isPoll || !polls(request, response)) handle(request, response)
        },
      )
    }
  }
}

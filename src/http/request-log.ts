// Counts and log lines of requests, and of those that failed.
import type { FastifyError, FastifyInstance, FastifyRequest } from 'fastify'
import { sendProblem, toProblem } from './request/problem-response.ts'
import { isWrite } from './request/query.ts'
import type { Service } from './service.ts'

/** Counts and logs every request except polls, which are too many for a line each. */
export function countAndLog(scope: FastifyInstance, service: Service): void {
  const { log, metrics } = service
  scope.addHook('onResponse', (request, reply, done) => {
    const { statusCode: status, elapsedTime } = reply
    metrics.countRequest(request.method, status)
    const level = status >= 500 ? 'warn' : isWrite(request) ? 'info' : 'debug'
    log[level](
      { ...requestFields(service, request), status, ms: Math.round(elapsedTime * 10) / 10 },
      'request',
    )
    done()
  })
}

function requestFields({ addressOf }: Service, { id, method, url, identity, raw }: FastifyRequest) {
  // A caller may put a secret in the path in place of a token's id.
  const path = url.split('?')[0]?.replaceAll(/frs_\w{20,}/g, 'frs_***')
  return { request_id: id, method, path, actor: identity?.name, ip: addressOf(raw) }
}

export function handleErrors(app: FastifyInstance, service: Service): void {
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const problem = toProblem(error, request.id)
    if (problem.code === 'internal_error')
      service.log.error({ err: error, ...requestFields(service, request) }, 'request failed')
    return sendProblem(reply, problem)
  })
}

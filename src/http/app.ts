// The HTTP face: one Fastify instance over an engine, without a port or a process.
import { createServer, type RequestListener, type Server } from 'node:http'
import type { Socket } from 'node:net'
import Fastify, { type FastifyError, type FastifyInstance, type FastifyRequest } from 'fastify'
import { POLL_BASE } from '../domain/base-url.ts'
import { requireAccess } from './auth.ts'
import { addBodyParser, BODY_LIMIT } from './body.ts'
import { createPollHandler, type PollHandler } from './poll-handler.ts'
import { sendProblem, toProblem } from './problem-response.ts'
import { checkQuery } from './query.ts'
import { requestId } from './request-id.ts'
import { assignmentRoutes } from './routes/assignments.ts'
import { batchRoutes } from './routes/batch.ts'
import { bundleRoutes } from './routes/bundles.ts'
import { documentRoutes } from './routes/documents.ts'
import { operationRoutes } from './routes/operations.ts'
import { revisionRoutes } from './routes/revisions.ts'
import type { Service } from './service.ts'

export async function buildApp(service: Service): Promise<FastifyInstance> {
  const { engine, tokens, mode, log } = service
  const polls = createPollHandler(service)
  const app = Fastify({
    logger: false,
    bodyLimit: BODY_LIMIT,
    serverFactory: (handle) => createHttpServer(polls, handle),
    forceCloseConnections: 'idle',
    genReqId: requestId,
    clientErrorHandler: (error, socket) => refuseBrokenRequest(error, socket),
    routerOptions: { maxParamLength: 300 },
    frameworkErrors: (error, request, reply) => {
      sendProblem(reply.header('X-Request-Id', request.id), toProblem(error, request.id))
    },
  })
  app.decorateRequest('identity', undefined)
  app.decorateRequest('bodyProblem', undefined)
  const allowedOn = collectMethods(app)
  // Bodies are read only where a route takes one.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))

  app.addHook('onRequest', (request, reply, done) => {
    reply.header('X-Request-Id', request.id).header('X-Revision', engine.state.revision)
    done()
  })
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (engine.draining) reply.header('Connection', 'close')
    done(null, payload)
  })
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const problem = toProblem(error, request.id)
    if (problem.code === 'internal_error') log.error({ err: error, ...describe(request) }, 'request failed')
    // Closed at once, the connection would be reset, and the answer lost with it; what still comes is read and dropped.
    if (problem.code === 'payload_too_large') reply.removeHeader('connection')
    return sendProblem(reply, problem)
  })
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?')[0] ?? ''
    const readOnly = mode === 'read-only' && !['GET', 'HEAD'].includes(request.method)
    const allow = readOnly ? 'GET, HEAD' : allowedOn(path)
    if (allow === '')
      return sendProblem(reply, { code: 'not_found', message: `no route ${request.method} ${path}` })
    const why = readOnly
      ? 'this instance is read-only: write to one in crud mode'
      : `${request.method} is not possible here, only ${allow}`
    return sendProblem(reply.header('Allow', allow), { code: 'method_not_allowed', message: why })
  })

  for (const url of [POLL_BASE, `${POLL_BASE}/:dns/:endpoint`]) {
    app.get(url, (request, reply) => {
      polls(request.raw, reply.hijack().raw)
    })
  }
  app.register(async (scope) => {
    countAndLog(scope, service)
    await operationRoutes(scope, service)
  })
  if (mode === 'crud') {
    app.register(async (scope) => {
      scope.addHook('onRequest', requireAccess(tokens))
      scope.addHook('onRequest', checkQuery)
      addBodyParser(scope)
      countAndLog(scope, service)
      documentRoutes(scope, service)
      assignmentRoutes(scope, service)
      bundleRoutes(scope, service)
      revisionRoutes(scope, service)
      batchRoutes(scope, service)
    })
  }
  await app.ready()
  return app
}

/** Polls are nearly all requests there are, so they do not pass through the framework on their way. */
function createHttpServer(polls: PollHandler, handle: RequestListener): Server {
  const timeouts = { requestTimeout: 30_000, headersTimeout: 15_000, keepAliveTimeout: 72_000 }
  return createServer(timeouts, (request, response) => {
    if (!polls(request, response)) handle(request, response)
  })
}

/** What is not HTTP, is too long or takes too long has no route; it still gets an answer of ours. */
function refuseBrokenRequest({ code }: { code?: string }, socket: Socket): void {
  if (!socket.writable || code === 'ECONNRESET') return void socket.destroy()
  const [status, message] = BROKEN_REQUESTS[code ?? ''] ?? [
    '400 Bad Request',
    'this is not a valid HTTP request',
  ]
  const body = JSON.stringify({ error: 'validation_error', message })
  const head = [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

const BROKEN_REQUESTS: Record<string, [string, string]> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the headers are larger than 16 KiB'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request took too long to arrive'],
}

/** Polls come too often for a line each; everything else leaves one. */
function countAndLog(scope: FastifyInstance, { log, metrics }: Service): void {
  scope.addHook('onResponse', (request, reply, done) => {
    const { statusCode: status, elapsedTime } = reply
    metrics.countRequest(request.method, status)
    const level = status >= 500 ? 'warn' : request.routeOptions.config.access === 'write' ? 'info' : 'debug'
    log[level]({ ...describe(request), status, ms: Math.round(elapsedTime * 10) / 10 }, 'request')
    done()
  })
}

function describe({ id, method, url, identity, ip }: FastifyRequest) {
  return { request_id: id, method, path: url.split('?')[0], actor: identity?.name, ip }
}

/** Notes which methods each path has, as routes are added; answers those of a path, or nothing. */
function collectMethods(app: FastifyInstance): (path: string) => string {
  const routes: { pattern: RegExp; methods: string[] }[] = []
  app.addHook('onRoute', ({ url, method }) => {
    routes.push({ pattern: new RegExp(`^${url.replaceAll(/:\w+/g, '[^/]+')}$`), methods: [method].flat() })
  })
  return (path) => {
    const methods = routes.filter(({ pattern }) => pattern.test(path)).flatMap((route) => route.methods)
    return [...new Set(methods)].sort().join(', ')
  }
}

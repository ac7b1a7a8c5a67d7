// The HTTP face: one Fastify instance over an engine, without a port or a process.

import type { RequestListener, Server, ServerResponse } from 'node:http'
import cors from '@fastify/cors'
import Fastify, { type FastifyError, type FastifyInstance, type FastifyRequest } from 'fastify'
import { BODY_LIMIT } from '../api/limits.ts'
import type { Problem } from '../base/problem.ts'
import { POLL_BASE } from '../base/urls.ts'
import { requireAccess } from './auth/require-access.ts'
import { createHttpServer, refuseBrokenRequest, type Transport } from './http-server.ts'
import { followCaller } from './load/callers.ts'
import { FairQueue } from './load/fair-queue.ts'
import { limitPages, refuseLateWrites, shedLoad } from './load/shed-load.ts'
import { createPollHandler } from './poll/poll-handler.ts'
import { awaitRevision } from './request/await-revision.ts'
import { addBodyParser } from './request/body.ts'
import { sendProblem, toProblem, writeProblem } from './request/problem-response.ts'
import { checkQuery, isWrite } from './request/query.ts'
import { requestId } from './request/request-id.ts'
import { REVISION_HEADER, setRevision } from './request/revision-header.ts'
import { sendJsonInPieces } from './request/send-json.ts'
import { assignmentRoutes } from './routes/assignments.ts'
import { batchRoutes } from './routes/batch.ts'
import { bundleRoutes } from './routes/bundles.ts'
import { copyLogRoute } from './routes/copy-log.ts'
import { documentRoutes } from './routes/documents.ts'
import { descriptionRoutes, metricsRoute, probeRoutes } from './routes/operations.ts'
import { revisionRoutes } from './routes/revisions.ts'
import { tokenRoutes, whoamiRoute } from './routes/tokens.ts'
import { watchRoute } from './routes/watch-revisions.ts'
import type { Service } from './service.ts'

export async function buildApp(service: Service, transport: Transport = {}): Promise<FastifyInstance> {
  const { engine, auth, mode, log, corsOrigins } = service
  const polls = createPollHandler(service)
  const { turns } = service.admission
  const app = createInstance(engine, (handle) =>
    createHttpServer(service.limits, transport, turns, (request, response) => {
      const { url = '' } = request
      const isPoll = url.startsWith(POLL_BASE)
      // Lists of clusters, and polls that wait for a revision, go on after this.
      const leastMs = isPoll && url.length > POLL_BASE.length && !url.includes('?') ? 0 : REQUEST_MS
      turns.run(
        () => auth.callerOf(request),
        leastMs,
        () => {
          if (response.destroyed) return
          if (!engine.isLoaded && !PROBES.includes(request.url ?? ''))
            return refuseUnloaded(service, response)
          // Polls are nearly all requests there are, so they do not pass through the framework on their way.
          if (!isPoll || !polls(request, response)) handle(request, response)
        },
      )
    }),
  )
  const allowedOn = collectMethods(app)
  app.addHook('onRoute', ({ method, url, config }) => {
    const isForeign = url.startsWith('/docs') || method === 'OPTIONS'
    if (!config?.access && !isForeign) throw new Error(`${method} ${url} does not say who has access to it`)
  })
  app.decorateRequest('identity', undefined)
  app.decorateRequest('bodyProblem', undefined)
  app.decorateRequest('left')
  app.decorateRequest('isLate', false)
  const security = { ...SECURITY_HEADERS, ...(transport.tls && STRICT_TRANSPORT) }
  app.addHook('onRequest', (request, reply, done) => {
    setRevision(reply.headers(security).header('X-Request-Id', request.id), engine.state.revision)
    done()
  })
  // What has no route is answered before its body is looked at: what is wrong with that does not matter.
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done()
    const readOnly = mode === 'read-only' && isWrite(request)
    const allow = readOnly ? 'GET, HEAD' : allowedOn(request.url.split('?')[0] ?? '')
    if (allow === '') return void sendProblem(reply, noRoute(request))
    const message = readOnly
      ? 'this instance is read-only: write to one in crud mode'
      : `${request.method} is not possible here, only ${allow}`
    const reason = readOnly ? 'read_only' : 'unknown_method'
    sendProblem(reply.header('Allow', allow), { code: 'method_not_allowed', reason, message })
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    if (engine.draining && request.raw.httpVersionMajor < 2) reply.header('Connection', 'close')
    done(null, payload)
  })
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const problem = toProblem(error, request.id)
    if (problem.code === 'internal_error')
      log.error({ err: error, ...describe(service, request) }, 'request failed')
    return sendProblem(reply, problem)
  })
  if (corsOrigins.length > 0) await app.register(cors, { origin: [...corsOrigins], ...CORS })
  for (const url of [POLL_BASE, `${POLL_BASE}/:dns/:endpoint`]) {
    app.get(url, { config: { access: 'poll' } }, (request, reply) => {
      if (polls(request.raw, reply.raw)) reply.hijack()
      // The framework knows more ways to write a path than a poll may be asked for in.
      else sendProblem(reply, noRoute(request))
    })
  }
  app.register(async (scope) => {
    countAndLog(scope, service)
    probeRoutes(scope, service)
    if (!service.hasAdminPort) metricsRoute(scope, service)
  })
  app.register(async (scope) => {
    followCaller(scope)
    limitPages(scope, service)
    countAndLog(scope, service)
    await descriptionRoutes(scope, service)
  })
  app.register(async (scope) => {
    followCaller(scope)
    scope.addHook('onRequest', requireAccess(auth))
    scope.addHook('onRequest', checkQuery)
    scope.addHook('onRequest', awaitRevision(service))
    refuseLateWrites(scope, service)
    addBodyParser(scope, service)
    shedLoad(scope, service)
    sendJsonInPieces(scope)
    countAndLog(scope, service)
    whoamiRoute(scope)
    if (mode !== 'crud') return
    documentRoutes(scope, service)
    assignmentRoutes(scope, service)
    bundleRoutes(scope, service)
    revisionRoutes(scope, service)
    batchRoutes(scope, service)
    tokenRoutes(scope, service)
  })
  // Streams stay for hours: they have a limit of their own.
  app.register(async (scope) => {
    followCaller(scope)
    scope.addHook('onRequest', requireAccess(auth))
    scope.addHook('onRequest', checkQuery)
    scope.addHook('onRequest', awaitRevision(service))
    countAndLog(scope, service)
    watchRoute(scope, service)
    copyLogRoute(scope, service)
  })
  await app.ready()
  return app
}

/** Probes and metrics on a port of their own: without TLS, and away from whoever may reach the API. */
export async function buildAdminApp(service: Service): Promise<FastifyInstance> {
  const { engine } = service
  const app = createInstance(engine, (handle) =>
    createHttpServer(service.limits, {}, new FairQueue(), handle),
  )
  app.addHook('onRequest', (_request, reply, done) => {
    setRevision(reply.headers(SECURITY_HEADERS), engine.state.revision)
    done()
  })
  app.setNotFoundHandler((request, reply) => sendProblem(reply, noRoute(request)))
  probeRoutes(app, service)
  metricsRoute(app, service)
  await app.ready()
  return app
}

/** What the framework takes for a request at the least. */
const REQUEST_MS = 0.2

/** What can be answered without a state; from an empty one, anything else would be wrong. */
const PROBES = ['/health', '/ready', '/metrics']

function refuseUnloaded({ engine }: Service, response: ServerResponse): void {
  const message = `there is nothing to serve yet: ${engine.status.problem ?? 'the state is being loaded'}`
  response.setHeader(REVISION_HEADER, '0')
  writeProblem(response, { code: 'unavailable', reason: 'not_loaded', message })
}

function noRoute({ method, url }: FastifyRequest): Problem {
  return { code: 'not_found', reason: 'no_route', message: `no route ${method} ${url.split('?')[0]}` }
}

function createInstance(
  { state }: Service['engine'],
  serverFactory: (handle: RequestListener) => Server,
): FastifyInstance {
  const app = Fastify({
    logger: false,
    bodyLimit: BODY_LIMIT,
    serverFactory,
    forceCloseConnections: 'idle',
    genReqId: requestId,
    clientErrorHandler: (error, socket) => refuseBrokenRequest(error, socket),
    routerOptions: { maxParamLength: 300 },
    frameworkErrors: (error, request, reply) => {
      setRevision(reply.headers(SECURITY_HEADERS).header('X-Request-Id', request.id), state.revision)
      sendProblem(reply, toProblem(error, request.id))
    },
  })
  // Bodies are read only where a route takes one.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  return app
}

/** What browsers are to keep to, on the pages and anywhere else. */
const SECURITY_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
}
const STRICT_TRANSPORT = { 'Strict-Transport-Security': 'max-age=31536000' }

const CORS = {
  methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
  allowedHeaders: [
    'Authorization',
    'Content-Type',
    'If-Match',
    'If-None-Match',
    'Idempotency-Key',
    'Last-Event-ID',
    'X-Change-Message',
  ],
  exposedHeaders: [
    'ETag',
    'Link',
    'Location',
    'Retry-After',
    'Warning',
    'X-Request-Id',
    REVISION_HEADER,
    'X-Total-Count',
  ],
  maxAge: 600,
}

/** Polls come too often for a line each; everything else leaves one. */
function countAndLog(scope: FastifyInstance, service: Service): void {
  const { log, metrics } = service
  scope.addHook('onResponse', (request, reply, done) => {
    const { statusCode: status, elapsedTime } = reply
    metrics.countRequest(request.method, status)
    const level = status >= 500 ? 'warn' : isWrite(request) ? 'info' : 'debug'
    log[level]({ ...describe(service, request), status, ms: Math.round(elapsedTime * 10) / 10 }, 'request')
    done()
  })
}

function describe({ addressOf }: Service, { id, method, url, identity, raw }: FastifyRequest) {
  // Somebody may name a token by itself.
  const path = url.split('?')[0]?.replaceAll(/frs_\w{20,}/g, 'frs_***')
  return { request_id: id, method, path, actor: identity?.name, ip: addressOf(raw) }
}

/** Notes which methods each path has, as routes are added; answers those of a path, or nothing. */
function collectMethods(app: FastifyInstance): (path: string) => string {
  const routes: { pattern: RegExp; methods: string[] }[] = []
  app.addHook('onRoute', ({ url, method }) => {
    // What answers browsers that ask first is on every path.
    if (url === '*') return
    routes.push({ pattern: new RegExp(`^${url.replaceAll(/:\w+/g, '[^/]+')}$`), methods: [method].flat() })
  })
  return (path) => {
    const methods = routes.filter(({ pattern }) => pattern.test(path)).flatMap((route) => route.methods)
    return [...new Set(methods)].sort().join(', ')
  }
}

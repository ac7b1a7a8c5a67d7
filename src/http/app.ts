// The HTTP face: one Fastify instance over an engine, without a port or a process.

import type { RequestListener, Server, ServerResponse } from 'node:http'
import cors from '@fastify/cors'
import Fastify, { type FastifyError, type FastifyInstance, type FastifyRequest } from 'fastify'
import { BODY_LIMIT } from '../api/limits.ts'
import { POLL_BASE } from '../base/urls.ts'
import { requireAccess } from './auth/require-access.ts'
import { addConsole } from './console/console-pages.ts'
import { createHttpServer, refuseBrokenRequest, type Transport } from './http-server.ts'
import { followCaller } from './load/callers.ts'
import { FairQueue } from './load/fair-queue.ts'
import { limitPages, refuseLateWrites, shedLoad } from './load/shed-load.ts'
import { addDocsPage } from './openapi/docs-page.ts'
import { buildOpenapi } from './openapi/openapi.ts'
import type { Node } from './openapi/openapi-operation.ts'
import { admitEvents } from './poll/admit-events.ts'
import { createDirectPolls } from './poll/direct-handler.ts'
import { createPollHandler, type PollHandler } from './poll/poll-handler.ts'
import { awaitRevision } from './request/await-revision.ts'
import { addBodyParser, addLenientParser } from './request/body.ts'
import { noRoute, sendProblem, toProblem, writeProblem } from './request/problem-response.ts'
import { checkQuery, isWrite } from './request/query.ts'
import { requestId } from './request/request-id.ts'
import { REVISION_HEADER, setRevision } from './request/revision-header.ts'
import { sendJsonInPieces } from './request/send-json.ts'
import { addRoutes, type Route } from './route.ts'
import { assignmentRoutes } from './routes/assignments.ts'
import { batchRoutes } from './routes/batch.ts'
import { bundleRoutes } from './routes/bundles.ts'
import { clusterRoutes } from './routes/clusters.ts'
import { comparisonRoutes } from './routes/compare-revisions.ts'
import { copyLogRoutes } from './routes/copy-log.ts'
import { versionRoutes } from './routes/document-versions.ts'
import { documentRoutes } from './routes/documents.ts'
import { eventRoutes } from './routes/events.ts'
import { statusRoutes } from './routes/fleet-status.ts'
import { freezeRoutes } from './routes/freezes.ts'
import { holdRoutes, holdWriteRoutes } from './routes/holds.ts'
import { descriptionRoutes, metricsRoutes, probeRoutes } from './routes/operations.ts'
import { overrideRoutes } from './routes/overrides.ts'
import { pollRoutes } from './routes/poll-routes.ts'
import { profileRoutes } from './routes/profiles.ts'
import { reportRoutes } from './routes/reports.ts'
import { propagationRoutes } from './routes/revision-propagation.ts'
import { revisionRoutes } from './routes/revisions.ts'
import { rolloutActionRoutes } from './routes/rollout-actions.ts'
import { rolloutRoutes } from './routes/rollouts.ts'
import { tokenRoutes, whoamiRoutes } from './routes/tokens.ts'
import { watchRoutes } from './routes/watch-revisions.ts'
import type { Service } from './service.ts'

export async function buildApp(service: Service, transport: Transport = {}): Promise<FastifyInstance> {
  const { corsOrigins } = service
  const polls = createPollHandler(service)
  const app = createInstance(service.engine, listenerFor(service, transport, polls))
  const allowedOn = collectMethods(app)
  app.addHook('onRoute', ({ method, url, config }) => {
    const isForeign = url.startsWith('/docs') || method === 'OPTIONS'
    if (!config?.access && !isForeign) throw new Error(`${method} ${url} does not say who has access to it`)
  })
  app.decorateRequest('identity', undefined)
  app.decorateRequest('bodyProblem', undefined)
  app.decorateRequest('left')
  app.decorateRequest('isLate', false)
  addHeaders(app, service, transport)
  refuseUnknownRoutes(app, service, allowedOn)
  handleErrors(app, service)
  if (corsOrigins.length > 0) await app.register(cors, { origin: [...corsOrigins], ...CORS })
  addScopes(app, service, routesOf(service, polls))
  await app.ready()
  return app
}

/** All routes, by the hooks that they need. The description lists them in this order. */
interface Routes {
  readonly polls: readonly Route[]
  readonly api: readonly Route[]
  readonly events: readonly Route[]
  readonly reports: readonly Route[]
  readonly streams: readonly Route[]
  readonly probes: readonly Route[]
  readonly pages: readonly Route[]
  readonly openapi: Node
}

const CRUD_ROUTES = [
  documentRoutes,
  clusterRoutes,
  bundleRoutes,
  assignmentRoutes,
  comparisonRoutes,
  revisionRoutes,
  batchRoutes,
  rolloutActionRoutes,
  holdWriteRoutes,
  tokenRoutes,
]

function routesOf(service: Service, handler: PollHandler): Routes {
  const { mode, types, version, login, hasAdminPort } = service
  const routes = {
    polls: pollRoutes(service, handler),
    api: [
      ...(mode === 'crud' ? CRUD_ROUTES : []).flatMap((build) => build(service)),
      ...rolloutRoutes(service),
      ...freezeRoutes(service),
      ...holdRoutes(service),
      ...statusRoutes(service),
      ...propagationRoutes(service),
      ...versionRoutes(service),
      ...overrideRoutes(service),
      ...whoamiRoutes(),
    ],
    events: eventRoutes(service),
    reports: reportRoutes(service),
    streams: [watchRoutes, copyLogRoutes, profileRoutes].flatMap((build) => build(service)),
    probes: [...probeRoutes(service), ...(hasAdminPort ? [] : metricsRoutes(service))],
    pages: descriptionRoutes(() => openapi),
  }
  const openapi: Node = buildOpenapi(types, Object.values(routes).flat(), { version, login })
  return { ...routes, openapi }
}

function addScopes(app: FastifyInstance, service: Service, routes: Routes): void {
  addRoutes(app, routes.polls)
  app.register(async (scope) => {
    countAndLog(scope, service)
    addRoutes(scope, routes.probes)
  })
  app.register(async (scope) => {
    followCaller(scope)
    limitPages(scope, service)
    countAndLog(scope, service)
    addRoutes(scope, routes.pages)
    await addDocsPage(scope, routes.openapi)
    addConsole(scope, service)
  })
  app.register(async (scope) => {
    admitCallers(scope, service)
    refuseLateWrites(scope, service)
    addBodyParser(scope, service)
    shedLoad(scope, service)
    sendJsonInPieces(scope)
    countAndLog(scope, service)
    addRoutes(scope, routes.api)
  })
  app.register(async (scope) => {
    followCaller(scope)
    admitEvents(scope, service)
    addLenientParser(scope, service)
    countAndLog(scope, service)
    addRoutes(scope, routes.events)
  })
  app.register(async (scope) => {
    admitCallers(scope, service)
    addBodyParser(scope, service)
    countAndLog(scope, service)
    addRoutes(scope, routes.reports)
  })
  // Streams stay open for hours, so they have a limit of their own.
  app.register(async (scope) => {
    admitCallers(scope, service)
    countAndLog(scope, service)
    addRoutes(scope, routes.streams)
  })
}

/** Authenticates and authorises callers, and checks their queries. */
function admitCallers(scope: FastifyInstance, service: Service): void {
  followCaller(scope)
  scope.addHook('onRequest', requireAccess(service.auth))
  scope.addHook('onRequest', checkQuery)
  scope.addHook('onRequest', awaitRevision(service))
}

/** Callers take turns. Polls, which are nearly all requests, bypass Fastify. */
function listenerFor(service: Service, transport: Transport, polls: PollHandler) {
  const { engine, auth, limits, admission, metrics } = service
  const { turns } = admission
  return (handle: RequestListener): Server =>
    createHttpServer(limits, transport, turns, metrics.traffic, listener(handle), createDirectPolls(service))
  function listener(handle: RequestListener): RequestListener {
    return (request, response) => {
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

function addHeaders(app: FastifyInstance, { engine }: Service, transport: Transport): void {
  const security = { ...SECURITY_HEADERS, ...(transport.tls && STRICT_TRANSPORT) }
  app.addHook('onRequest', (request, reply, done) => {
    setRevision(reply.headers(security).header('X-Request-Id', request.id), engine.state.revision)
    done()
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    if (engine.draining && request.raw.httpVersionMajor < 2) reply.header('Connection', 'close')
    done(null, payload)
  })
}

/** Refuses requests without a route before their body is read. */
function refuseUnknownRoutes(
  app: FastifyInstance,
  { mode }: Service,
  allowedOn: (path: string) => string,
): void {
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
}

function handleErrors(app: FastifyInstance, service: Service): void {
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const problem = toProblem(error, request.id)
    if (problem.code === 'internal_error')
      service.log.error({ err: error, ...requestFields(service, request) }, 'request failed')
    return sendProblem(reply, problem)
  })
}

/** Probes and metrics on a port of their own: without TLS, and out of reach of the API's clients. */
export async function buildAdminApp(service: Service): Promise<FastifyInstance> {
  const { engine } = service
  const app = createInstance(engine, (handle) =>
    createHttpServer(service.limits, {}, new FairQueue(), service.metrics.traffic, handle),
  )
  app.addHook('onRequest', (_request, reply, done) => {
    setRevision(reply.headers(SECURITY_HEADERS), engine.state.revision)
    done()
  })
  app.setNotFoundHandler((request, reply) => sendProblem(reply, noRoute(request)))
  addRoutes(app, [...probeRoutes(service), ...metricsRoutes(service)])
  await app.ready()
  return app
}

/** The least time that Fastify takes for a request. */
const REQUEST_MS = 0.2

/** Routes that work before a state is loaded; all others would be wrong with an empty one. */
const PROBES = ['/health', '/ready', '/metrics']

function refuseUnloaded({ engine }: Service, response: ServerResponse): void {
  const message = `there is nothing to serve yet: ${engine.status.problem ?? 'the state is being loaded'}`
  response.setHeader(REVISION_HEADER, '0')
  writeProblem(response, { code: 'unavailable', reason: 'not_loaded', message })
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

/** Security headers of every response. */
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

/** Counts and logs every request except polls, which are too many for a line each. */
function countAndLog(scope: FastifyInstance, service: Service): void {
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

/** Collects the methods of each path as routes are added; returns a function for those of a path, empty without a route. */
function collectMethods(app: FastifyInstance): (path: string) => string {
  const routes: { pattern: RegExp; params: number; methods: string[] }[] = []
  app.addHook('onRoute', ({ url, method }) => {
    // The route for CORS preflights is on every path.
    if (url === '*') return
    const pattern = new RegExp(`^${url.replaceAll(/:\w+/g, '[^/]+').replace('*', '.*')}$`)
    routes.push({ pattern, params: url.split(':').length, methods: [method].flat() })
  })
  return (path) => {
    const fitting = routes.filter(({ pattern }) => pattern.test(path))
    // A path that a route spells out is that route's, also where a parameter of another would take it.
    const least = Math.min(...fitting.map(({ params }) => params))
    const methods = fitting.filter(({ params }) => params === least).flatMap((route) => route.methods)
    return [...new Set(methods)].sort().join(', ')
  }
}

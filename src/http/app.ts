// The HTTP face: one Fastify instance over an engine, without a port or a process.

import cors from '@fastify/cors'
import type { FastifyInstance } from 'fastify'
import { allRoutes, type Routes } from './all-routes.ts'
import { requireAccess } from './auth/require-access.ts'
import { addConsole } from './console/console-pages.ts'
import { addHeaders, createInstance } from './create-instance.ts'
import type { Transport } from './http-server.ts'
import { followCaller } from './load/callers.ts'
import { limitPages, refuseLateWrites, shedLoad } from './load/shed-load.ts'
import { addDocsPage } from './openapi/docs-page.ts'
import { admitEvents } from './poll/admit-events.ts'
import { createPollHandler } from './poll/poll-handler.ts'
import { awaitRevision } from './request/await-revision.ts'
import { addBodyParser, addLenientParser } from './request/body.ts'
import { checkQuery } from './request/query.ts'
import { REVISION_HEADER } from './request/revision-header.ts'
import { sendJsonInPieces } from './request/send-json.ts'
import { listenerFor } from './request-listener.ts'
import { countAndLog, handleErrors } from './request-log.ts'
import { addRoutes } from './route.ts'
import type { Service } from './service.ts'
import { collectMethods, refuseUnknownRoutes } from './unknown-routes.ts'

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
  addHeaders(app, service, transport)
  refuseUnknownRoutes(app, service, allowedOn)
  handleErrors(app, service)
  if (corsOrigins.length > 0) await app.register(cors, { origin: [...corsOrigins], ...CORS })
  addScopes(app, service, allRoutes(service, polls))
  await app.ready()
  return app
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
    refuseLateWrites(scope)
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

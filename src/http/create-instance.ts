// A Fastify instance as this service uses it: bodies only where a route takes one, and headers on every response.
import type { RequestListener, Server } from 'node:http'
import Fastify, { type FastifyInstance } from 'fastify'
import { BODY_LIMIT } from '../api/limits.ts'
import { refuseBrokenRequest, type Transport } from './http-server.ts'
import { sendProblem, toProblem } from './request/problem-response.ts'
import { requestId } from './request/request-id.ts'
import { setRevision } from './request/revision-header.ts'
import type { Service } from './service.ts'

/** Security headers of every response. */
export const SECURITY_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
}
const STRICT_TRANSPORT = { 'Strict-Transport-Security': 'max-age=31536000' }

export function createInstance(
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

export function addHeaders(app: FastifyInstance, { engine }: Service, transport: Transport): void {
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

// The HTTP face on the admin port.
import type { FastifyInstance } from 'fastify'
import { adminRoutes } from './all-routes.ts'
import { createInstance, SECURITY_HEADERS } from './create-instance.ts'
import { createHttpServer } from './http-server.ts'
import { FairQueue } from './load/fair-queue.ts'
import { noRoute, sendProblem } from './request/problem-response.ts'
import { setRevision } from './request/revision-header.ts'
import { addRoutes } from './route.ts'
import type { Service } from './service.ts'

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
  addRoutes(app, adminRoutes(service))
  await app.ready()
  return app
}

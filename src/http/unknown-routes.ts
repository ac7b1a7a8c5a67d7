// Refusals of requests that no route takes: an unknown path, or a method that its path does not have.
import type { FastifyInstance } from 'fastify'
import { noRoute, sendProblem } from './request/problem-response.ts'
import { isWrite } from './request/query.ts'
import type { Service } from './service.ts'

/** Refuses requests without a route before their body is read. */
export function refuseUnknownRoutes(
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

/** Collects the methods of each path as routes are added; returns a function for those of a path, empty without a route. */
export function collectMethods(app: FastifyInstance): (path: string) => string {
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

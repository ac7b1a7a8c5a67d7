// For those who run the service: probes, metrics, and the API's own description.
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { stringify } from 'yaml'
import type { ReasonOf } from '../../base/problem.ts'
import { THEME } from '../openapi/docs-page.ts'
import { buildOpenapi } from '../openapi/openapi.ts'
import { sendProblem } from '../request/problem-response.ts'
import type { Service } from '../service.ts'

/** The page needs nothing but what comes with it; its widgets style themselves inline. */
const CONTENT_SECURITY_POLICY =
  "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'self'; frame-ancestors 'self'"

const OPEN = { config: { access: 'open' } } as const

/** What is served on a port of its own, where there is one. */
export function probeRoutes(app: FastifyInstance, { engine, mode, maxStalenessMs }: Service): void {
  app.get('/health', OPEN, (_request, reply) => reply.send({ status: 'ok' }))

  app.get('/ready', OPEN, async (_request, reply) => {
    const unready = (reason: ReasonOf<'unavailable'>, message: string) =>
      sendProblem(reply, { code: 'unavailable', reason, message })
    if (engine.draining) return unready('draining', 'the service is stopping')
    const { problem, stalenessMs } = await engine.check()
    if (!engine.isLoaded) return unready('not_loaded', `there is nothing to serve yet: ${problem}`)
    const { revision } = engine.state
    if (problem === undefined) return reply.send({ status: 'ready', mode, revision })
    const age = Math.round(stalenessMs / 1000)
    // Polls need no store; a process that is there for writes is of no use without one.
    if (mode === 'crud') return unready('store_unavailable', `the store cannot be used now: ${problem}`)
    if (stalenessMs > maxStalenessMs) return unready('stale', `what is served is ${age} s old: ${problem}`)
    return reply.send({ status: 'degraded', mode, revision, age_seconds: age, reason: problem })
  })
}

export function metricsRoute(app: FastifyInstance, { metrics }: Service): void {
  app.get('/metrics', OPEN, async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.render()),
  )
}

export async function descriptionRoutes(app: FastifyInstance, service: Service): Promise<void> {
  const { types, version, mode, login } = service
  const openapi = buildOpenapi(types, { version, mode, login })
  // Made when they are first asked for, which is mostly never, and the same bytes for all: anybody may ask.
  let json: Buffer | undefined
  let yaml: Buffer | undefined
  app.get('/openapi.json', OPEN, (_request, reply) => {
    json ??= Buffer.from(JSON.stringify(openapi))
    return reply.type('application/json; charset=utf-8').send(json)
  })
  app.get('/openapi.yaml', OPEN, (_request, reply) => {
    yaml ??= Buffer.from(stringify(openapi))
    return reply.type('application/yaml').send(yaml)
  })

  // biome-ignore lint/suspicious/noExplicitAny: our document is checked against the OpenAPI schema by a test
  await app.register(swagger, { mode: 'static', specification: { document: openapi as any } })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: CONTENT_SECURITY_POLICY,
    theme: THEME,
    uiConfig: { docExpansion: 'none', layout: 'BaseLayout' },
  })
}

// For those who run the service: probes, metrics, and the API's own description.
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { stringify } from 'yaml'
import { buildOpenapi } from '../../registry/openapi.ts'
import { sendProblem } from '../problem-response.ts'
import type { Service } from '../service.ts'

/** The page needs nothing but what comes with it; its widgets style themselves inline. */
const CONTENT_SECURITY_POLICY =
  "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'self'; frame-ancestors 'self'"

export async function operationRoutes(app: FastifyInstance, service: Service): Promise<void> {
  const { engine, metrics, types, version, mode } = service

  app.get('/health', (_request, reply) => reply.send({ status: 'ok' }))

  app.get('/ready', async (_request, reply) => {
    const reason = await engine.check()
    if (reason) return sendProblem(reply, { code: 'unavailable', message: reason })
    return reply.send({ status: 'ready', mode, revision: engine.state.revision })
  })

  app.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.render()))

  const openapi = buildOpenapi(types, { version, mode })
  const openapiYaml = stringify(openapi)
  app.get('/openapi.json', (_request, reply) => reply.send(openapi))
  app.get('/openapi.yaml', (_request, reply) => reply.type('application/yaml').send(openapiYaml))

  // biome-ignore lint/suspicious/noExplicitAny: our document is checked against the OpenAPI schema by a test
  await app.register(swagger, { mode: 'static', specification: { document: openapi as any } })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: CONTENT_SECURITY_POLICY,
    uiConfig: { docExpansion: 'none', layout: 'BaseLayout' },
  })
}

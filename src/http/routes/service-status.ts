// The service itself: the processes that work on its store, and the templates that this one has loaded.
import { ref } from '../../api/component-ref.ts'
import { SERVICE_SCHEMAS, type ServiceStatus } from '../../api/service-schema.ts'
import { succeed } from '../../base/problem.ts'
import type { Replica } from '../../engine/replicas.ts'
import { ok, READING } from '../openapi/openapi-operation.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'

export function serviceStatusRoutes({ engine, templates }: Service): Route[] {
  return [
    route({
      method: 'GET',
      path: '/status/service',
      access: 'read',
      tag: 'status',
      id: 'service_status',
      summary: 'The processes that work on the store, and the templates that bundles carry.',
      description:
        'Each process says every 30 seconds that it is there; one that was killed is listed for an hour, with its age.',
      answers: { 200: ok('The service.', ref('service_status'), ['X-Request-Id']) },
      problems: READING,
      schemas: SERVICE_SCHEMAS,
      handler: async (_request, reply) => {
        const replicas = await engine.inspect(async () => succeed(await engine.replicas.list()))
        const status: ServiceStatus = {
          replicas: replicas.ok ? replicas.value.map(shown) : null,
          templates: templates.map(({ kind, name, endpoints, obstacle = null }) => {
            return { kind, name, endpoints, obstacle }
          }),
        }
        return reply.header('Cache-Control', 'no-store').send(status)
      },
    }),
  ]
}

function shown({ startedAt, seenAt, isSelf, ...rest }: Replica) {
  return { ...rest, started_at: startedAt, seen_at: seenAt, self: isSelf }
}

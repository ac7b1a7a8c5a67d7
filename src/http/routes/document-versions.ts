// Which versions of a document are where, for types whose file says what a version is.
import { ref } from '../../api/component-ref.ts'
import { VERSIONS_SCHEMAS } from '../../api/versions-schema.ts'
import { notFound } from '../../base/problem.ts'
import type { RegisteredDelivery } from '../../registry/build-types.ts'
import { ok, READING_ONE } from '../openapi/openapi-operation.ts'
import { idSchema } from '../openapi/openapi-types.ts'
import { inPath } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'
import { listFor } from '../status/list-for.ts'
import { listVersions } from '../status/list-versions.ts'

export function versionRoutes(service: Service): Route[] {
  return service.types.delivered
    .filter(({ delivery }) => delivery.versionField)
    .map((type) => versionRoute(service, type))
}

function versionRoute(service: Service, type: RegisteredDelivery): Route {
  const { name, singular } = type
  const { engine, types } = service
  return route<'id'>({
    method: 'GET',
    path: `/${name}/{id}/versions`,
    access: 'read',
    tag: 'status',
    id: `versions_${name}`,
    summary: `Which versions of one ${singular} clusters are to have, and have.`,
    description:
      'Counted over all live clusters, and by their tier. A version is what a cluster is to have now, by the catalog or by an override of its own.',
    parameters: [inPath('id', `Id of the ${singular}.`, idSchema(type))],
    answers: { 200: ok('Versions.', ref('version_list'), ['X-Request-Id']) },
    problems: READING_ONE,
    schemas: VERSIONS_SCHEMAS,
    handler: async (request, reply) => {
      const { id } = request.params
      if (!engine.state.get(name, id)) return sendProblem(reply, notFound(singular, id).problem)
      const listed = await listFor(service, request, (fleet, view) =>
        listVersions(fleet, types, view, type, id),
      )
      if (!listed.ok) return sendProblem(reply, listed.problem)
      return reply.header('Cache-Control', 'no-store').send(listed.value)
    },
  })
}

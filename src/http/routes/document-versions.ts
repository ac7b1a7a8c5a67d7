// Where a document is: the clusters that are assigned it, and which versions of it are where.
import { ref } from '../../api/component-ref.ts'
import { STATUS_PAGES } from '../../api/limits.ts'
import { VERSIONS_SCHEMAS } from '../../api/versions-schema.ts'
import { notFound } from '../../base/problem.ts'
import type { RegisteredDelivery } from '../../registry/build-types.ts'
import { ok, READING_ONE } from '../openapi/openapi-operation.ts'
import { idSchema } from '../openapi/openapi-types.ts'
import { pageIn, sendPageHeaders } from '../request/list-query.ts'
import { inPath, pageOf, SELECTOR } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { selectedIn } from '../request/selected-in.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'
import { listAssigned } from '../status/list-assigned.ts'
import { listFor } from '../status/list-for.ts'
import { listVersions } from '../status/list-versions.ts'

const PAGE = pageOf(STATUS_PAGES)
const [LIMIT] = PAGE

export function versionRoutes(service: Service): Route[] {
  return service.types.delivered.flatMap((type) => [
    versionRoute(service, type),
    assignedRoute(service, type),
  ])
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
      'Counted over all live clusters, and by their tier. A version is what a cluster is to have now, by the catalog or by an override of its own. Documents of types whose file does not say what a version is have the version null.',
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

function assignedRoute(service: Service, type: RegisteredDelivery): Route {
  const { name, singular } = type
  const { engine, types } = service
  return route<'id'>({
    method: 'GET',
    path: `/${name}/{id}/clusters`,
    access: 'read',
    tag: 'status',
    id: `clusters_${name}`,
    summary: `The clusters that are assigned one ${singular}, each with the version that it is served.`,
    description:
      'Ordered by id, a page at a time, those that have it switched off included. The selector may ask for versions and for overrides.',
    parameters: [inPath('id', `Id of the ${singular}.`, idSchema(type)), ...PAGE, SELECTOR],
    answers: {
      200: ok('Clusters.', { type: 'array', items: ref('assigned_cluster') }, [
        'X-Request-Id',
        'X-Total-Count',
        'Link',
      ]),
    },
    problems: READING_ONE,
    schemas: VERSIONS_SCHEMAS,
    handler: async (request, reply) => {
      const { id } = request.params
      const matches = selectedIn(service, request.query)
      if (!matches.ok) return sendProblem(reply, matches.problem)
      if (!engine.state.get(name, id)) return sendProblem(reply, notFound(singular, id).problem)
      const page = pageIn(request.query, LIMIT)
      const query = { type, id, matches: matches.value, ...page }
      const listed = await listFor(service, request, (fleet, view) => listAssigned(fleet, types, view, query))
      if (!listed.ok) return sendProblem(reply, listed.problem)
      const { clusters, total } = listed.value
      sendPageHeaders(reply, request.url, page, total)
      return reply.header('Cache-Control', 'no-store').send(clusters)
    },
  })
}

// What the clusters are doing: contact, delivery and health of one, and of many with counts.

import { ATTENTION_SCHEMAS } from '../../api/attention-schema.ts'
import { ref } from '../../api/component-ref.ts'
import { STATUS_PAGES } from '../../api/limits.ts'
import { type ClusterStatus, STATUS_SCHEMAS } from '../../api/status-schema.ts'
import { forbidden, notFound, type Result, succeed } from '../../base/problem.ts'
import { may } from '../../domain/access/permissions.ts'
import { findVersion } from '../../domain/documents/find-document.ts'
import type { View } from '../../domain/documents/view.ts'
import {
  CONTACTS,
  type Contact,
  DELIVERIES,
  type Delivered,
  HEALTHS,
  type Health,
} from '../../domain/status/status-words.ts'
import type { Document } from '../../domain/types/resource-type.ts'
import type { RegisteredType } from '../../registry/build-types.ts'
import { identityOf } from '../auth/identity.ts'
import { ok, READING, READING_ONE } from '../openapi/openapi-operation.ts'
import { idSchema } from '../openapi/openapi-types.ts'
import { pageIn, sendPageHeaders } from '../request/list-query.ts'
import { inPath, inQuery, numberIn, pageOf, type Query, SELECTOR } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { selectedIn } from '../request/selected-in.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'
import { describeCluster } from '../status/describe-cluster.ts'
import { listAttention } from '../status/list-attention.ts'
import { listFor } from '../status/list-for.ts'
import { listStatus, STATUS_SORTS, type StatusQuery, type StatusSort } from '../status/list-status.ts'

const PAGE = pageOf(STATUS_PAGES)
const [LIMIT] = PAGE
const TEXT = inQuery('q', 'Only clusters with this text in their id.', { type: 'string' })
const CONTACT = inQuery('contact', 'Only clusters with this contact.', { type: 'string', enum: CONTACTS })
const DELIVERY = inQuery('delivery', 'Only clusters with this delivery.', {
  type: 'string',
  enum: DELIVERIES,
})
const HEALTH = inQuery('health', 'Only clusters with this health.', { type: 'string', enum: HEALTHS })
const BY = inQuery(
  'by',
  'A label, such as region: the counts of each environment by its values, in groups.',
  {
    type: 'string',
    minLength: 1,
    maxLength: 200,
  },
)
const SORT = inQuery('sort', 'Order of the list: states worst first, times oldest first.', {
  type: 'string',
  enum: STATUS_SORTS,
  default: 'cluster',
})

export function statusRoutes(service: Service): Route[] {
  return [fleetRoute(service), attentionRoute(service), clusterRoute(service)]
}

function fleetRoute(service: Service): Route {
  const { types } = service
  const { environment } = types.cluster
  const ofEnvironment = environment
    ? [inQuery(environment, 'Only clusters of this tier.', { type: 'string' })]
    : []
  return route({
    method: 'GET',
    path: '/status',
    access: 'read',
    tag: 'status',
    id: 'fleet_status',
    summary: 'How the clusters fare: counts by state, and the clusters a page at a time.',
    description:
      'Counts cover all clusters that the filters choose, on every page. Nothing is green without evidence: what is not known is unknown.',
    parameters: [...PAGE, SELECTOR, TEXT, CONTACT, DELIVERY, HEALTH, ...ofEnvironment, SORT, BY],
    answers: {
      200: ok('Counts and clusters.', ref('fleet_status'), ['X-Request-Id', 'X-Total-Count', 'Link']),
    },
    problems: READING,
    schemas: STATUS_SCHEMAS,
    handler: async (request, reply) => {
      const query = statusQuery(service, request.query)
      if (!query.ok) return sendProblem(reply, query.problem)
      const { now, types } = service
      const listed = await listFor(service, request, (fleet, view) =>
        listStatus(fleet, types.cluster, view, query.value, now().getTime()),
      )
      if (!listed.ok) return sendProblem(reply, listed.problem)
      sendPageHeaders(reply, request.url, query.value, listed.value.total)
      return reply.header('Cache-Control', 'no-store').send(listed.value)
    },
  })
}

function statusQuery(service: Service, query: Query): Result<StatusQuery> {
  const { q, contact, delivery, health, sort = 'cluster', by } = query
  const selected = selectedIn(service, query)
  if (!selected.ok) return selected
  const { environment } = service.types.cluster
  const wanted = environment === undefined ? undefined : query[environment]
  return succeed({
    matches: (cluster: Document, view: View) =>
      (wanted === undefined || cluster[environment ?? ''] === wanted) && selected.value(cluster, view),
    ...(q !== undefined && { text: q.toLowerCase() }),
    ...(contact !== undefined && { contact: contact as Contact }),
    ...(delivery !== undefined && { delivery: delivery as Delivered }),
    ...(health !== undefined && { health: health as Health }),
    sort: sort as StatusSort,
    ...(by !== undefined && by !== '' && { by }),
    ...pageIn(query, LIMIT),
  })
}

function attentionRoute(service: Service): Route {
  const { types } = service
  return route({
    method: 'GET',
    path: '/status/attention',
    access: 'read',
    tag: 'status',
    id: 'fleet_attention',
    summary: 'The clusters that need somebody, worst problem first, each with what to do next.',
    description:
      'Each cluster is listed once, with its worst problem: refused, failed, rejected, offline, stuck, partial, flapping or late. A stuck cluster reports, and has not applied what it was served long ago. A partial one polls, but has long not asked for one of its endpoints. For a flapping one, contact changed four times within an hour, or a component failed or recovered as often. Within a problem, the one that lasts longest comes first.',
    parameters: [LIMIT, SELECTOR],
    answers: { 200: ok('Clusters with a problem.', ref('attention'), ['X-Request-Id']) },
    problems: READING,
    schemas: ATTENTION_SCHEMAS,
    handler: async (request, reply) => {
      const { query } = request
      const matches = selectedIn(service, query)
      if (!matches.ok) return sendProblem(reply, matches.problem)
      const limit = numberIn(query, LIMIT) as number
      const listed = await listFor(service, request, (fleet, view) =>
        listAttention(fleet, types.cluster, view, { matches: matches.value, limit }),
      )
      if (!listed.ok) return sendProblem(reply, listed.problem)
      return reply.header('Cache-Control', 'no-store').send(listed.value)
    },
  })
}

function clusterRoute(service: Service): Route {
  const { types, engine } = service
  const type = types.get(types.cluster.type.name) as RegisteredType
  return route<'cluster'>({
    method: 'GET',
    path: `/${type.name}/{cluster}/status`,
    access: 'own_status',
    tag: 'status',
    id: 'cluster_status',
    summary: 'Status of one cluster: served, applied, and health of its components.',
    description:
      "For roles that may read, and for the cluster's own token. Evidence about another digest than the present one counts for nothing.",
    parameters: [inPath('cluster', 'Id of the cluster.', idSchema(type))],
    answers: { 200: ok('Its status.', ref('status_of_cluster'), ['X-Request-Id']) },
    problems: READING_ONE,
    handler: async (request, reply) => {
      const { cluster: id } = request.params
      const { grant } = identityOf(request)
      if (!may(grant, 'read') && grant.cluster !== id)
        return sendProblem(
          reply,
          forbidden('other_cluster', `this token reads the status of cluster "${grant.cluster}" alone`),
        )
      const found = findVersion(engine.state, type.name, id)
      if (!found) return sendProblem(reply, notFound(type.singular, id).problem)
      reply.header('Cache-Control', 'no-store')
      const transitions = await engine.inspect(async () => succeed(await engine.fleet.transitionsOf(id)))
      const { fleet } = engine.fleet
      const status: ClusterStatus = describeCluster(
        types.cluster,
        fleet.situationOf(found),
        fleet.operatorVersion(id),
        // Status goes on while the store is unavailable, without what is kept there.
        transitions.ok ? transitions.value : [],
      )
      return reply.send(status)
    },
  })
}

// Holds: clusters that are kept at what they are served.
import { ref } from '../../api/component-ref.ts'
import { PAGES } from '../../api/limits.ts'
import { JSON_TYPE } from '../../api/media-types.ts'
import { HOLD_SCHEMA, NEW_HOLD_SCHEMA, type ShownHold } from '../../api/rollout-schema.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import { type Detail, forbidden, invalid, notFound, type Problem } from '../../base/problem.ts'
import { may, type Permission } from '../../domain/access/permissions.ts'
import type { Entry } from '../../domain/documents/view.ts'
import { asHold, HOLDS } from '../../domain/rollouts/hold.ts'
import type { RegisteredType } from '../../registry/build-types.ts'
import { buildChecker } from '../../registry/validator.ts'
import { type Identity, identityOf } from '../auth/identity.ts'
import {
  example,
  json,
  LOCKED,
  ok,
  PREVIEWED,
  READING,
  READING_ONE,
  WRITING,
  written,
} from '../openapi/openapi-operation.ts'
import { idSchema } from '../openapi/openapi-types.ts'
import { pageIn, sendPageHeaders } from '../request/list-query.ts'
import { IF_ABSENT, IF_MATCH, inPath, pageOf } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { answerWrite } from '../request/run-write.ts'
import { readTimeAt } from '../request/time-field.ts'
import { etagOf } from '../request/write-answer.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'

const PAGE = pageOf(PAGES)
const checkHold = buildChecker(NEW_HOLD_SCHEMA)

/** In both modes. */
export function holdRoutes(service: Service): Route[] {
  return [listRoute(service), readRoute(service)]
}

export function holdWriteRoutes(service: Service): Route[] {
  return [holdRoute(service), releaseRoute(service)]
}

function clusterIn({ types }: Service) {
  return inPath(
    'cluster',
    'Id of the cluster.',
    idSchema(types.get(types.cluster.type.name) as RegisteredType),
  )
}

function shown(entry: Entry, now: Date): ShownHold {
  const { id: cluster, reason, held_by, since, until } = asHold(entry)
  if (until === undefined) return { cluster, reason, held_by, since }
  const expires_in_s = Math.max(0, Math.round((Date.parse(until) - now.getTime()) / 1000))
  return { cluster, reason, held_by, since, until, expires_in_s }
}

/** Why a caller may not do this with a cluster; undefined where it may. */
function refuseOther({ grant }: Identity, cluster: string, permission: Permission): Problem | undefined {
  if (may(grant, permission) || grant.cluster === cluster) return undefined
  const message = `this token is about the hold of cluster "${grant.cluster}" alone`
  return forbidden('other_cluster', message)
}

function listRoute(service: Service): Route {
  const { engine, now } = service
  return route({
    method: 'GET',
    path: '/holds',
    access: 'read',
    tag: 'rollouts',
    id: 'list_holds',
    summary: 'Clusters that are kept at what they are served; those that end first come first.',
    description:
      'Each says in expires_in_s when it ends by itself; those that last until they are released come last.',
    parameters: [...PAGE],
    answers: {
      200: ok('Holds.', { type: 'array', items: ref('hold') }, ['X-Request-Id', 'X-Total-Count', 'Link']),
    },
    problems: READING,
    schemas: { hold: HOLD_SCHEMA },
    handler: (request, reply) => {
      const page = pageIn(request.query, PAGE[0])
      const all = [...engine.state.all(HOLDS)].sort((a, b) => endOf(a) - endOf(b))
      sendPageHeaders(reply, request.url, page, all.length)
      const listed = all.slice(page.offset, page.offset + page.limit)
      return reply.header('Cache-Control', 'no-store').send(listed.map((entry) => shown(entry, now())))
    },
  })
}

function endOf(entry: Entry): number {
  const { until } = asHold(entry)
  return until === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(until)
}

function readRoute(service: Service): Route {
  const { engine, now } = service
  return route<'cluster'>({
    method: 'GET',
    path: '/holds/{cluster}',
    access: 'own_status',
    tag: 'rollouts',
    id: 'get_hold',
    summary: 'The hold of one cluster; 404 where it is not held.',
    description: "For roles that may read, and for the cluster's own token.",
    parameters: [clusterIn(service)],
    answers: { 200: ok('The hold.', ref('hold'), ['X-Request-Id', 'ETag']) },
    problems: READING_ONE,
    handler: (request, reply) => {
      const { cluster } = request.params
      const refused = refuseOther(identityOf(request), cluster, 'read')
      if (refused) return sendProblem(reply, refused)
      const entry = engine.state.get(HOLDS, cluster)
      if (!entry) return sendProblem(reply, notFound('hold', cluster).problem)
      return reply.headers({ 'Cache-Control': 'no-store', ETag: etagOf(entry) }).send(shown(entry, now()))
    },
  })
}

function holdRoute(service: Service): Route {
  return route<'cluster'>({
    method: 'PUT',
    path: '/holds/{cluster}',
    access: 'own_hold',
    tag: 'rollouts',
    id: 'hold_cluster',
    summary: 'Keep a cluster at what it is served now.',
    description: `It is served exactly that until the given time or its release. Writes and rollouts do not reach it. Of a cluster that is held already only reason and end change. For roles that may write it, and for the cluster's own token. ${LOCKED} ${PREVIEWED}`,
    parameters: [clusterIn(service), IF_MATCH, IF_ABSENT],
    body: {
      content: json(
        NEW_HOLD_SCHEMA,
        JSON_TYPE,
        example({ reason: 'the shop is busy until Monday', until: '2099-12-31T00:00:00Z' }),
      ),
    },
    answers: written(ref('hold'), { created: true }),
    problems: WRITING,
    handler: (request, reply) => {
      const { cluster } = request.params
      const identity = identityOf(request)
      const refused = refuseOther(identity, cluster, 'preview')
      if (refused) return sendProblem(reply, refused)
      const { body } = request
      const details: Detail[] = isObject(body)
        ? checkHold(body)
        : [{ path: '', message: 'must be an object' }]
      const { until: given, reason } = (isObject(body) ? body : {}) as JsonObject
      const until =
        details.length > 0 ? undefined : readTimeAt(given as string | undefined, '/until', details)
      if (details.length > 0) return sendProblem(reply, invalid(details).problem)
      const at = service.now().toISOString()
      const command = {
        op: 'hold_cluster',
        ...{ cluster, reason: reason as string, by: identity.name, at, path: '' },
        ...(until !== undefined && { until }),
      } as const
      return answerWrite(
        { service, request, reply, permission: 'own_hold' },
        command,
        ({ after }, { created }) => {
          const entry = after.get(HOLDS, cluster) as Entry
          const headers = { ETag: etagOf(entry), ...(created && { Location: `/holds/${cluster}` }) }
          return { status: created ? 201 : 200, headers, body: shown(entry, service.now()) }
        },
      )
    },
  })
}

function releaseRoute(service: Service): Route {
  return route<'cluster'>({
    method: 'DELETE',
    path: '/holds/{cluster}',
    access: 'own_hold',
    tag: 'rollouts',
    id: 'release_cluster',
    summary: 'Release a cluster: from its next poll on it is served what it would be without the hold.',
    description: `The preview shows what that changes for it. For roles that may write the cluster, and for its own token. ${LOCKED} ${PREVIEWED}`,
    parameters: [clusterIn(service), IF_MATCH],
    answers: written(ref('hold')),
    problems: WRITING,
    handler: (request, reply) => {
      const { cluster } = request.params
      const refused = refuseOther(identityOf(request), cluster, 'preview')
      if (refused) return sendProblem(reply, refused)
      const command = { op: 'release_cluster', cluster, path: '' } as const
      return answerWrite({ service, request, reply, permission: 'own_hold' }, command, ({ changes }) => {
        const before = changes.find(({ type }) => type === HOLDS)?.before as Entry
        return { body: shown(before, service.now()) }
      })
    },
  })
}

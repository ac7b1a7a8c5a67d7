// What one cluster is given: references and patches, changed without rewriting the cluster.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { JSON_TYPE, MERGE_PATCH } from '../../api/media-types.ts'
import type { Json } from '../../base/json.ts'
import { notFound, type Result, succeed } from '../../base/problem.ts'
import { notAssigned } from '../../domain/documents/find-document.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import {
  type DeliveredType,
  findReference,
  patchesOf,
  type Reference,
} from '../../domain/types/resource-type.ts'
import { accepts, refuseBody } from '../request/body.ts'
import { sendProblem } from '../request/problem-response.ts'
import { readAt } from '../request/read-at.ts'
import { answerWrite } from '../request/run-write.ts'
import { etagOf } from '../request/write-answer.ts'
import type { Service } from '../service.ts'

interface Params {
  Params: { cluster: string; id: string }
  Body: Json
}

const READ = { config: { access: 'read', parameters: ['at'] } } as const
const ASSIGN = { config: { access: 'write' }, preHandler: accepts([JSON_TYPE], { empty: true }) } as const
const PUT = { config: { access: 'write' }, preHandler: accepts([JSON_TYPE]) } as const
const PATCH = { config: { access: 'write' }, preHandler: accepts([JSON_TYPE, MERGE_PATCH]) } as const
const DELETE = { config: { access: 'write' }, preHandler: refuseBody } as const

export function assignmentRoutes(app: FastifyInstance, service: Service): void {
  for (const type of service.types.delivered) referenceRoutes(app, service, type)
  if (service.types.patchable) patchesRoutes(app, service, service.types.patchable)
}

function clusterIn(service: Service, view: View, id: string): Entry | undefined {
  return view.get(service.types.cluster.type.name, id)
}

interface Assigned {
  readonly cluster: Entry
  readonly reference: Reference
}

/** A cluster and its reference to a document, as they are or were; the same problems in both cases. */
async function findAssigned(
  service: Service,
  request: FastifyRequest<Params>,
  reply: FastifyReply,
  type: DeliveredType,
): Promise<Result<Assigned>> {
  const { cluster: clusterId, id } = request.params
  const clusters = service.types.cluster.type
  const assignedIn = (cluster: Entry): Assigned | undefined => {
    const reference = findReference(cluster.document, type.delivery, id)
    return reference && { cluster, reference }
  }
  const found = await readAt<Assigned>(service, request, reply, {
    now: () => {
      const { state } = service.engine
      const cluster = state.get(clusters.name, clusterId)
      if (!cluster) return notFound(clusters.singular, clusterId)
      const assigned = assignedIn(cluster)
      return assigned ? succeed(assigned) : notAssigned(state, type, id, clusterId)
    },
    earlier: async (past, revision) => {
      const cluster = await past.entry(revision, clusters.name, clusterId)
      if (!cluster || cluster.deleted) return notFound(clusters.singular, clusterId)
      const assigned = assignedIn(cluster)
      if (assigned) return succeed(assigned)
      // biome-ignore lint/correctness/useYield: a read of the past takes time slices, and this one needs none.
      return past.read(revision, type.name, function* (view) {
        return notAssigned(view, type, id, clusterId)
      })
    },
  })
  return found.ok ? succeed(found.value.value) : found
}

function referenceRoutes(app: FastifyInstance, service: Service, type: DeliveredType): void {
  const { delivery, name } = type
  const clusters = service.types.cluster.type
  const url = `/${clusters.name}/:cluster/${delivery.assignedBy}/:id`

  app.get<Params>(url, READ, async (request, reply) => {
    const assigned = await findAssigned(service, request, reply, type)
    if (!assigned.ok) return sendProblem(reply, assigned.problem)
    const { cluster, reference } = assigned.value
    return reply.header('ETag', etagOf(cluster)).send(reference)
  })

  for (const [method, how, options] of [
    ['PUT', 'replace', ASSIGN],
    ['PATCH', 'merge', PATCH],
  ] as const) {
    app.route<Params>({
      method,
      url,
      ...options,
      handler: (request, reply) => {
        const { cluster, id } = request.params
        const command = {
          op: 'assign',
          type: name,
          cluster,
          id,
          reference: request.body === undefined ? {} : request.body,
          how,
          path: '',
        } as const
        return answerWrite({ service, request, reply }, command, ({ after }, { created }) => {
          const entry = clusterIn(service, after, cluster) as Entry
          const headers = { ETag: etagOf(entry) }
          const body = findReference(entry.document, delivery, id)
          if (!created) return { headers, body }
          const Location = `/${clusters.name}/${cluster}/${delivery.assignedBy}/${id}`
          return { status: 201, headers: { ...headers, Location }, body }
        })
      },
    })
  }

  app.delete<Params>(url, DELETE, (request, reply) => {
    const { cluster, id } = request.params
    const command = { op: 'unassign', type: name, cluster, id, path: '' } as const
    return answerWrite({ service, request, reply }, command, ({ after }, { removed }) => ({
      headers: { ETag: etagOf(clusterIn(service, after, cluster) as Entry) },
      body: removed,
    }))
  })
}

function patchesRoutes(app: FastifyInstance, service: Service, type: DeliveredType): void {
  const { types } = service
  const url = `/${types.cluster.type.name}/:cluster/${types.cluster.patches}/:id`

  app.get<Params>(url, READ, async (request, reply) => {
    const assigned = await findAssigned(service, request, reply, type)
    if (!assigned.ok) return sendProblem(reply, assigned.problem)
    const { cluster } = assigned.value
    return reply
      .header('ETag', etagOf(cluster))
      .send(patchesOf(types.cluster, cluster.document, request.params.id))
  })

  for (const [method, merge, options] of [
    ['PUT', false, PUT],
    ['PATCH', true, PATCH],
    ['DELETE', false, DELETE],
  ] as const) {
    app.route<Params>({
      method,
      url,
      ...options,
      handler: (request, reply) => {
        const { cluster, id: component } = request.params
        const values = method === 'DELETE' ? {} : request.body
        const command = { op: 'patch_values', cluster, component, values, merge, path: '' } as const
        return answerWrite({ service, request, reply }, command, ({ after }, { removed }) => {
          const entry = clusterIn(service, after, cluster) as Entry
          const body = method === 'DELETE' ? removed : patchesOf(types.cluster, entry.document, component)
          return { headers: { ETag: etagOf(entry) }, body }
        })
      },
    })
  }
}

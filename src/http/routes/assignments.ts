// Assignments of one cluster: references and patches, changed without replacing the cluster.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ref } from '../../api/component-ref.ts'
import { JSON_TYPE } from '../../api/media-types.ts'
import type { Json } from '../../base/json.ts'
import { notFound, type Result, succeed } from '../../base/problem.ts'
import { withArticle } from '../../base/sentences.ts'
import { notAssigned } from '../../domain/documents/find-document.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import {
  type DeliveredType,
  findReference,
  patchesOf,
  type Reference,
} from '../../domain/types/resource-type.ts'
import type { RegisteredDelivery, RegisteredType } from '../../registry/build-types.ts'
import { exampleOverride, exampleValues } from '../openapi/openapi-example.ts'
import {
  example,
  json,
  LOOKING_BACK,
  mergePatch,
  ok,
  PREVIEWED,
  schemaName,
  WRITING,
  written,
} from '../openapi/openapi-operation.ts'
import { idSchema, valueSchemas } from '../openapi/openapi-types.ts'
import { AT, IF_MATCH, inPath, type Parameter, type Query } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { readAt } from '../request/read-at.ts'
import { answerWrite } from '../request/run-write.ts'
import { etagOf } from '../request/write-answer.ts'
import { type Body, type Route, type RouteDescription, route } from '../route.ts'
import type { Service } from '../service.ts'

type InPath = 'cluster' | 'id'

export function assignmentRoutes(service: Service): Route[] {
  const { delivered, patchable, get } = service.types
  const patched = patchable && (get(patchable.name) as RegisteredDelivery)
  return [
    ...delivered.flatMap((type) => referenceRoutes(service, type)),
    ...(patched ? patchesRoutes(service, patched) : []),
  ]
}

function clusterIn(service: Service, view: View, id: string): Entry | undefined {
  return view.get(service.types.cluster.type.name, id)
}

function inPathOf({ types }: Service, type: RegisteredType): readonly Parameter[] {
  const cluster = types.get(types.cluster.type.name) as RegisteredType
  return [
    inPath('cluster', 'Id of the cluster.', idSchema(cluster)),
    inPath('id', `Id of the ${type.singular}.`, idSchema(type)),
  ]
}

interface Assigned {
  readonly cluster: Entry
  readonly reference: Reference
}

/** A cluster and its reference to a document, now or as of `?at=`. */
async function findAssigned(
  service: Service,
  request: FastifyRequest<{ Params: Readonly<Record<InPath, string>>; Querystring: Query }>,
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

function referenceRoutes(service: Service, type: RegisteredDelivery): Route[] {
  return [
    readReference(service, type),
    assignRoute(service, type),
    overrideRoute(service, type),
    unassignRoute(service, type),
  ]
}

/** What the routes of a reference have in common. */
function ofReference(service: Service, type: RegisteredDelivery) {
  const clusters = service.types.cluster.type.name
  return {
    path: `/${clusters}/{cluster}/${type.delivery.assignedBy}/{id}`,
    tag: clusters,
    schema: ref(`${schemaName(type)}_reference`),
    named: inPathOf(service, type),
  }
}

function readReference(service: Service, type: RegisteredDelivery): Route {
  const { path, tag, schema, named } = ofReference(service, type)
  return route<InPath>({
    method: 'GET',
    path,
    access: 'read',
    tag,
    id: `get_assigned_${type.name}`,
    summary: `How ${withArticle(type.singular)} is assigned.`,
    description:
      'The id, and the fields in which the document differs on this cluster. The ETag is that of the cluster.',
    parameters: [...named, AT],
    answers: { 200: ok('The reference.', schema, ['X-Request-Id', 'ETag']) },
    problems: LOOKING_BACK,
    handler: async (request, reply) => {
      const assigned = await findAssigned(service, request, reply, type)
      if (!assigned.ok) return sendProblem(reply, assigned.problem)
      const { cluster, reference } = assigned.value
      return reply.header('ETag', etagOf(cluster)).send(reference)
    },
  })
}

function assignRoute(service: Service, type: RegisteredDelivery): Route {
  const { path, tag, schema, named } = ofReference(service, type)
  return route<InPath>({
    method: 'PUT',
    path,
    access: 'write',
    tag,
    id: `assign_${type.name}`,
    summary: `Assign ${withArticle(type.singular)}, or replace how it is assigned.`,
    description: `Assigning again replaces the reference, and keeps its place in the list. ${PREVIEWED}`,
    parameters: [...named, IF_MATCH],
    body: {
      content: json(
        ref(`${schemaName(type)}_reference_to_replace`),
        JSON_TYPE,
        example(exampleOverride(type)),
      ),
      isOptional: true,
    },
    answers: written(schema, { created: true }),
    problems: WRITING,
    handler: assignAs(service, type, 'replace'),
  })
}

function overrideRoute(service: Service, type: RegisteredDelivery): Route {
  const { path, tag, schema, named } = ofReference(service, type)
  return route<InPath>({
    method: 'PATCH',
    path,
    access: 'write',
    tag,
    id: `override_${type.name}`,
    summary: `Change how ${withArticle(type.singular)} is assigned.`,
    description: `A merge patch of the reference; null gives an override up, and the definition counts again. ${PREVIEWED}`,
    parameters: [...named, IF_MATCH],
    body: { content: mergePatch(ref(`${schemaName(type)}_reference_to_merge`), exampleOverride(type)) },
    answers: written(schema),
    problems: WRITING,
    handler: assignAs(service, type, 'merge'),
  })
}

function assignAs(
  service: Service,
  { name, delivery }: RegisteredDelivery,
  how: 'replace' | 'merge',
): Route<InPath>['handler'] {
  const clusters = service.types.cluster.type
  return (request, reply) => {
    const { cluster, id } = request.params
    const reference = request.body === undefined ? {} : request.body
    const command = { op: 'assign', type: name, cluster, id, reference, how, path: '' } as const
    return answerWrite({ service, request, reply }, command, ({ after }, { created }) => {
      const entry = clusterIn(service, after, cluster) as Entry
      const headers = { ETag: etagOf(entry) }
      const body = findReference(entry.document, delivery, id)
      if (!created) return { headers, body }
      const Location = `/${clusters.name}/${cluster}/${delivery.assignedBy}/${id}`
      return { status: 201, headers: { ...headers, Location }, body }
    })
  }
}

function unassignRoute(service: Service, type: RegisteredDelivery): Route {
  const { path, tag, schema, named } = ofReference(service, type)
  return route<InPath>({
    method: 'DELETE',
    path,
    access: 'write',
    tag,
    id: `unassign_${type.name}`,
    summary: `Take ${withArticle(type.singular)} from the cluster.`,
    description: `Also removes the cluster's values for it. The last of a type has to be confirmed. ${PREVIEWED}`,
    parameters: [...named, IF_MATCH],
    answers: written(schema),
    problems: WRITING,
    handler: (request, reply) => {
      const { cluster, id } = request.params
      const command = { op: 'unassign', type: type.name, cluster, id, path: '' } as const
      return answerWrite({ service, request, reply }, command, ({ after }, { removed }) => ({
        headers: { ETag: etagOf(clusterIn(service, after, cluster) as Entry) },
        body: removed,
      }))
    },
  })
}

function patchesRoutes(service: Service, type: RegisteredDelivery): Route[] {
  const { types } = service
  const named = inPathOf(service, type)
  const tag = types.cluster.type.name
  const path = `/${tag}/{cluster}/${types.cluster.patches}/{id}`
  const values = exampleValues(types)
  const merged = ref('values_to_merge')
  const write = (
    method: 'PUT' | 'PATCH' | 'DELETE',
    described: Pick<RouteDescription, 'id' | 'summary' | 'description'> & { body?: Body },
  ): Route =>
    route<InPath>({
      ...described,
      method,
      path,
      access: 'write',
      tag,
      parameters: [...named, IF_MATCH],
      answers: written(ref('values')),
      problems: WRITING,
      handler: writePatches(service, method),
    })
  return [
    readPatches(service, type, { path, tag, named }),
    write('PUT', {
      id: 'replace_patches',
      summary: 'Replace the values.',
      description: `Values that are not named are removed. ${PREVIEWED}`,
      body: { content: json(merged, JSON_TYPE, example(values)) },
    }),
    write('PATCH', {
      id: 'change_patches',
      summary: 'Set some values; null removes one.',
      description: `Values that are not named stay as they are. ${PREVIEWED}`,
      body: { content: mergePatch(merged, values) },
    }),
    write('DELETE', {
      id: 'delete_patches',
      summary: 'Remove all the values.',
      description: `The component then has its own values only. ${PREVIEWED}`,
    }),
  ]
}

interface Place {
  readonly path: string
  readonly tag: string
  readonly named: readonly Parameter[]
}

function readPatches(service: Service, type: RegisteredDelivery, { path, tag, named }: Place): Route {
  const { types } = service
  return route<InPath>({
    method: 'GET',
    path,
    access: 'read',
    tag,
    id: 'get_patches',
    summary: "The cluster's values for one of its components.",
    description: 'By variable or Helm path. The ETag is that of the cluster.',
    parameters: [...named, AT],
    answers: { 200: ok('The values.', ref('values'), ['X-Request-Id', 'ETag']) },
    problems: LOOKING_BACK,
    schemas: valueSchemas(types),
    handler: async (request, reply) => {
      const assigned = await findAssigned(service, request, reply, type)
      if (!assigned.ok) return sendProblem(reply, assigned.problem)
      const { cluster } = assigned.value
      return reply
        .header('ETag', etagOf(cluster))
        .send(patchesOf(types.cluster, cluster.document, request.params.id))
    },
  })
}

function writePatches(service: Service, method: 'PUT' | 'PATCH' | 'DELETE'): Route<InPath>['handler'] {
  const { types } = service
  const merge = method === 'PATCH'
  return (request, reply) => {
    const { cluster, id: component } = request.params
    const values = method === 'DELETE' ? {} : (request.body as Json)
    const command = { op: 'patch_values', cluster, component, values, merge, path: '' } as const
    return answerWrite({ service, request, reply }, command, ({ after }, { removed }) => {
      const entry = clusterIn(service, after, cluster) as Entry
      const body = method === 'DELETE' ? removed : patchesOf(types.cluster, entry.document, component)
      return { headers: { ETag: etagOf(entry) }, body }
    })
  }
}

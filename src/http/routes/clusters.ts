// Routes that only clusters have: restore after a deletion, and their inputs, with the origin of each field.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ref } from '../../api/component-ref.ts'
import { EXPLANATION_SCHEMA } from '../../api/explanation-schema.ts'
import type { Explanation } from '../../api/wire-types.ts'
import { notFound, type Result, succeed } from '../../base/problem.ts'
import { type RenderedAnswer, renderInputs } from '../../domain/delivery/render-inputs.ts'
import { servedTo } from '../../domain/delivery/served-view.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import type { DeliveredType } from '../../domain/types/resource-type.ts'
import { explain } from '../../engine/audit.ts'
import type { RegisteredType } from '../../registry/build-types.ts'
import { inspectFor } from '../load/callers.ts'
import {
  LOOKING_BACK,
  NOT_MODIFIED,
  ok,
  PREVIEWED,
  schemaName,
  WRITING,
  written,
} from '../openapi/openapi-operation.ts'
import { idSchema } from '../openapi/openapi-types.ts'
import { bodyOf, sendAnswer } from '../poll/answer.ts'
import { findEndpoint } from '../request/find-endpoint.ts'
import { AT, flag, IF_CHANGED, inPath, type Parameter, type Query } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { momentIn } from '../request/query.ts'
import { readAt } from '../request/read-at.ts'
import { setRevision } from '../request/revision-header.ts'
import { answerWrite } from '../request/run-write.ts'
import { entryAnswer } from '../request/write-answer.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'

export function clusterRoutes(service: Service): Route[] {
  const { types } = service
  const type = types.get(types.cluster.type.name) as RegisteredType
  const cluster = inPath('cluster', 'Id of the cluster.', idSchema(type))
  return [
    // Restore undoes a deletion, so it is there only where documents can be deleted.
    ...(type.methods.has('delete') ? [restoreRoute(service, type, cluster)] : []),
    inputsRoute(service, type, cluster),
  ]
}

function restoreRoute(service: Service, type: RegisteredType, cluster: Parameter): Route {
  const { name } = type
  return route<'cluster'>({
    method: 'POST',
    path: `/${name}/{cluster}/restore`,
    access: 'write',
    tag: name,
    id: `restore_${name}`,
    summary:
      'Bring a deleted cluster back as it was; warnings tell which of its definitions are not what they were.',
    description: `The tombstone gives way to the cluster as it was, with its definitions as they are now. ${PREVIEWED}`,
    parameters: [cluster],
    answers: written(ref(schemaName(type))),
    problems: WRITING,
    handler: (request, reply) => {
      const { cluster: id } = request.params
      const command = { op: 'restore', type: name, id, path: '' } as const
      return answerWrite({ service, request, reply }, command, ({ after }) =>
        entryAnswer(after.get(name, id) as Entry),
      )
    },
  })
}

function inputsRoute(service: Service, { name, singular }: RegisteredType, cluster: Parameter): Route {
  const { engine, types } = service

  function inputsIn(view: View, type: DeliveredType, id: string): Result<RenderedAnswer> {
    const served = servedTo(types, view, id)
    const entry = served.get(name, id)
    return entry ? succeed(renderInputs(served, types, type, entry)) : notFound(singular, id)
  }

  return route<'cluster' | 'endpoint'>({
    method: 'GET',
    path: `/${name}/{cluster}/inputs/{endpoint}`,
    access: 'read',
    tag: name,
    id: `inputs_${name}`,
    summary: 'The inputs that the cluster gets when it polls.',
    description:
      'For people who may read: the same bytes that the cluster gets. With explain, the source, revision and author of each field instead.',
    parameters: [
      cluster,
      inPath('endpoint', 'Last segment of the poll URL.', {
        type: 'string',
        enum: types.delivered.map(({ delivery }) => delivery.endpoint),
      }),
      AT,
      IF_CHANGED,
      flag('explain', 'Answers where every field comes from and who set it.'),
    ],
    answers: {
      200: ok(
        'The very answer to its poll; with explain, where its fields come from.',
        {
          anyOf: [...types.delivered.map((type) => ref(`${schemaName(type)}_inputs`)), ref('explanation')],
        },
        ['X-Request-Id'],
      ),
      304: NOT_MODIFIED,
    },
    problems: LOOKING_BACK,
    schemas: { explanation: EXPLANATION_SCHEMA },
    handler: async (request, reply) => {
      const { cluster: id, endpoint } = request.params
      const type = findEndpoint(types, endpoint)
      if (!type.ok) return sendProblem(reply, type.problem)
      if (request.query.explain === 'true') return sendExplained(service, request, reply, type.value, id)
      const answer = await readAt(service, request, reply, {
        now: () => inputsIn(engine.state, type.value, id),
        earlier: async (past, revision) =>
          inputsIn(await past.cluster(revision, id, type.value), type.value, id),
      })
      if (!answer.ok) return sendProblem(reply, answer.problem)
      const { value, revision } = answer.value
      reply.raw.setHeader('X-Request-Id', request.id)
      sendAnswer(request.raw, reply.hijack().raw, { ...bodyOf(value), revision }, engine.draining)
      return reply
    },
  })
}

/** The same inputs, field by field, with where each comes from and who set it. */
async function sendExplained(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  type: DeliveredType,
  cluster: string,
): Promise<FastifyReply> {
  const { engine, types } = service
  const moment = momentIn(request.query as Query)
  const explained = await inspectFor(service, request, async (past) => {
    const revision = await past.resolve(moment ?? { revision: engine.state.revision }, '?at')
    if (!revision.ok) return revision
    const inputs = await explain(types, past, type, { cluster, revision: revision.value })
    return inputs.ok ? succeed({ revision: revision.value, inputs: inputs.value }) : inputs
  })
  if (!explained.ok) return sendProblem(reply, explained.problem)
  const { revision, inputs } = explained.value
  const body: Explanation = { cluster, endpoint: type.delivery.endpoint, revision, inputs }
  return setRevision(reply, revision).send(body)
}

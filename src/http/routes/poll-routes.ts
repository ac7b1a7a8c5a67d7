// Poll routes in Fastify, with their descriptions: the poll handler answers nearly all polls before they get here.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ref } from '../../api/component-ref.ts'
import { POLL_BASE } from '../../base/urls.ts'
import { MAX_EVERY_S } from '../../domain/status/parse-report.ts'
import type { RegisteredDelivery, RegisteredType, RegisteredTypes } from '../../registry/build-types.ts'
import {
  NOT_MODIFIED,
  type Node,
  ok,
  READING,
  READING_ONE,
  schemaName,
} from '../openapi/openapi-operation.ts'
import { clusterListSchema, inputsSchema } from '../openapi/openapi-types.ts'
import type { PollHandler } from '../poll/poll-handler.ts'
import { dnsInPath } from '../request/dns-parameter.ts'
import { pollParameters } from '../request/list-query.ts'
import { IF_CHANGED, inQuery, type Parameter, WHOLE } from '../request/parameters.ts'
import { noRoute, sendProblem } from '../request/problem-response.ts'
import { type Route, type RouteDescription, route } from '../route.ts'
import type { Service } from '../service.ts'

export function pollRoutes({ types }: Pick<Service, 'types'>, polls: PollHandler): Route[] {
  const handler = (request: FastifyRequest, reply: FastifyReply): void => {
    if (polls(request.raw, reply.raw)) reply.hijack()
    // Fastify accepts more spellings of a path than the poll handler does.
    else sendProblem(reply, noRoute(request))
  }
  const cluster = types.get(types.cluster.type.name) as RegisteredType
  const [limit, offset, ...filters] = pollParameters(cluster)
  const dns = dnsInPath(types)
  const ofType = (type: RegisteredDelivery): RouteDescription & { path: string } => ({
    path: `${POLL_BASE}/{dns}/${type.delivery.endpoint}`,
    tag: 'polls',
    id: `poll_${type.name}`,
    summary: `Inputs of a cluster: ${type.name}; an empty list if it has none or is deleted.`,
    description:
      "Asked by the cluster's Flux Operator. The order of inputs and of their fields is fixed, so that the bytes change only with the inputs. An unknown or purged cluster fails with 404, and Flux keeps what it has.",
    parameters: [dns, IF_CHANGED],
    answers: answers(ref(`${schemaName(type)}_inputs`)),
    problems: READING_ONE,
    schemas: { [`${schemaName(type)}_inputs`]: inputsSchema(types, type) },
  })
  return [
    route({
      method: 'GET',
      path: POLL_BASE,
      access: 'poll',
      tag: 'polls',
      id: 'poll_clusters',
      summary: 'All live clusters, for the provisioning layer.',
      description:
        'For a provider of the Flux Operator that is to see every cluster. Deleted clusters are left out; limit, offset and the filters keep the answer small.',
      parameters: [limit, offset, IF_CHANGED, ...filters],
      answers: answers(clusterListSchema(types)),
      problems: READING,
      handler,
    }),
    route<'dns' | 'endpoint'>({
      ...pollOfAny,
      describedAs: [...types.delivered.map(ofType), ackDescription(types, dns)],
      handler,
    }),
  ]
}

function ackDescription(types: RegisteredTypes, dns: Parameter): RouteDescription & { path: string } {
  const digest = { type: 'string', pattern: '^[0-9a-f]{16}(?::[1-9]/[1-9])?$' }
  return {
    path: `${POLL_BASE}/{dns}/ack`,
    tag: 'polls',
    id: 'acknowledge',
    summary: 'Takes what a cluster has applied.',
    description:
      "Asked by the cluster's Flux Operator as a poll whose URL is the report; other parameters are ignored. A report changes nothing of what is served. An endpoint that is left out has nothing on the cluster.",
    parameters: [
      dns,
      inQuery('v', 'The version of the format.', { ...WHOLE, default: 1 }),
      inQuery('every', 'How often the cluster polls, in seconds.', {
        type: 'integer',
        minimum: 1,
        maximum: MAX_EVERY_S,
      }),
      inQuery(
        'part',
        'Limits the report of a cluster with many components to those whose SHA-256 of the id begins so.',
        { type: 'string', pattern: '^[0-9a-f]{1,2}$' },
      ),
      inQuery('ready', 'A component that is ready, and the digest of its input.', {
        type: 'array',
        items: { type: 'string', pattern: '^.+:[0-9a-f]{16}$' },
      }),
      ...types.delivered.map(({ name, delivery }) =>
        inQuery(delivery.endpoint, `The digest of the answer of ${name} that is applied.`, digest),
      ),
    ],
    answers: {
      200: ok('An empty list.', {
        type: 'object',
        required: ['inputs'],
        properties: { inputs: { type: 'array', maxItems: 0 } },
      }),
    },
    problems: READING_ONE,
  }
}

/** One route for all endpoints; the problem for an unknown one lists those that exist. */
const pollOfAny = {
  method: 'GET',
  path: `${POLL_BASE}/{dns}/{endpoint}`,
  access: 'poll',
  tag: 'polls',
  id: 'poll',
  summary: '',
  description: '',
  answers: {},
  problems: READING_ONE,
} as const

function answers(schema: Node): Record<number, Node> {
  return { 200: ok('Inputs for the Flux Operator.', schema, ['ETag']), 304: NOT_MODIFIED }
}

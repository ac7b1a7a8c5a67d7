// Routes for operators: probes, metrics, and the API's own description.
import { stringify } from 'yaml'
import { JSON_TYPE, YAML_TYPE } from '../../api/media-types.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import type { ReasonOf } from '../../base/problem.ts'
import { json, type Node, ok } from '../openapi/openapi-operation.ts'
import { sendProblem } from '../request/problem-response.ts'
import { type Route, type RouteDescription, route } from '../route.ts'
import type { Service } from '../service.ts'

/** A public route without parameters. */
function open(
  path: string,
  described: Pick<RouteDescription, 'id' | 'summary' | 'description'> & {
    readonly answer: string
    readonly schema: Node
    readonly type?: string
    readonly problems?: readonly number[]
  },
  handler: Route['handler'],
): Route {
  const { answer, schema, type = JSON_TYPE, problems = [], ...rest } = described
  return route({
    ...rest,
    method: 'GET',
    path,
    access: 'open',
    tag: 'operations',
    answers: { 200: { ...ok(answer, schema, ['X-Request-Id']), content: json(schema, type) } },
    problems,
    handler,
  })
}

function probe(properties: Record<string, SchemaObject>): Node {
  return { type: 'object', required: Object.keys(properties), properties }
}

const STATE = {
  mode: { type: 'string', enum: ['read-only', 'crud'] },
  revision: { type: 'integer', minimum: 0 },
}
const READY = {
  oneOf: [
    probe({ status: { const: 'ready' }, ...STATE }),
    probe({
      status: { const: 'degraded' },
      ...STATE,
      age_seconds: { type: 'integer', minimum: 0, description: 'How long ago nothing was missing here.' },
      reason: { type: 'string', description: 'Why the store cannot be followed.' },
    }),
  ],
}

/** The probes, which are also on the admin port, where there is one. */
export function probeRoutes(service: Service): Route[] {
  return [
    open(
      '/health',
      {
        id: 'health',
        summary: 'Whether the process lives.',
        description: 'For liveness probes: it asks for nothing but an answer.',
        answer: 'It does.',
        schema: probe({ status: { const: 'ok' } }),
      },
      (_request, reply) => reply.send({ status: 'ok' }),
    ),
    open(
      '/ready',
      {
        id: 'ready',
        summary: 'Whether it can serve; 503 with the reason when not.',
        description: 'For readiness probes and load balancers.',
        answer: 'It can; degraded while it cannot follow its store, and answers polls with what it has.',
        schema: READY,
        problems: [503],
      },
      answerReady(service),
    ),
  ]
}

function answerReady({ engine, mode, maxStalenessMs }: Service): Route['handler'] {
  return async (_request, reply) => {
    const unready = (reason: ReasonOf<'unavailable'>, message: string) =>
      sendProblem(reply, { code: 'unavailable', reason, message })
    if (engine.draining) return unready('draining', 'the service is stopping')
    const { problem, stalenessMs } = await engine.check()
    if (!engine.isLoaded) return unready('not_loaded', `there is nothing to serve yet: ${problem}`)
    const { revision } = engine.state
    if (problem === undefined) return reply.send({ status: 'ready', mode, revision })
    const age = Math.round(stalenessMs / 1000)
    // Polls need no store; a process in crud mode is of no use without one.
    if (mode === 'crud') return unready('store_unavailable', `the store cannot be used now: ${problem}`)
    if (stalenessMs > maxStalenessMs) return unready('stale', `what is served is ${age} s old: ${problem}`)
    return reply.send({ status: 'degraded', mode, revision, age_seconds: age, reason: problem })
  }
}

export function metricsRoutes({ metrics }: Service): Route[] {
  return [
    open(
      '/metrics',
      {
        id: 'metrics',
        summary: 'Metrics for Prometheus.',
        description: 'In the text format of Prometheus; their names are in the documentation.',
        answer: 'Metrics.',
        schema: { type: 'string' },
        type: 'text/plain',
      },
      async (_request, reply) => reply.type(metrics.contentType).send(await metrics.render()),
    ),
  ]
}

/** The description includes these routes, so it is built after all routes are. */
export function descriptionRoutes(openapi: () => Node): Route[] {
  // Serialised on the first request, which most processes never get, and then reused: the routes are public.
  let asJson: Buffer | undefined
  let asYaml: Buffer | undefined
  const described = {
    description: 'Describes the routes that this process serves, with those of its own types.',
    answer: 'OpenAPI 3.1.',
    schema: { type: 'object' },
  }
  return [
    open(
      '/openapi.json',
      { ...described, id: 'openapi_json', summary: 'This description as JSON.' },
      (_request, reply) => {
        asJson ??= Buffer.from(JSON.stringify(openapi()))
        return reply.type(`${JSON_TYPE}; charset=utf-8`).send(asJson)
      },
    ),
    open(
      '/openapi.yaml',
      { ...described, id: 'openapi_yaml', summary: 'This description as YAML.', type: YAML_TYPE },
      (_request, reply) => {
        // Many YAML parsers refuse a file with hundreds of aliases.
        asYaml ??= Buffer.from(stringify(openapi(), { aliasDuplicateObjects: false }))
        return reply.type(YAML_TYPE).send(asYaml)
      },
    ),
  ]
}

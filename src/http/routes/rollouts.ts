// Rollouts: listed, watched, and what people do to them. They are started by writes with `rollout`.
import { ref } from '../../api/component-ref.ts'
import { PAGES } from '../../api/limits.ts'
import { JSON_TYPE } from '../../api/media-types.ts'
import {
  CHECK_REQUIRED,
  ROLLOUT_ACTIONS,
  ROLLOUT_SCHEMAS,
  type ShownRollout,
} from '../../api/rollout-schema.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import { invalid, notFound, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import type { Command, RolloutAction } from '../../domain/commands/command.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import { asRollout, ROLLOUT_STATES, ROLLOUTS } from '../../domain/rollouts/rollout.ts'
import { buildChecker } from '../../registry/validator.ts'
import { identityOf } from '../auth/identity.ts'
import {
  json,
  ok,
  PREVIEWED,
  READING,
  READING_ONE,
  WRITING,
  WRITTEN_HEADERS,
} from '../openapi/openapi-operation.ts'
import { pageIn, sendPageHeaders } from '../request/list-query.ts'
import { inPath, inQuery, pageOf } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { answerWrite } from '../request/run-write.ts'
import { describeRollout, type Seen, storedRollout } from '../rollouts/describe-rollout.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'
import { listFor } from '../status/list-for.ts'

const ID = inPath('id', 'Its id.', { type: 'string', example: 'r42' })
const PAGE = pageOf(PAGES)
const STATE = inQuery('state', 'Only rollouts in this state.', { type: 'string', enum: ROLLOUT_STATES })

/** What people read of rollouts, in both modes. */
export function rolloutRoutes(service: Service): Route[] {
  return [listRoute(service), readRoute(service)]
}

/** What people do to them. */
export function rolloutActionRoutes(service: Service): Route[] {
  return (Object.keys(ROLLOUT_ACTIONS) as (keyof typeof ROLLOUT_ACTIONS)[]).map((action) =>
    actionRoute(service, action),
  )
}

function seenBy({ types, now }: Service, fleet: Seen['fleet'], view: View): Seen {
  return { types, fleet, view, now: now() }
}

function listRoute(service: Service): Route {
  return route({
    method: 'GET',
    path: '/rollouts',
    access: 'read',
    tag: 'rollouts',
    id: 'list_rollouts',
    summary: 'Rollouts, the newest first.',
    description: 'Those that have ended are listed too; state chooses.',
    parameters: [...PAGE, STATE],
    answers: {
      200: ok('Rollouts.', { type: 'array', items: ref('rollout') }, [
        'X-Request-Id',
        'X-Total-Count',
        'Link',
      ]),
    },
    problems: READING,
    schemas: ROLLOUT_SCHEMAS,
    handler: async (request, reply) => {
      const { state } = request.query
      const page = pageIn(request.query, PAGE[0])
      const listed = await listFor(service, request, function* (fleet, view): Steps<
        [ShownRollout[], number]
      > {
        const all: Entry[] = []
        for (const entry of view.all(ROLLOUTS)) {
          yield
          if (state === undefined || asRollout(entry).state === state) all.push(entry)
        }
        const newest = all.sort((a, b) => (asRollout(a).started_at < asRollout(b).started_at ? 1 : -1))
        const described: ShownRollout[] = []
        for (const entry of newest.slice(page.offset, page.offset + page.limit))
          described.push(yield* describeRollout(seenBy(service, fleet, view), entry))
        return [described, all.length]
      })
      if (!listed.ok) return sendProblem(reply, listed.problem)
      const [described, total] = listed.value
      sendPageHeaders(reply, request.url, page, total)
      return reply.header('Cache-Control', 'no-store').send(described)
    },
  })
}

function readRoute(service: Service): Route {
  return route<'id'>({
    method: 'GET',
    path: '/rollouts/{id}',
    access: 'read',
    tag: 'rollouts',
    id: 'get_rollout',
    summary: 'One rollout: how far each wave is, and why it does not go on.',
    description:
      'Counts are of the present. Evidence about other answers than those of the rollout counts for nothing.',
    parameters: [ID],
    answers: { 200: ok('The rollout.', ref('rollout'), ['X-Request-Id']) },
    problems: READING_ONE,
    handler: async (request, reply) => {
      const { id } = request.params
      const found = await listFor(service, request, function* (fleet, view): Steps<ShownRollout | undefined> {
        const entry = view.get(ROLLOUTS, id)
        return entry && (yield* describeRollout(seenBy(service, fleet, view), entry))
      })
      if (!found.ok) return sendProblem(reply, found.problem)
      if (!found.value) return sendProblem(reply, notFound('rollout', id).problem)
      return reply.header('Cache-Control', 'no-store').send(found.value)
    },
  })
}

const SUMMARIES: Readonly<Record<keyof typeof ROLLOUT_ACTIONS, readonly [string, string]>> = {
  pause: ['Stop a rollout where it is.', 'Clusters that are served the change stay so.'],
  resume: [
    'Let a paused rollout go on.',
    'It pauses again where failures are still more than may be: retry or skip.',
  ],
  retry: [
    'Look at failed and absent clusters anew.',
    'Failures from before do not count any more, and the rollout goes on.',
  ],
  abort: [
    'Take a rollout back.',
    'Every cluster is served what it would be without it, from its next poll on.',
  ],
  approve: ['Approve a wave that waits for it.', 'Approvals are bound to the plan: an amendment voids them.'],
  check: [
    'Answer a check of a wave.',
    'For systems outside of the service: an answer of no pauses the rollout, or aborts it. It is bound to the plan: an amendment voids it.',
  ],
  skip: [
    'Leave a wave or clusters out.',
    'A wave that is not open yet keeps the base until the finish; of one that is, the gates no longer count. Clusters that are left out return to the base.',
  ],
}

function actionRoute(service: Service, kind: keyof typeof ROLLOUT_ACTIONS): Route {
  const required = kind === 'check' ? CHECK_REQUIRED : []
  const schema = { type: 'object', required, properties: ROLLOUT_ACTIONS[kind], additionalProperties: false }
  const check = buildChecker(schema)
  const [summary, description] = SUMMARIES[kind]
  return route<'id'>({
    method: 'POST',
    path: `/rollouts/{id}/${kind}`,
    access: 'write',
    tag: 'rollouts',
    id: `${kind}_rollout`,
    summary,
    description: `${description} ${PREVIEWED}`,
    parameters: [ID],
    body: { content: json(schema, JSON_TYPE), isOptional: required.length === 0 },
    answers: {
      200: ok(
        'The rollout; a preview with dry_run.',
        { anyOf: [ref('rollout'), ref('preview')] },
        WRITTEN_HEADERS,
      ),
    },
    problems: WRITING,
    handler: (request, reply) => {
      const body = request.body ?? {}
      const details = isObject(body) ? check(body) : [{ path: '', message: 'must be an object' }]
      if (details.length > 0) return sendProblem(reply, invalid(details).problem)
      const action = parseAction(kind, body as JsonObject)
      if (!action.ok) return sendProblem(reply, action.problem)
      const { id } = request.params
      const by = identityOf(request).name
      const at = service.now().toISOString()
      const command: Command = { op: 'act_on_rollout', id, action: action.value, by, at, path: '' }
      return answerWrite({ service, request, reply }, command, ({ after }) => ({
        body: storedRollout(asRollout(after.get(ROLLOUTS, id) as Entry)),
      }))
    },
  })
}

function parseAction(kind: keyof typeof ROLLOUT_ACTIONS, body: JsonObject): Result<RolloutAction> {
  if (kind !== 'skip') return succeed({ ...body, kind } as RolloutAction)
  const { wave, clusters } = body
  if ((wave === undefined) === (clusters === undefined))
    return invalid([{ path: '', message: 'needs one of wave and clusters: what to leave out' }])
  return succeed(
    typeof wave === 'string' ? { kind, wave } : { kind, clusters: clusters as readonly string[] },
  )
}

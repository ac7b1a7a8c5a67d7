// What people do to rollouts.
import { ref } from '../../api/component-ref.ts'
import { BATCH_BODY_LIMIT } from '../../api/limits.ts'
import { JSON_TYPE } from '../../api/media-types.ts'
import { AMEND_SCHEMA, CHECK_REQUIRED, ROLLOUT_ACTIONS } from '../../api/rollout-schema.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { invalid, notFound, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import type { Command, FinishRollout, RolloutAction } from '../../domain/commands/command.ts'
import { parseBatch } from '../../domain/commands/parse-batch.ts'
import type { Entry } from '../../domain/documents/view.ts'
import { asRollout, ROLLOUTS } from '../../domain/rollouts/rollout.ts'
import { stagingOf } from '../../domain/rollouts/staging.ts'
import { findAbsent } from '../../engine/rollouts/tally-rollout.ts'
import type { RolloutOptions, Written } from '../../engine/write-options.ts'
import { BATCH_CHECKS } from '../../registry/batch-checks.ts'
import { buildChecker } from '../../registry/validator.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import { identityOf } from '../auth/identity.ts'
import {
  example,
  json,
  type Node,
  ok,
  PREVIEWED,
  WRITING,
  WRITTEN_HEADERS,
} from '../openapi/openapi-operation.ts'
import { requested } from '../openapi/openapi-schema.ts'
import { inPath } from '../request/parameters.ts'
import { operationsOf, parseRollout } from '../request/parse-rollout.ts'
import { sendProblem } from '../request/problem-response.ts'
import { answerCommands, answerWrite } from '../request/run-write.ts'
import type { WriteAnswer } from '../request/write-answer.ts'
import { storedRollout } from '../rollouts/describe-rollout.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'
import { listFor } from '../status/list-for.ts'

const ID = inPath('id', 'Id of the rollout.', { type: 'string', example: 'r42' })

type Action = keyof typeof ROLLOUT_ACTIONS

export function rolloutActionRoutes(service: Service): Route[] {
  return [
    ...(Object.keys(ROLLOUT_ACTIONS) as Action[]).map((action) => actionRoute(service, action)),
    amendRoute(service),
  ]
}

const SUMMARIES: Readonly<Record<Action, readonly [string, string]>> = {
  pause: ['Stop a rollout where it is.', 'Clusters that are served the change stay so.'],
  resume: [
    'Let a paused rollout go on.',
    'It pauses again where failures are still more than may be: retry or skip.',
  ],
  retry: [
    'Look at failed and absent clusters again.',
    'Failures from before do not count any more, and the rollout goes on.',
  ],
  abort: [
    'Take a rollout back.',
    'Every cluster is served what it would be without it, from its next poll on. Nothing has to be confirmed.',
  ],
  finish: [
    'Write the change into the documents now.',
    'Every cluster gets it at its next poll, those of waves that are not open too: while there are such waves, it has to be confirmed with confirm=finish.',
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

const EXAMPLES: Readonly<Record<Action, JsonObject>> = {
  pause: { remark: 'the dashboards look odd' },
  resume: {},
  retry: {},
  abort: { remark: 'the chart is broken' },
  finish: { remark: 'it is urgent' },
  approve: { remark: 'looked at the canaries' },
  check: { wave: 'canary', name: 'smoke', ok: true },
  skip: { wave: 'canary' },
}

const ANSWERS: Readonly<Record<number, Node>> = {
  200: ok(
    'The rollout; a preview with dry_run.',
    { anyOf: [ref('rollout'), ref('preview')] },
    WRITTEN_HEADERS,
  ),
}

function actionRoute(service: Service, kind: Action): Route {
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
    body: { content: json(schema, JSON_TYPE, example(EXAMPLES[kind])), isOptional: required.length === 0 },
    answers: ANSWERS,
    problems: WRITING,
    handler: async (request, reply) => {
      const body = request.body ?? {}
      const details = isObject(body) ? check(body) : [{ path: '', message: 'must be an object' }]
      if (details.length > 0) return sendProblem(reply, invalid(details).problem)
      const { id } = request.params
      const given = { id, by: identityOf(request).name, at: service.now().toISOString(), path: '' }
      const command = await commandFor(service, request, kind, { ...given, body: body as JsonObject })
      if (!command.ok) return sendProblem(reply, command.problem)
      return answerWrite({ service, request, reply }, command.value, shownAs(id), {
        ownRollout: id,
        // Taking a change back has to be possible always; its removals were confirmed when it was started.
        confirmRemovals: true,
      })
    },
  })
}

function shownAs(id: string): (written: Written) => WriteAnswer {
  return ({ after }) => ({ body: storedRollout(asRollout(after.get(ROLLOUTS, id) as Entry)) })
}

interface Given {
  readonly id: string
  readonly by: string
  readonly at: string
  readonly path: string
  readonly body: JsonObject
}

async function commandFor(
  service: Service,
  request: Parameters<typeof listFor>[1],
  kind: Action,
  { body, ...given }: Given,
): Promise<Result<Command>> {
  if (kind === 'finish') return finishCommand(service, request, { body, ...given })
  const { role } = identityOf(request).grant
  const action = parseAction(kind, kind === 'approve' ? { ...body, role } : body)
  return action.ok ? succeed({ ...given, op: 'act_on_rollout', action: action.value }) : action
}

async function finishCommand(
  service: Service,
  request: Parameters<typeof listFor>[1],
  { body, ...given }: Given,
): Promise<Result<FinishRollout>> {
  const { types } = service
  const absent = await listFor(service, request, function* (fleet, view): Steps<
    Pick<FinishRollout, 'absent' | 'stragglers'>
  > {
    const active = stagingOf(types, view).active.find(({ rollout }) => rollout.id === given.id)
    return active ? yield* findAbsent({ types, fleet, view }, active) : { absent: [], stragglers: [] }
  })
  if (!absent.ok) return absent
  const { remark } = body
  return succeed({
    ...given,
    ...absent.value,
    op: 'finish_rollout',
    ...(typeof remark === 'string' && { remark }),
  })
}

function parseAction(kind: Exclude<Action, 'finish'>, body: JsonObject): Result<RolloutAction> {
  if (kind !== 'skip') return succeed({ ...body, kind } as RolloutAction)
  const { wave, clusters } = body
  if ((wave === undefined) === (clusters === undefined))
    return invalid([{ path: '', message: 'needs one of wave and clusters: what to leave out' }])
  return succeed(
    typeof wave === 'string' ? { kind, wave } : { kind, clusters: clusters as readonly string[] },
  )
}

const AMEND_CHECKS = { ...BATCH_CHECKS, envelope: buildChecker(AMEND_SCHEMA) }

function amendRoute(service: Service): Route {
  const { types } = service
  const { properties = {}, ...rest } = requested(AMEND_SCHEMA)
  const operations = { ...properties.operations, items: ref('batch_operation') }
  return route<'id'>({
    method: 'POST',
    path: '/rollouts/{id}/amend',
    access: 'write',
    isFleet: true,
    tag: 'rollouts',
    id: 'amend_rollout',
    summary: 'Give a rollout another change in place of its own.',
    description: `The operations are the whole change again, from the documents without it. Clusters of open waves get it at once, and their waves have to prove it; with restart, all waves start again. Approvals are void. ${PREVIEWED}`,
    parameters: [ID],
    body: {
      content: json(
        { ...rest, properties: { ...properties, operations } },
        JSON_TYPE,
        example({
          operations: [
            {
              op: 'patch_values',
              component: 'podinfo',
              values: { replicaCount: '2' },
              selector: 'environment=dev',
            },
          ],
          message: 'two are enough',
          restart: true,
        }),
      ),
      limit: BATCH_BODY_LIMIT,
    },
    answers: ANSWERS,
    problems: WRITING,
    handler: async (request, reply) => {
      const { id } = request.params
      const commands = await runTimeSliced(parseBatch(types, AMEND_CHECKS, request.body as Json))
      if (!commands.ok) return sendProblem(reply, commands.problem)
      const rollout = amendmentOf(service, id, request.body as JsonObject)
      if (!rollout.ok) return sendProblem(reply, rollout.problem)
      return answerCommands(
        { service, request, reply },
        commands.value,
        [ROLLOUTS, 'amend_rollout'],
        shownAs(id),
        {
          rollout: rollout.value,
        },
      )
    },
  })
}

/** The waves of an amendment are those of the rollout, where it names no others; with all of its other fields. */
function amendmentOf(service: Service, id: string, body: JsonObject): Result<RolloutOptions> {
  const { operations: _, restart, strategy, waves, on_failure, bake_s, stragglers, unmatched } = body
  const given = { strategy, waves, on_failure, bake_s, stragglers, unmatched }
  const asked = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  const operations = operationsOf(body)
  const found = service.engine.state.get(ROLLOUTS, id)
  if (!found) return notFound('rollout', id)
  const { strategy: name, spec } = asRollout(found)
  const amends = { id, restart: restart === true }
  const hasWaves = strategy !== undefined || waves !== undefined
  const sent = (hasWaves ? asked : { ...spec, ...asked }) as JsonObject
  const options = parseRollout(service, sent, { path: '', operations })
  if (!options.ok || hasWaves) return options.ok ? succeed({ ...options.value, amends }) : options
  const kept = { ...options.value, strategy: name, path: undefined, amends }
  return succeed({ ...kept, ...(!amends.restart && { keeps: id }) })
}

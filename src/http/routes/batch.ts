// Writes of many documents at once: batches, and the ways back.

import { REVERT_SCHEMA, ROLLBACK_SCHEMA } from '../../api/batch-schema.ts'
import { ref } from '../../api/component-ref.ts'
import { BATCH_BODY_LIMIT } from '../../api/limits.ts'
import { JSON_TYPE } from '../../api/media-types.ts'
import { WRITTEN_SCHEMA } from '../../api/write-schema.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { type Detail, invalid, type Result, succeed } from '../../base/problem.ts'
import { parseSelector } from '../../domain/access/selector.ts'
import type { Rollback } from '../../domain/commands/command.ts'
import { MAX_OPERATIONS, parseBatch } from '../../domain/commands/parse-batch.ts'
import { BATCH_CHECKS } from '../../registry/batch-checks.ts'
import type { RegisteredTypes } from '../../registry/build-types.ts'
import { buildChecker } from '../../registry/validator.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import { batchExamples, batchSchemas, rollbackSchema } from '../openapi/openapi-batch.ts'
import { example, GOING_BACK, json, ok, PREVIEWED, WRITTEN_HEADERS } from '../openapi/openapi-operation.ts'
import { jsonPatchSchemas, requested } from '../openapi/openapi-schema.ts'
import { valueSchemas } from '../openapi/openapi-types.ts'
import { inPath, REVISION } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { parseRevision } from '../request/query.ts'
import { answerFleetWrite } from '../request/run-write.ts'
import { readTimeAt } from '../request/time-field.ts'
import { batchAuthor } from '../request/write-request.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'

const checkRevert = buildChecker(REVERT_SCHEMA)
const checkRollback = buildChecker(ROLLBACK_SCHEMA)

export function batchRoutes(service: Service): Route[] {
  return [batchRoute(service), rollbackRoute(service), revertRoute(service)]
}

/** What the routes of fleet writes have in common. */
const FLEET_WRITE = {
  method: 'POST',
  access: 'write',
  isFleet: true,
  tag: 'revisions',
  answers: {
    200: ok(
      'The result; a preview with dry_run.',
      { anyOf: [ref('written'), ref('preview')] },
      WRITTEN_HEADERS,
    ),
  },
  problems: GOING_BACK,
  schemas: { written: WRITTEN_SCHEMA },
} as const

function batchRoute(service: Service): Route {
  const { types } = service
  return route({
    ...FLEET_WRITE,
    path: '/batch',
    id: 'batch',
    summary: 'Many changes as one revision, all of them or none.',
    description: `At most ${MAX_OPERATIONS.toLocaleString('en')} operations and ${BATCH_BODY_LIMIT / 1024 / 1024} MiB. Each sees what those before it did; when one fails, nothing is done, and details point at it. ${PREVIEWED}`,
    body: { content: json(ref('batch'), JSON_TYPE, batchExamples(types)), limit: BATCH_BODY_LIMIT },
    schemas: {
      ...FLEET_WRITE.schemas,
      ...jsonPatchSchemas(),
      ...valueSchemas(types),
      ...batchSchemas(types),
    },
    handler: async (request, reply) => {
      const commands = await runTimeSliced(
        parseBatch(types, BATCH_CHECKS, request.body as Json, batchAuthor(service, request)),
      )
      if (!commands.ok) return sendProblem(reply, commands.problem)
      return answerFleetWrite({ service, request, reply }, commands.value, 'batch')
    },
  })
}

function rollbackRoute(service: Service): Route {
  const { types } = service
  return route({
    ...FLEET_WRITE,
    path: '/rollback',
    id: 'rollback',
    summary: 'Make the fleet, or a part of it, as it was.',
    description: `Makes one new revision; history stays as it is. selector, types and ids keep it to a part of the fleet. ${PREVIEWED}`,
    body: {
      content: json(
        rollbackSchema(types),
        JSON_TYPE,
        example({ to_revision: 1, message: 'back to the start' }),
      ),
    },
    handler: (request, reply) => {
      const parsed = parseRollback(types, request.body as Json)
      if (!parsed.ok) return sendProblem(reply, parsed.problem)
      return answerFleetWrite({ service, request, reply }, [parsed.value], 'rollback')
    },
  })
}

function revertRoute(service: Service): Route {
  return route<'revision'>({
    ...FLEET_WRITE,
    path: '/revisions/{revision}/revert',
    id: 'revert_revision',
    summary: 'Undo what a revision did, unless it was built on since.',
    description: `Makes one new revision that undoes that one. A document that was changed again since fails with 409. ${PREVIEWED}`,
    parameters: [inPath('revision', 'Its number.', { ...REVISION, example: 1 })],
    body: {
      content: json(requested(REVERT_SCHEMA), JSON_TYPE, example({ message: 'it broke the ingress' })),
      isOptional: true,
    },
    handler: (request, reply) => {
      const details = request.body === undefined ? [] : checkRevert(request.body)
      if (details.length > 0) return sendProblem(reply, invalid(details).problem)
      const revision = parseRevision(request.params.revision)
      if (!revision.ok) return sendProblem(reply, revision.problem)
      const command = { op: 'revert', revision: revision.value, path: '' } as const
      return answerFleetWrite({ service, request, reply }, [command], 'revert')
    },
  })
}

function parseRollback(types: RegisteredTypes, body: Json): Result<Rollback> {
  const details = isObject(body) ? checkRollback(body) : [{ path: '', message: 'must be an object' }]
  if (details.length > 0) return invalid(details)
  const request = body as JsonObject
  const { to_revision, to_time, selector, types: names, ids, allow_empty } = request
  const clusters = types.cluster.type.name
  if ((to_revision === undefined) === (to_time === undefined)) {
    return invalid([{ path: '', message: 'needs one of to_revision and to_time: when to go back to' }])
  }
  const chosen = names as readonly string[] | undefined
  const wrong: Detail[] = (chosen ?? []).flatMap((name, i) => {
    const known = types.all.map((type) => type.name).join(', ')
    return types.get(name) ? [] : [{ path: `/types/${i}`, message: `is an unknown type: known are ${known}` }]
  })
  if (selector !== undefined && chosen && (chosen.length !== 1 || chosen[0] !== clusters)) {
    wrong.push({ path: '/types', message: `does not go with selector, which chooses ${clusters}` })
  }
  const parsed = selector === undefined ? undefined : parseSelector(types, String(selector))
  if (parsed && !parsed.ok) wrong.push({ path: '/selector', message: parsed.message })
  const time = to_time === undefined ? undefined : readTimeAt(String(to_time), '/to_time', wrong)
  if (wrong.length > 0) return invalid(wrong)
  return succeed({
    op: 'rollback',
    path: '',
    to: time === undefined ? { revision: to_revision as number } : { time },
    ...(parsed?.ok && { selector: parsed.selector.text }),
    ...(chosen && { types: chosen }),
    ...(ids !== undefined && { ids: ids as readonly string[] }),
    allowEmpty: allow_empty === true,
  })
}

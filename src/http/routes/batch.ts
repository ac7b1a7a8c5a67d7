// Writes of many documents at once: batches, and the ways back.

import type { FastifyInstance, FastifyReply } from 'fastify'
import { REVERT_SCHEMA, ROLLBACK_SCHEMA } from '../../api/batch-schema.ts'
import { BATCH_BODY_LIMIT } from '../../api/limits.ts'
import { JSON_TYPE } from '../../api/media-types.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { type Detail, invalid, type Result, succeed } from '../../base/problem.ts'
import { parseSelector } from '../../domain/access/selector.ts'
import type { Rollback } from '../../domain/commands/command.ts'
import { parseBatch } from '../../domain/commands/parse-batch.ts'
import { BATCH_CHECKS } from '../../registry/batch-checks.ts'
import type { RegisteredTypes } from '../../registry/build-types.ts'
import { buildChecker } from '../../registry/validator.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import { accepts } from '../request/body.ts'
import { sendProblem } from '../request/problem-response.ts'
import { parseRevision, parseTimeAt } from '../request/query.ts'
import { answerFleetWrite } from '../request/run-write.ts'
import type { Service } from '../service.ts'

const CONFIG = { access: 'write', fleet: true } as const
const BATCH = { config: CONFIG, bodyLimit: BATCH_BODY_LIMIT, preHandler: accepts([JSON_TYPE]) } as const
const ROLLBACK = { config: CONFIG, preHandler: accepts([JSON_TYPE]) } as const
const REVERT = { config: CONFIG, preHandler: accepts([JSON_TYPE], { empty: true }) } as const

const checkRevert = buildChecker(REVERT_SCHEMA)
const checkRollback = buildChecker(ROLLBACK_SCHEMA)

export function batchRoutes(app: FastifyInstance, service: Service): void {
  const { types } = service

  app.post<{ Body: Json }>('/batch', BATCH, async (request, reply): Promise<FastifyReply> => {
    const commands = await runTimeSliced(parseBatch(types, BATCH_CHECKS, request.body))
    if (!commands.ok) return sendProblem(reply, commands.problem)
    return answerFleetWrite({ service, request, reply }, commands.value, 'batch')
  })

  app.post<{ Body: Json }>('/rollback', ROLLBACK, (request, reply) => {
    const parsed = parseRollback(types, request.body)
    if (!parsed.ok) return sendProblem(reply, parsed.problem)
    return answerFleetWrite({ service, request, reply }, [parsed.value], 'rollback')
  })

  app.post<{ Params: { revision: string }; Body: Json | undefined }>(
    '/revisions/:revision/revert',
    REVERT,
    (request, reply): FastifyReply | Promise<FastifyReply> => {
      const details = request.body === undefined ? [] : checkRevert(request.body)
      if (details.length > 0) return sendProblem(reply, invalid(details).problem)
      const revision = parseRevision(request.params.revision)
      if (!revision.ok) return sendProblem(reply, revision.problem)
      return answerFleetWrite(
        { service, request, reply },
        [{ op: 'revert', revision: revision.value, path: '' }],
        'revert',
      )
    },
  )
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
  const time = to_time === undefined ? undefined : parseTimeAt(String(to_time), '/to_time', wrong)
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

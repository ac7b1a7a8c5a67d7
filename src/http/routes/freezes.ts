// Freezes as they stand: whether they are on now, until when, or when next. Their documents are like all others.
import { ref } from '../../api/component-ref.ts'
import { FREEZE_STATUS_SCHEMA, type FreezeStatus } from '../../api/freeze-schema.ts'
import { notFound } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import type { View } from '../../domain/documents/view.ts'
import { freezePhase, freezesIn, freezeType } from '../../domain/rollouts/freeze.ts'
import type { Types } from '../../domain/types/resource-type.ts'
import type { RegisteredType } from '../../registry/build-types.ts'
import { ok, READING_ONE } from '../openapi/openapi-operation.ts'
import { idSchema } from '../openapi/openapi-types.ts'
import { inPath } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'
import { listFor } from '../status/list-for.ts'

export function freezeRoutes(service: Service): Route[] {
  const type = freezeType(service.types) as RegisteredType | undefined
  return type ? [statusRoute(service, type)] : []
}

function statusRoute(service: Service, { name, singular, ...type }: RegisteredType): Route {
  const { types, now } = service
  return route<'id'>({
    method: 'GET',
    path: `/${name}/{id}/status`,
    access: 'read',
    tag: 'rollouts',
    id: 'get_freeze_status',
    summary: 'Whether a freeze is on now, until when, or when next.',
    description:
      'By its dates and by its schedule in its time zone, with daylight saving. Of this freeze alone.',
    parameters: [inPath('id', 'Its name.', idSchema({ name, singular, ...type }))],
    answers: { 200: ok('The freeze as it stands.', ref('freeze_status'), ['X-Request-Id']) },
    problems: READING_ONE,
    schemas: { freeze_status: FREEZE_STATUS_SCHEMA },
    handler: async (request, reply) => {
      const { id } = request.params
      const found = await listFor(service, request, (_, view) => statusOf(types, view, id, now().getTime()))
      if (!found.ok) return sendProblem(reply, found.problem)
      if (!found.value) return sendProblem(reply, notFound(singular, id).problem)
      return reply.header('Cache-Control', 'no-store').send(found.value)
    },
  })
}

function* statusOf(types: Types, view: View, id: string, now: number): Steps<FreezeStatus | undefined> {
  const known = freezesIn(types, view).find(({ freeze }) => freeze.id === id)
  if (!known) return undefined
  const { isOn, until } = freezePhase(known.freeze, now)
  let clusters = 0
  for (const { document } of view.all(types.cluster.type.name)) {
    yield
    if (known.covers(document)) clusters++
  }
  const moment = until === undefined ? null : new Date(until).toISOString()
  return { id, open: !isOn, next_open: isOn ? moment : null, next_freeze: isOn ? null : moment, clusters }
}

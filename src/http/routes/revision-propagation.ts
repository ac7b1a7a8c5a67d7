// How far one revision has come in the fleet.
import { ref } from '../../api/component-ref.ts'
import { PROPAGATION_SCHEMAS } from '../../api/propagation-schema.ts'
import { LOOKING_BACK, ok } from '../openapi/openapi-operation.ts'
import { inPath, REVISION, SELECTOR } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { selectedIn } from '../request/selected-in.ts'
import { withRevision } from '../request/with-revision.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'
import { followRevision } from '../status/follow-revision.ts'

export function propagationRoutes(service: Service): Route[] {
  const { engine, now } = service
  return [
    route<'revision'>({
      method: 'GET',
      path: '/revisions/{revision}/propagation',
      access: 'read',
      tag: 'status',
      id: 'revision_propagation',
      summary:
        'How many clusters that a revision changed something for were served it, applied it, and are healthy.',
      description:
        'By what is known now: served is at least applied, and applied at least healthy. A cluster that was deleted since does not count, nor one that the selector does not choose now.',
      parameters: [inPath('revision', 'Its number.', { ...REVISION, example: 1 }), SELECTOR],
      answers: { 200: ok('How far it has come.', ref('propagation'), ['X-Request-Id']) },
      problems: LOOKING_BACK,
      schemas: PROPAGATION_SCHEMAS,
      handler: async (request, reply) => {
        const { revision } = request.params
        const selected = selectedIn(service, request.query)
        if (!selected.ok) return sendProblem(reply, selected.problem)
        const found = await withRevision(service, request, revision, { changeLimit: 1 }, (past, recorded) =>
          past.compare(recorded.revision, (comparison) =>
            followRevision(
              engine.fleet.fleet,
              engine.state,
              comparison,
              recorded,
              selected.value,
              now().getTime(),
            ),
          ),
        )
        if (!found.ok) return sendProblem(reply, found.problem)
        return reply.header('Cache-Control', 'no-store').send(found.value)
      },
    }),
  ]
}

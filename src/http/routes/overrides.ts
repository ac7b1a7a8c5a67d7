// What the clusters set themselves: every override and patch of the fleet.
import { ref } from '../../api/component-ref.ts'
import { OVERRIDE_PAGES } from '../../api/limits.ts'
import { OWN_VALUE_SCHEMA } from '../../api/own-values-schema.ts'
import { type Result, succeed } from '../../base/problem.ts'
import { OWN_KINDS, type OwnKind } from '../../domain/delivery/own-values.ts'
import { inspectFor } from '../load/callers.ts'
import { ok, READING } from '../openapi/openapi-operation.ts'
import { pageIn, sendPageHeaders } from '../request/list-query.ts'
import { flag, inQuery, pageOf, type Query, SELECTOR } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { setRevision } from '../request/revision-header.ts'
import { selectedIn } from '../request/selected-in.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'
import { listFor } from '../status/list-for.ts'
import { explainLines, listOverrides, type OverridesQuery, shownLine } from '../status/list-overrides.ts'

const PAGE = pageOf(OVERRIDE_PAGES)
const [LIMIT] = PAGE

export function overrideRoutes(service: Service): Route[] {
  const { types } = service
  const names = types.delivered.map(({ name }) => name)
  return [
    route({
      method: 'GET',
      path: '/overrides',
      access: 'read',
      tag: 'status',
      id: 'list_overrides',
      summary:
        'Every override and patch: values that clusters set themselves instead of taking them from the catalog.',
      description:
        'Ordered by cluster, a page at a time. An override that says the same as the catalog is redundant. With explain, each with the revision that set it.',
      parameters: [
        ...PAGE,
        SELECTOR,
        inQuery('type', 'Only of definitions of this type.', { type: 'string', enum: names }),
        inQuery('id', 'Only of definitions with this id.'),
        inQuery('kind', 'Only overrides, or only patches.', { type: 'string', enum: OWN_KINDS }),
        flag('redundant', 'Only those that say the same as the catalog, or only those that do not.'),
        flag('explain', 'Also who set it, when and why.'),
      ],
      answers: {
        200: ok('Overrides and patches.', { type: 'array', items: ref('own_value') }, [
          'X-Request-Id',
          'X-Total-Count',
          'Link',
        ]),
      },
      problems: READING,
      schemas: { own_value: OWN_VALUE_SCHEMA },
      handler: async (request, reply) => {
        const query = overridesQuery(service, request.query)
        if (!query.ok) return sendProblem(reply, query.problem)
        const listed = await listFor(service, request, (_fleet, view) =>
          listOverrides(types, view, query.value),
        )
        if (!listed.ok) return sendProblem(reply, listed.problem)
        const { total, revision, lines } = listed.value
        const shown =
          request.query.explain === 'true'
            ? await inspectFor(service, request, async (past) =>
                succeed(await explainLines(types, past, listed.value)),
              )
            : succeed(lines.map(shownLine))
        if (!shown.ok) return sendProblem(reply, shown.problem)
        sendPageHeaders(setRevision(reply, revision), request.url, query.value, total)
        return reply.header('Cache-Control', 'no-store').send(shown.value)
      },
    }),
  ]
}

function overridesQuery(service: Service, query: Query): Result<OverridesQuery> {
  const selected = selectedIn(service, query)
  if (!selected.ok) return selected
  const { type, id, kind, redundant } = query
  return succeed({
    matches: selected.value,
    type,
    id,
    kind: kind as OwnKind | undefined,
    redundant: redundant === undefined ? undefined : redundant === 'true',
    ...pageIn(query, LIMIT),
  })
}

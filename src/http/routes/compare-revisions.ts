// What differs between two moments: in documents, and for clusters.
import { COMPARED_SCHEMA, type Compared } from '../../api/compared-schema.ts'
import { ref } from '../../api/component-ref.ts'
import { CHANGES_IN_PREVIEW } from '../../api/limits.ts'
import { invalid, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { parseSelector, type Selector } from '../../domain/access/selector.ts'
import type { Comparison } from '../../domain/delivery/compare-served.ts'
import { impactOf } from '../../domain/delivery/impact.ts'
import { servedVersions } from '../../domain/delivery/served-version.ts'
import { type DescribedChange, describeChange } from '../../domain/documents/describe-change.ts'
import { findVersion } from '../../domain/documents/find-document.ts'
import type { Types } from '../../domain/types/resource-type.ts'
import { inspectFor } from '../load/callers.ts'
import { LOOKING_BACK, ok } from '../openapi/openapi-operation.ts'
import { AT, IMPACT, numberIn, type Query, SELECTOR } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { momentIn } from '../request/query.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'

const FROM = { ...AT, name: 'from', required: true, description: 'A revision, or a time (RFC 3339).' }
const TO = { ...AT, name: 'to', description: 'A revision, or a time (RFC 3339); now without it.' }

const FROM_MISSING = 'is required: a revision, or a time (RFC 3339)'

export function comparisonRoutes(service: Service): Route[] {
  const { types, engine } = service
  return [
    route({
      method: 'GET',
      path: '/revisions/compare',
      access: 'read',
      tag: 'revisions',
      id: 'compare_revisions',
      summary: 'Differences between two moments: documents, and inputs of clusters.',
      description: `Changes in between do not matter; it also works backwards. At most ${CHANGES_IN_PREVIEW} changes are shown. With a selector only clusters that match at either moment; definitions are all shown.`,
      parameters: [FROM, TO, SELECTOR, IMPACT],
      answers: { 200: ok('The differences.', ref('compared'), ['X-Request-Id']) },
      problems: LOOKING_BACK,
      schemas: { compared: COMPARED_SCHEMA },
      handler: async (request, reply) => {
        const { query } = request
        if (query.from === undefined)
          return sendProblem(reply, invalid([{ path: '?from', message: FROM_MISSING }]).problem)
        const selected = selectorIn(types, query)
        if (!selected.ok) return sendProblem(reply, selected.problem)
        const compared = await inspectFor(service, request, async (past) => {
          const now = { revision: engine.state.revision }
          const from = await past.resolve(momentIn({ at: query.from }) ?? now, '?from')
          if (!from.ok) return from
          const to = await past.resolve(momentIn({ at: query.to }) ?? now, '?to')
          if (!to.ok) return to
          const limit = numberIn(query, IMPACT) as number
          const differences = await past.between(from.value, to.value, (comparison) =>
            compare(comparison, selected.value, limit),
          )
          return succeed({ from: from.value, to: to.value, ...differences })
        })
        return compared.ok ? reply.send(compared.value) : sendProblem(reply, compared.problem)
      },
    }),
  ]
}

function selectorIn(types: Types, { selector }: Query): Result<Selector | undefined> {
  if (selector === undefined) return succeed(undefined)
  const parsed = parseSelector(types, selector, { version: servedVersions(types) })
  return parsed.ok ? succeed(parsed.selector) : invalid([{ path: '?selector', message: parsed.message }])
}

function* compare(
  comparison: Comparison,
  selector: Selector | undefined,
  limit: number,
): Steps<Omit<Compared, 'from' | 'to'>> {
  const { types, before, after } = comparison
  const clusters = types.cluster.type.name
  const isChosen = (id: string): boolean =>
    !selector ||
    [before, after].some((view) => {
      const document = view.get(clusters, id)?.document
      return document !== undefined && selector.matches(document, view)
    })
  const changes: DescribedChange[] = []
  let count = 0
  for (const { name } of types.all)
    for (const id of [...after.laid(name).keys()].sort()) {
      yield
      if (name === clusters && !isChosen(id)) continue
      count++
      if (changes.length < CHANGES_IN_PREVIEW) changes.push(changeOf(comparison, name, id))
    }
  return { change_count: count, changes, impact: yield* impactOf(comparison, limit, isChosen) }
}

function changeOf({ types, before, after }: Comparison, type: string, id: string): DescribedChange {
  const [was, is] = [findVersion(before, type, id), findVersion(after, type, id)]
  return describeChange(types, {
    type,
    id,
    before: was?.document ?? null,
    before_deleted: was?.deleted ?? false,
    after: is?.document ?? null,
    after_deleted: is?.deleted ?? false,
  })
}

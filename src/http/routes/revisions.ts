// The log of changes: who changed what, when and why, and whether the log is whole.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { CHANGE_PAGES, CHANGES_IN_LIST, MAX_IMPACT_DETAILS, REVISION_PAGES } from '../../api/limits.ts'
import { NDJSON } from '../../api/media-types.ts'
import { type Detail, invalid, notFound, type Problem, type Result, succeed } from '../../base/problem.ts'
import { IMPACT_LIMIT } from '../../domain/delivery/impact.ts'
import { searchableTypes } from '../../domain/types/system-types.ts'
import { spansOf } from '../../engine/audit.ts'
import type { HistoryQuery, RecordedRevision } from '../../engine/past.ts'
import { inspectFor } from '../load/callers.ts'
import { presentRevision } from '../request/present-revision.ts'
import { sendProblem } from '../request/problem-response.ts'
import { parseRevision, parseTimeAt, parseWhole, type RawQuery } from '../request/query.ts'
import type { Service } from '../service.ts'

const PAGING = ['limit', 'before']
const FILTERS = ['actor', 'type', 'id', 'cluster', 'since', 'until', 'q']
const LIST = { config: { access: 'read', parameters: [...PAGING, ...FILTERS] } } as const
const HISTORY = { config: { access: 'read', parameters: PAGING } } as const
const ONE = { config: { access: 'read', parameters: ['limit', 'offset', 'impact_limit'] } } as const
const READ = { config: { access: 'read' } } as const

interface Search {
  readonly query: Omit<HistoryQuery, 'changeLimit'>
  readonly cluster?: string
}

export function revisionRoutes(app: FastifyInstance, service: Service): void {
  const { engine, types } = service

  const present = (revision: RecordedRevision) => presentRevision(types, revision)

  /** Sends what the log has; when it has nothing, the problem that this is, if it is one. */
  async function sendList(
    request: FastifyRequest,
    reply: FastifyReply,
    query: HistoryQuery,
    none?: Problem,
  ): Promise<FastifyReply> {
    const found = await inspectFor(service, request, async (past) => succeed(await past.history(query)))
    if (!found.ok) return sendProblem(reply, found.problem)
    if (found.value.length === 0 && none) return sendProblem(reply, none)
    const last = found.value.at(-1)
    if (last && found.value.length === query.limit) linkNext(request, reply, last.revision)
    return sendLines(request, reply, found.value.map(present))
  }

  app.get<{ Querystring: RawQuery }>('/revisions', LIST, async (request, reply) => {
    const search = parseSearch(request.query)
    if (!search.ok) return sendProblem(reply, search.problem)
    const { query, cluster } = search.value
    const documents = await documentsOf(request, cluster)
    if (!documents.ok) return sendProblem(reply, documents.problem)
    return sendList(request, reply, {
      ...query,
      ...(documents.value && { documents: documents.value }),
      changeLimit: CHANGES_IN_LIST,
    })
  })

  /** What a cluster gets, or the document of an id: the log finds these by its index. */
  async function documentsOf(
    request: FastifyRequest,
    cluster: string | undefined,
  ): Promise<Result<HistoryQuery['documents']>> {
    const { type, id } = request.query as RawQuery
    const wanted = searchableTypes(types)
      .filter((name) => type === undefined || name === type)
      .map((name) => ({ type: name, id: String(id) }))
    if (cluster === undefined) return succeed(id === undefined ? undefined : wanted)
    const spans = await inspectFor(service, request, (past) => spansOf(types, past, engine.state, cluster))
    if (!spans.ok) return spans
    const isWanted = (span: { type: string; id: string }): boolean =>
      wanted.some((item) => item.type === span.type && (id === undefined || item.id === span.id))
    return succeed(spans.value.filter(isWanted))
  }

  function parseSearch(raw: RawQuery): Result<Search> {
    const details: Detail[] = []
    const paging = parsePaging(raw, details)
    const since = parseTimeAt(raw.since, '?since', details)
    const until = parseTimeAt(raw.until, '?until', details)
    const { actor, type, q, cluster, id } = raw as Record<string, string | undefined>
    if (type !== undefined && !searchableTypes(types).includes(type)) {
      const known = searchableTypes(types).join(', ')
      details.push({ path: '?type', message: `is an unknown type: known are ${known}` })
    }
    if (details.length > 0) return invalid(details)
    const query = {
      ...paging,
      ...(actor !== undefined && { actor }),
      ...(type !== undefined && id === undefined && { type }),
      ...(since !== undefined && { since }),
      ...(until !== undefined && { until }),
      ...(q !== undefined && { text: q }),
    }
    return succeed({ query, ...(cluster !== undefined && { cluster }) })
  }

  app.get('/revisions/verify', READ, async (request, reply) => {
    const verification = await inspectFor(service, request, async (past) => succeed(await past.verify()))
    if (!verification.ok) return sendProblem(reply, verification.problem)
    return reply.send(verification.value)
  })

  app.get<{ Params: { revision: string }; Querystring: RawQuery }>(
    '/revisions/:revision',
    ONE,
    async (request, reply) => {
      const details: Detail[] = []
      const { limit, offset, impact_limit } = request.query
      const changeLimit = parseWhole(limit, 'limit', CHANGE_PAGES.max, details) ?? CHANGE_PAGES.limit
      const changeOffset = parseWhole(offset, 'offset', Number.MAX_SAFE_INTEGER, details) ?? 0
      const impactLimit =
        parseWhole(impact_limit, 'impact_limit', MAX_IMPACT_DETAILS, details) ?? IMPACT_LIMIT
      if (details.length > 0) return sendProblem(reply, invalid(details).problem)
      const revision = parseRevision(request.params.revision)
      if (!revision.ok) return sendProblem(reply, revision.problem)
      const found = await inspectFor(service, request, async (past) => {
        const query = { revision: revision.value, limit: 1, changeLimit, changeOffset }
        const [recorded] = await past.history(query)
        if (recorded)
          return succeed({ ...present(recorded), impact: await past.impactOf(revision.value, impactLimit) })
        const known = await past.resolve({ revision: revision.value - 1 }, 'the revision')
        const isPruned = !known.ok && known.problem.code === 'gone'
        return isPruned ? known : notFound('revision', request.params.revision)
      })
      if (!found.ok) return sendProblem(reply, found.problem)
      return wantsLines(request) ? sendLines(request, reply, [found.value]) : reply.send(found.value)
    },
  )

  for (const type of types.all) {
    app.get<{ Params: { id: string }; Querystring: RawQuery }>(
      `/${type.name}/:id/history`,
      HISTORY,
      async (request, reply) => {
        const { id } = request.params
        const details: Detail[] = []
        const paging = parsePaging(request.query, details)
        if (details.length > 0) return sendProblem(reply, invalid(details).problem)
        const query = { ...paging, documents: [{ type: type.name, id }], changeLimit: 1 }
        const unknown = paging.before === undefined && paging.limit > 0 && !engine.state.get(type.name, id)
        return sendList(request, reply, query, unknown ? notFound(type.singular, id).problem : undefined)
      },
    )
  }
}

function parsePaging({ limit, before }: RawQuery, details: Detail[]): Pick<HistoryQuery, 'limit' | 'before'> {
  const parsedLimit = parseWhole(limit, 'limit', REVISION_PAGES.max, details) ?? REVISION_PAGES.limit
  const parsedBefore = parseWhole(before, 'before', Number.MAX_SAFE_INTEGER, details)
  return { limit: parsedLimit, ...(parsedBefore !== undefined && { before: parsedBefore }) }
}

function linkNext({ url }: FastifyRequest, reply: FastifyReply, before: number): void {
  const [path, query] = url.split('?')
  const params = new URLSearchParams(query)
  params.set('before', String(before))
  reply.header('Link', `<${path}?${params}>; rel="next"`)
}

function wantsLines({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes(NDJSON) ?? false
}

/** A list, or one JSON object on each line for those who collect logs. */
function sendLines(request: FastifyRequest, reply: FastifyReply, items: readonly object[]): FastifyReply {
  if (!wantsLines(request)) return reply.send(items)
  return reply.type(NDJSON).send(items.map((item) => `${JSON.stringify(item)}\n`).join(''))
}

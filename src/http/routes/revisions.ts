// The log of changes: who changed what, when and why.
import type { FastifyInstance, FastifyReply } from 'fastify'
import { equalJson } from '../../domain/json.ts'
import { type Detail, invalid, notFound, type Problem } from '../../domain/problem.ts'
import type { HistoryQuery, RecordedChange, RecordedRevision } from '../../engine/engine.ts'
import { sendProblem } from '../problem-response.ts'
import { parseWhole, type RawQuery } from '../query.ts'
import type { Service } from '../service.ts'

const LIST = { config: { access: 'read', parameters: ['limit', 'before'] } } as const
const ONE = { config: { access: 'read', parameters: ['limit', 'offset'] } } as const
const DEFAULT_REVISIONS = 50
const MAX_REVISIONS = 100
/** Of each revision in a list; one revision by its number shows all of them, in pages. */
const CHANGES_IN_LIST = 20
const MAX_CHANGES = 1000

export function revisionRoutes(app: FastifyInstance, service: Service): void {
  const { engine, types } = service

  /** Sends what the log has; when it has nothing, the problem that this is, if it is one. */
  async function sendHistory(
    reply: FastifyReply,
    query: HistoryQuery,
    none?: Problem,
  ): Promise<FastifyReply> {
    const history = await engine.history(query)
    if (!history.ok) return sendProblem(reply, history.problem)
    if (history.value.length === 0 && none) return sendProblem(reply, none)
    return reply.send(history.value.map(present))
  }

  function present({ changes, ...revision }: RecordedRevision) {
    return { ...revision, changes: changes.map((change) => presentChange(change, types.cluster.type.name)) }
  }

  app.get<{ Querystring: RawQuery }>('/revisions', LIST, (request, reply) => {
    const paging = parsePaging(request.query)
    if (paging.details.length > 0) return sendProblem(reply, invalid(paging.details).problem)
    return sendHistory(reply, { ...paging.query, changeLimit: CHANGES_IN_LIST })
  })

  app.get<{ Params: { revision: string }; Querystring: RawQuery }>(
    '/revisions/:revision',
    ONE,
    async (request, reply) => {
      const details: Detail[] = []
      const { limit, offset } = request.query
      const changeLimit = parseWhole(limit, 'limit', MAX_CHANGES, details) ?? MAX_CHANGES
      const changeOffset = parseWhole(offset, 'offset', Number.MAX_SAFE_INTEGER, details) ?? 0
      if (details.length > 0) return sendProblem(reply, invalid(details).problem)
      const revision = Number(/^\d{1,16}$/.exec(request.params.revision)?.[0] ?? Number.NaN)
      const history = Number.isNaN(revision)
        ? notFound('revision', request.params.revision)
        : await engine.history({ revision, limit: 1, changeLimit, changeOffset })
      if (!history.ok) return sendProblem(reply, history.problem)
      const [found] = history.value
      if (!found) return sendProblem(reply, notFound('revision', request.params.revision).problem)
      return reply.send(present(found))
    },
  )

  for (const type of types.all) {
    app.get<{ Params: { id: string }; Querystring: RawQuery }>(
      `/${type.name}/:id/history`,
      LIST,
      async (request, reply) => {
        const { id } = request.params
        const paging = parsePaging(request.query)
        if (paging.details.length > 0) return sendProblem(reply, invalid(paging.details).problem)
        const query = { ...paging.query, document: { type: type.name, id }, changeLimit: 1 }
        const none = query.before === undefined ? notFound(type.singular, id).problem : undefined
        return sendHistory(reply, query, none)
      },
    )
  }
}

function parsePaging({ limit, before }: RawQuery): {
  query: Pick<HistoryQuery, 'limit' | 'before'>
  details: Detail[]
} {
  const details: Detail[] = []
  const parsedLimit = parseWhole(limit, 'limit', MAX_REVISIONS, details) ?? DEFAULT_REVISIONS
  const parsedBefore = parseWhole(before, 'before', Number.MAX_SAFE_INTEGER, details)
  return {
    query: { limit: parsedLimit, ...(parsedBefore !== undefined && { before: parsedBefore }) },
    details,
  }
}

/** A tombstone is nothing to a reader, except when it is what a purge forgot. */
function presentChange(change: RecordedChange, clusterType: string) {
  const op = operationOf(change, clusterType)
  const before = change.before_deleted && op !== 'purge' ? null : change.before
  const after = change.after_deleted ? null : change.after
  return { type: change.type, id: change.id, op, before, after }
}

function operationOf(
  { type, before, after, before_deleted, after_deleted }: RecordedChange,
  clusterType: string,
): string {
  if (after === null) return type === clusterType ? 'purge' : 'delete'
  if (after_deleted) return 'delete'
  if (before === null) return 'create'
  if (before_deleted) return equalJson(before, after) ? 'restore' : 'create'
  return 'update'
}

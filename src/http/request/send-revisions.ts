// Lists of revisions, newest first: as JSON, or as lines for those who collect logs.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ref } from '../../api/component-ref.ts'
import { NDJSON } from '../../api/media-types.ts'
import { type Problem, succeed } from '../../base/problem.ts'
import type { HistoryQuery } from '../../engine/past.ts'
import { inspectFor } from '../load/callers.ts'
import { json, type Node } from '../openapi/openapi-operation.ts'
import type { Service } from '../service.ts'
import { BEFORE, numberIn, type Parameter, type Query, REVISION_LIMIT } from './parameters.ts'
import { presentRevision } from './present-revision.ts'
import { sendProblem } from './problem-response.ts'

/** The page of a list of revisions. */
export const REVISION_PAGE: readonly Parameter[] = [REVISION_LIMIT, BEFORE]

export function revisionPageIn(query: Query): Pick<HistoryQuery, 'limit' | 'before'> {
  const before = numberIn(query, BEFORE)
  return { limit: numberIn(query, REVISION_LIMIT) as number, ...(before !== undefined && { before }) }
}

/** Sends the revisions found; when there are none, the problem `none`, where it is given. */
export async function sendRevisions(
  service: Service,
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
  const shown = found.value.map((revision) => presentRevision(service.types, revision))
  return wantsLines(request) ? sendLines(reply, shown) : reply.send(shown)
}

function linkNext({ url }: FastifyRequest, reply: FastifyReply, before: number): void {
  const [path, query] = url.split('?')
  const params = new URLSearchParams(query)
  params.set('before', String(before))
  reply.header('Link', `<${path}?${params}>; rel="next"`)
}

export function wantsLines({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes(NDJSON) ?? false
}

export function sendLines(reply: FastifyReply, items: readonly object[]): FastifyReply {
  return reply.type(NDJSON).send(items.map((item) => `${JSON.stringify(item)}\n`).join(''))
}

/** The content of a list as JSON and as NDJSON, which OpenAPI can only describe as an array. */
export function inLines(item: Node, whole: Node): Node {
  return { ...json(whole), ...json({ type: 'array', items: item }, NDJSON) }
}

export const REVISION_LIST: Node = inLines(ref('revision'), { type: 'array', items: ref('revision') })

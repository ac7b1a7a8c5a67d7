// The log of changes: who changed what, when and why, and whether the log is whole.
import type { FastifyRequest } from 'fastify'
import { ref } from '../../api/component-ref.ts'
import { CHANGE_PAGES, CHANGES_IN_LIST } from '../../api/limits.ts'
import { REVISION_SCHEMAS } from '../../api/revision-schema.ts'
import type { RevisionWithImpact } from '../../api/wire-types.ts'
import { invalid, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import type { Selector } from '../../domain/access/selector.ts'
import type { View } from '../../domain/documents/view.ts'
import { HOLDS } from '../../domain/rollouts/hold.ts'
import { referencesOf, type Types } from '../../domain/types/resource-type.ts'
import { searchableTypes } from '../../domain/types/system-types.ts'
import { spansOf } from '../../engine/audit.ts'
import type { DocumentSpan, HistoryQuery } from '../../engine/past.ts'

import { inspectFor } from '../load/callers.ts'
import { LOOKING_BACK, ok, READING } from '../openapi/openapi-operation.ts'
import {
  IMPACT,
  inPath,
  inQuery,
  numberIn,
  OFFSET,
  type Parameter,
  pageOf,
  type Query,
  REVISION,
  SELECTOR,
  time,
  timeIn,
} from '../request/parameters.ts'
import { presentRevision } from '../request/present-revision.ts'
import { sendProblem } from '../request/problem-response.ts'
import { selectedIn } from '../request/selected-in.ts'
import {
  inLines,
  REVISION_LIST,
  REVISION_PAGE,
  revisionPageIn,
  sendLines,
  sendRevisions,
  wantsLines,
} from '../request/send-revisions.ts'
import { withRevision } from '../request/with-revision.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'
import { listFor } from '../status/list-for.ts'

const SINCE = time('since', 'Only from this time on (RFC 3339).')
const UNTIL = time('until', 'Only up to this time (RFC 3339).')
const CHANGE_PAGE = pageOf(CHANGE_PAGES)

export function revisionRoutes(service: Service): Route[] {
  return [listRoute(service), verifyRoute(service), readRoute(service)]
}

function listRoute(service: Service): Route {
  const names = searchableTypes(service.types)
  return route({
    method: 'GET',
    path: '/revisions',
    access: 'read',
    tag: 'revisions',
    id: 'list_revisions',
    summary: 'Revisions, newest first.',
    description: `Each with its first ${CHANGES_IN_LIST} changes; change_count says how many there are. Filters go together, and before leads to the next page.`,
    parameters: [...REVISION_PAGE, ...filterParameters(names)],
    answers: {
      200: {
        ...ok('Revisions with their first changes.', {}, ['X-Request-Id', 'Link']),
        content: REVISION_LIST,
      },
    },
    problems: [...READING, 404],
    schemas: REVISION_SCHEMAS,
    handler: async (request, reply) => {
      const documents = await documentsIn(service, request, names)
      if (!documents.ok) return sendProblem(reply, documents.problem)
      return sendRevisions(service, request, reply, {
        ...searchIn(request.query),
        ...(documents.value && { documents: documents.value }),
        changeLimit: CHANGES_IN_LIST,
      })
    },
  })
}

function filterParameters(names: readonly string[]): Parameter[] {
  return [
    inQuery('actor', 'Only by this actor.'),
    inQuery(
      'type',
      'Only those that changed a document of this type.',
      { type: 'string', enum: names },
      (text) => (names.includes(text) ? undefined : `is an unknown type: known are ${names.join(', ')}`),
    ),
    inQuery('id', 'Only those that changed a document of this id.'),
    inQuery('cluster', 'Only those that changed this cluster, or a definition while it was assigned to it.'),
    {
      ...SELECTOR,
      description:
        'Only those that changed a cluster which matches this label selector now, or a definition that such a cluster has now.',
    },
    SINCE,
    UNTIL,
    inQuery('q', 'Only with this text in the message, the operation, the actor or the request id.'),
  ]
}

/** The search conditions of a checked query, except documents. */
function searchIn(query: Query): Omit<HistoryQuery, 'changeLimit' | 'documents'> {
  const { actor, type, id, q } = query
  const [since, until] = [timeIn(query, SINCE), timeIn(query, UNTIL)]
  return {
    ...revisionPageIn(query),
    ...(actor !== undefined && { actor }),
    ...(type !== undefined && id === undefined && { type }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
    ...(q !== undefined && { text: q }),
  }
}

/** The documents of the query: all that a cluster gets, or the one with an id. The log finds them by an index. */
async function documentsIn(
  service: Service,
  request: FastifyRequest,
  names: readonly string[],
): Promise<Result<HistoryQuery['documents']>> {
  const { engine, types } = service
  const { type, id, cluster, selector } = request.query as Query
  const wanted = names
    .filter((name) => type === undefined || name === type)
    .map((name) => ({ type: name, id: String(id) }))
  if (cluster !== undefined && selector !== undefined)
    return invalid([{ path: '?selector', message: 'does not go with cluster: give one of them' }])
  if (cluster === undefined && selector === undefined) return succeed(id === undefined ? undefined : wanted)
  const spans =
    cluster === undefined
      ? await selectedSpans(service, request)
      : await inspectFor(service, request, (past) => spansOf(types, past, engine.state, cluster))
  if (!spans.ok) return spans
  const isWanted = (span: { type: string; id: string }): boolean =>
    wanted.some((item) => item.type === span.type && (id === undefined || item.id === span.id))
  return succeed(spans.value.filter(isWanted))
}

/** The clusters that a selector chooses, and all that these are assigned. */
async function selectedSpans(service: Service, request: FastifyRequest): Promise<Result<DocumentSpan[]>> {
  const matches = selectedIn(service, request.query as Query)
  if (!matches.ok) return matches
  return listFor(service, request, (_fleet, view) => spansIn(service.types, view, matches.value))
}

function* spansIn(types: Types, view: View, matches: Selector['matches']): Steps<DocumentSpan[]> {
  const spans = new Map<string, DocumentSpan>()
  const add = (type: string, id: string): void => void spans.set(`${type}/${id}`, { type, id })
  for (const { id, document } of view.all(types.cluster.type.name)) {
    yield
    if (!matches(document, view)) continue
    add(types.cluster.type.name, id)
    add(HOLDS, id)
    for (const { name, delivery } of types.delivered)
      for (const reference of referencesOf(document, delivery)) add(name, reference.id)
  }
  return [...spans.values()]
}

function verifyRoute(service: Service): Route {
  return route({
    method: 'GET',
    path: '/revisions/verify',
    access: 'read',
    tag: 'revisions',
    id: 'verify_revisions',
    summary: 'Whether the log is whole and the documents are what it says.',
    description:
      'Computes every hash of the log again, and compares the documents with what the log makes of them. Takes a while on a long log.',
    answers: { 200: ok('The result of the check.', ref('verification'), ['X-Request-Id']) },
    problems: READING,
    handler: async (request, reply) => {
      const verification = await inspectFor(service, request, async (past) => succeed(await past.verify()))
      return verification.ok ? reply.send(verification.value) : sendProblem(reply, verification.problem)
    },
  })
}

function readRoute(service: Service): Route {
  return route<'revision'>({
    method: 'GET',
    path: '/revisions/{revision}',
    access: 'read',
    tag: 'revisions',
    id: 'get_revision',
    summary: `One revision with its changes, at most ${CHANGE_PAGES.max} at a time, and what it meant for clusters.`,
    description:
      'Its changes a page at a time: limit and offset choose the page. impact_limit is how many details of its impact there are at most.',
    parameters: [inPath('revision', 'Its number.', { ...REVISION, example: 1 }), ...CHANGE_PAGE, IMPACT],
    answers: {
      200: {
        ...ok('The revision.', {}, ['X-Request-Id']),
        content: inLines(ref('revision_with_impact'), ref('revision_with_impact')),
      },
    },
    problems: LOOKING_BACK,
    handler: async (request, reply) => {
      const found = await findRevision(service, request, request.params.revision)
      if (!found.ok) return sendProblem(reply, found.problem)
      return wantsLines(request) ? sendLines(reply, [found.value]) : reply.send(found.value)
    },
  })
}

function findRevision(
  service: Service,
  request: FastifyRequest,
  text: string,
): Promise<Result<RevisionWithImpact>> {
  const query = request.query as Query
  const changeLimit = numberIn(query, CHANGE_PAGE[0]) as number
  const changeOffset = numberIn(query, OFFSET) ?? 0
  return withRevision(service, request, text, { changeLimit, changeOffset }, async (past, recorded) => {
    const impact = await past.impactOf(recorded.revision, numberIn(query, IMPACT) as number)
    return { ...presentRevision(service.types, recorded), impact }
  })
}

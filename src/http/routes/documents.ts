// Documents of every type: list, read, create, replace, patch, delete, and their history.
import { ref } from '../../api/component-ref.ts'
import { JSON_PATCH, JSON_TYPE } from '../../api/media-types.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { notFound, succeed } from '../../base/problem.ts'
import { withArticle } from '../../base/sentences.ts'
import type { Steps } from '../../base/steps.ts'
import { UnknownKeys } from '../../domain/access/unknown-keys.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import type { Document, Types, WriteMethod } from '../../domain/types/resource-type.ts'
import type { RegisteredType } from '../../registry/build-types.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import { inLane, senderOf } from '../load/callers.ts'
import { exampleChange, exampleDocument, exampleId } from '../openapi/openapi-example.ts'
import {
  CREATING,
  example,
  json,
  LOCKED,
  LOOKING_BACK,
  mergePatch,
  NOT_MODIFIED,
  type Node,
  ok,
  PREVIEWED,
  READING,
  READING_ONE,
  schemaName,
  WRITING,
  WRITTEN_HEADERS,
  written,
} from '../openapi/openapi-operation.ts'
import { jsonPatchBody, jsonPatchSchemas } from '../openapi/openapi-schema.ts'
import { idSchema, sentSchemas } from '../openapi/openapi-types.ts'
import { matchesEtag } from '../poll/answer.ts'
import { mediaTypeOf } from '../request/body.ts'
import { type ListQuery, listParameters, parseListQuery, sendPageHeaders } from '../request/list-query.ts'
import { PageWindow } from '../request/page-window.ts'
import { AT, flag, IF_ABSENT, IF_CHANGED, IF_MATCH, inPath, type Parameter } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { readAt, readEntry } from '../request/read-at.ts'
import { setRevision } from '../request/revision-header.ts'
import { answerWrite } from '../request/run-write.ts'
import { REVISION_LIST, REVISION_PAGE, revisionPageIn, sendRevisions } from '../request/send-revisions.ts'
import { warningHeaders } from '../request/warning-header.ts'
import { entryAnswer, etagOf } from '../request/write-answer.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'

type BuildRoute = (service: Service, type: RegisteredType) => Route

const WRITE_ROUTES: Record<WriteMethod, BuildRoute> = {
  post: createRoute,
  put: replaceRoute,
  patch: patchRoute,
  delete: deleteRoute,
}

export function documentRoutes(service: Service): Route[] {
  return service.types.all.flatMap((type) => [
    listRoute(service, type),
    readRoute(service, type),
    ...[...type.methods].map((method) => WRITE_ROUTES[method](service, type)),
    historyRoute(service, type),
  ])
}

/** The summary from the type's file, or else a general one. */
function summaryOf({ file }: RegisteredType, level: string, method: string, otherwise: string): string {
  return file.descriptions?.[level]?.[method] ?? otherwise
}

function idIn(type: RegisteredType): Parameter {
  return inPath('id', type.file.schema.key.description ?? 'Id.', idSchema(type))
}

function listRoute(service: Service, type: RegisteredType): Route {
  const { engine, types } = service
  const { name } = type
  const isCluster = type === types.cluster.type
  return route({
    method: 'GET',
    path: `/${name}`,
    access: 'read',
    tag: name,
    id: `list_${name}`,
    summary: summaryOf(type, 'resource', 'get', `List ${name}.`),
    description:
      'Ordered by id, a page at a time: limit and offset choose it, X-Total-Count and Link describe the rest. With at, as it was then.',
    parameters: listParameters(types, type),
    answers: {
      200: ok(
        'Documents ordered by id; X-Total-Count and Link describe the rest.',
        { type: 'array', items: ref(schemaName(type)) },
        ['X-Request-Id', 'X-Total-Count', 'Link', ...(isCluster ? ['Warning'] : [])],
      ),
    },
    problems: [...READING, 410],
    schemas: sentSchemas(types, type),
    handler: async (request, reply) => {
      const query = parseListQuery(types, type, request.query, engine.fleet.status)
      if (!query.ok) return sendProblem(reply, query.problem)
      const page = await readAt(service, request, reply, {
        now: () => {
          const sender = senderOf(service, request, 'read')
          return inLane(service.admission.lists, sender, async () => {
            const view = engine.state.freeze()
            const listed = runTimeSliced(listPage(types, view, name, query.value), sender.signal)
            return succeed(await listed.finally(view.release))
          })
        },
        earlier: async (past, revision) =>
          succeed(
            await past.read(revision, asksForDefinitions(query.value) ? undefined : name, (view) =>
              listPage(types, view, name, query.value),
            ),
          ),
      })
      if (!page.ok) return sendProblem(reply, page.problem)
      const { documents, total, revision, warnings } = page.value.value
      sendPageHeaders(setRevision(reply, revision), request.url, query.value, total)
      if (warnings.length > 0) reply.header('Warning', warningHeaders(warnings))
      return reply.send(documents)
    },
  })
}

function asksForDefinitions({ selector }: ListQuery): boolean {
  return selector !== undefined && selector.definitions.length > 0
}

/** The documents of a page, the total over all pages, and the revision of the fleet they are from. */
function* listPage(
  { cluster }: Types,
  view: View,
  type: string,
  query: ListQuery,
): Steps<{ documents: Document[]; total: number; revision: number; warnings: readonly string[] }> {
  const documents: Document[] = []
  const keys = query.selector && new UnknownKeys(cluster, query.selector)
  const page = new PageWindow(query)
  const listed = query.deleted ? [...view.tombstones(type)].sort(byId) : view.all(type)
  for (const { document } of listed) {
    yield
    keys?.see(document)
    if (page.takes(document, view)) documents.push(document)
  }
  return { documents, total: page.total, revision: view.revision, warnings: keys?.warnings(view) ?? [] }
}

function byId(one: Entry, other: Entry): number {
  return one.id < other.id ? -1 : 1
}

function readRoute(service: Service, type: RegisteredType): Route {
  const { name, singular } = type
  return route<'id'>({
    method: 'GET',
    path: `/${name}/{id}`,
    access: 'read',
    tag: name,
    id: `get_${name}`,
    summary: summaryOf(type, 'instance', 'get', `Get ${withArticle(singular)}.`),
    description:
      'The ETag of the answer is for If-Match of a write, and for If-None-Match of the next read. With at, as it was then.',
    parameters: [idIn(type), AT, IF_CHANGED],
    answers: {
      200: ok('The document, with its ETag.', ref(schemaName(type)), ['X-Request-Id', 'ETag']),
      304: NOT_MODIFIED,
    },
    problems: LOOKING_BACK,
    handler: async (request, reply) => {
      const found = await readEntry(service, request, reply, type, request.params.id)
      if (!found.ok) return sendProblem(reply, found.problem)
      const entry = found.value.value
      const unchanged = matchesEtag(request.headers['if-none-match'], etagOf(entry))
      reply.header('ETag', etagOf(entry))
      return unchanged ? reply.code(304).send() : reply.send(entry.document)
    },
  })
}

function createRoute(service: Service, type: RegisteredType): Route {
  const { types } = service
  const { name, singular } = type
  return route({
    method: 'POST',
    path: `/${name}`,
    access: 'write',
    tag: name,
    id: `create_${name}`,
    summary: summaryOf(type, 'resource', 'post', `Create ${withArticle(singular)}.`),
    description: `Fields that are left out take their defaults. An id that exists already fails with 409. ${PREVIEWED}`,
    body: {
      content: json(ref(`${schemaName(type)}_to_create`), JSON_TYPE, example(exampleDocument(types, type))),
    },
    answers: {
      200: ok('A preview with dry_run.', ref('preview'), WRITTEN_HEADERS),
      201: ok('The new document.', ref(schemaName(type)), [...WRITTEN_HEADERS, 'ETag', 'Location']),
    },
    problems: CREATING,
    handler: (request, reply) => {
      const command = { op: 'create', type: name, document: request.body as Json, path: '' } as const
      return answerWrite({ service, request, reply }, command, ({ after }, { id }) =>
        entryAnswer(after.get(name, id) as Entry, { status: 201, headers: { Location: `/${name}/${id}` } }),
      )
    },
  })
}

function replaceRoute(service: Service, type: RegisteredType): Route {
  const { name, singular } = type
  const { id: _id, ...fields } = exampleDocument(service.types, type) ?? {}
  return route<'id'>({
    method: 'PUT',
    path: `/${name}/{id}`,
    access: 'write',
    tag: name,
    id: `replace_${name}`,
    summary: summaryOf(type, 'instance', 'put', `Replace ${withArticle(singular)}.`),
    description: `Replaces all of it: fields that are left out take their defaults. An unknown id fails with 404, unless If-None-Match: * says that it is to be created. ${LOCKED} ${PREVIEWED}`,
    parameters: [idIn(type), IF_MATCH, IF_ABSENT],
    body: { content: json(ref(`${schemaName(type)}_to_replace`), JSON_TYPE, example(fields)) },
    answers: written(ref(schemaName(type)), { created: true }),
    problems: WRITING,
    handler: (request, reply) => {
      const { id } = request.params
      const command = { op: 'replace', type: name, id, document: request.body as Json, path: '' } as const
      return answerWrite({ service, request, reply }, command, ({ after }, { created }) =>
        entryAnswer(
          after.get(name, id) as Entry,
          created ? { status: 201, headers: { Location: `/${name}/${id}` } } : {},
        ),
      )
    },
  })
}

function jsonPatch(value: JsonObject): Node {
  const operations = Object.entries(value).map(([name, field]) => ({
    op: 'add',
    path: `/${name}`,
    value: field,
  }))
  return json(jsonPatchBody(), JSON_PATCH, example(operations))
}

function patchRoute(service: Service, type: RegisteredType): Route {
  const { name, singular } = type
  const change = exampleChange(service.types, type)
  return route<'id'>({
    method: 'PATCH',
    path: `/${name}/{id}`,
    access: 'write',
    tag: name,
    id: `patch_${name}`,
    summary: summaryOf(type, 'instance', 'patch', `Change some fields of ${withArticle(singular)}.`),
    description: `A merge patch (RFC 7396, as application/json too) changes the fields that it names, and null removes one. A JSON patch (RFC 6902) is a list of operations. ${LOCKED} ${PREVIEWED}`,
    parameters: [idIn(type), IF_MATCH],
    body: {
      content: { ...mergePatch(ref(`${schemaName(type)}_to_merge`), change), ...jsonPatch(change) },
    },
    answers: written(ref(schemaName(type))),
    problems: WRITING,
    schemas: jsonPatchSchemas(),
    handler: (request, reply) => {
      const { id } = request.params
      const format = mediaTypeOf(request) === JSON_PATCH ? 'json' : 'merge'
      const command = { op: 'patch', type: name, id, patch: request.body as Json, format, path: '' } as const
      return answerWrite({ service, request, reply }, command, ({ after }) =>
        entryAnswer(after.get(name, id) as Entry),
      )
    },
  })
}

const PURGE = flag(
  'purge',
  'Leaves no tombstone, and revokes the tokens of the cluster: polls with them then fail with 401, others with 404.',
)
const CASCADE = flag('cascade', 'Also removes every reference to it.')

function deleteRoute(service: Service, type: RegisteredType): Route {
  const { name, singular } = type
  const isCluster = type === service.types.cluster.type
  const description = isCluster
    ? 'Leaves a tombstone: polls get an empty list, and Flux removes everything that it had rendered. purge leaves none, and polls fail with 404.'
    : 'Returns what was deleted. A definition that clusters use fails with 409, unless cascade takes it from them.'
  return route<'id'>({
    method: 'DELETE',
    path: `/${name}/{id}`,
    access: 'write',
    tag: name,
    id: `delete_${name}`,
    summary: summaryOf(type, 'instance', 'delete', `Delete ${withArticle(singular)}.`),
    description: `${description} ${LOCKED} ${PREVIEWED}`,
    parameters: [idIn(type), isCluster ? PURGE : CASCADE, IF_MATCH],
    answers: written(ref(schemaName(type))),
    problems: WRITING,
    handler: (request, reply) => {
      const { id } = request.params
      const { cascade, purge } = request.query
      const command = {
        op: 'delete',
        type: name,
        id,
        cascade: cascade === 'true',
        purge: purge === 'true',
        path: '',
      } as const
      return answerWrite({ service, request, reply }, command, (_written, { removed }) => ({ body: removed }))
    },
  })
}

function historyRoute(service: Service, type: RegisteredType): Route {
  const { name, singular } = type
  return route<'id'>({
    method: 'GET',
    path: `/${name}/{id}/history`,
    access: 'read',
    tag: name,
    id: `history_${name}`,
    summary: `The revisions that changed ${withArticle(singular)}, newest first.`,
    description:
      'Also of documents that are gone. Each revision has only its change of this document; before leads to the next page.',
    // The history of an unknown document is 404 on its first page; a later page is empty.
    parameters: [
      inPath('id', 'Id, also of one that is gone.', { type: 'string', example: exampleId(type) }),
      ...REVISION_PAGE,
    ],
    answers: {
      200: {
        ...ok('Revisions, each with its change of this document.', {}, ['X-Request-Id', 'Link']),
        content: REVISION_LIST,
      },
    },
    problems: READING_ONE,
    handler: (request, reply) => {
      const { id } = request.params
      const page = revisionPageIn(request.query)
      const query = { ...page, documents: [{ type: name, id }], changeLimit: 1 }
      const isUnknown = page.before === undefined && page.limit > 0 && !service.engine.state.get(name, id)
      return sendRevisions(
        service,
        request,
        reply,
        query,
        isUnknown ? notFound(singular, id).problem : undefined,
      )
    },
  })
}

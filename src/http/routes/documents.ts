// Documents of every type: list, read, create, replace, patch, delete, and what belongs to one cluster.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { JSON_PATCH, JSON_TYPE, MERGE_PATCH } from '../../api/media-types.ts'
import type { Json } from '../../base/json.ts'
import { notFound, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { UnknownKeys } from '../../domain/access/unknown-keys.ts'
import { type RenderedAnswer, renderInputs } from '../../domain/delivery/render-inputs.ts'
import { servedTo } from '../../domain/delivery/served-view.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import type { DeliveredType, Document, Types, WriteMethod } from '../../domain/types/resource-type.ts'
import { explain } from '../../engine/audit.ts'
import type { RegisteredType } from '../../registry/build-types.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import { inLane, inspectFor, senderOf } from '../load/callers.ts'
import { matchesEtag, sendAnswer } from '../poll/answer.ts'
import { accepts, mediaTypeOf, refuseBody } from '../request/body.ts'
import { findEndpoint } from '../request/find-endpoint.ts'
import { type ListQuery, listParameters, parseListQuery, sendPageHeaders } from '../request/list-query.ts'
import { PageWindow } from '../request/page-window.ts'
import { sendProblem } from '../request/problem-response.ts'
import { parseAt, type RawQuery } from '../request/query.ts'
import { readAt, readEntry } from '../request/read-at.ts'
import { setRevision } from '../request/revision-header.ts'
import { answerWrite } from '../request/run-write.ts'
import { warningHeaders } from '../request/warning-header.ts'
import { entryAnswer, etagOf } from '../request/write-answer.ts'
import type { Service } from '../service.ts'

interface ById {
  Params: { id: string }
  Querystring: RawQuery
}
interface WithBody {
  Body: Json
  Querystring: RawQuery
}

const READ = { config: { access: 'read', parameters: ['at'] } } as const
const INPUTS = { config: { access: 'read', parameters: ['at'], flags: ['explain'] } } as const
const WRITE = { config: { access: 'write' }, preHandler: accepts([JSON_TYPE]) } as const
const PATCH = {
  config: { access: 'write' },
  preHandler: accepts([JSON_TYPE, MERGE_PATCH, JSON_PATCH]),
} as const

export function documentRoutes(app: FastifyInstance, service: Service): void {
  for (const type of service.types.all) {
    readRoutes(app, service, type)
    for (const method of type.methods) WRITE_ROUTES[method](app, service, type)
  }
  clusterRoutes(app, service)
}

function readRoutes(app: FastifyInstance, service: Service, type: RegisteredType): void {
  const { engine, types } = service
  const list = { config: { access: 'read', parameters: listParameters(types, type) } } as const
  app.get<{ Querystring: RawQuery }>(`/${type.name}`, list, async (request, reply) => {
    const query = parseListQuery(types, type, request.query)
    if (!query.ok) return sendProblem(reply, query.problem)
    const page = await readAt(service, request, reply, {
      now: () => {
        const sender = senderOf(service, request, 'read')
        return inLane(service.admission.lists, sender, async () => {
          const view = engine.state.freeze()
          const page = runTimeSliced(pageOf(types, view, type.name, query.value), sender.signal)
          return succeed(await page.finally(view.release))
        })
      },
      earlier: async (past, revision) =>
        succeed(await past.read(revision, type.name, (view) => pageOf(types, view, type.name, query.value))),
    })
    if (!page.ok) return sendProblem(reply, page.problem)
    const { documents, total, revision, warnings } = page.value.value
    sendPageHeaders(setRevision(reply, revision), request.url, query.value, total)
    if (warnings.length > 0) reply.header('Warning', warningHeaders(warnings))
    return reply.send(documents)
  })

  app.get<ById>(`/${type.name}/:id`, READ, async (request, reply) => {
    const found = await readEntry(service, request, reply, type, request.params.id)
    if (!found.ok) return sendProblem(reply, found.problem)
    const entry = found.value.value
    const unchanged = matchesEtag(request.headers['if-none-match'], etagOf(entry))
    reply.header('ETag', etagOf(entry))
    return unchanged ? reply.code(304).send() : reply.send(entry.document)
  })
}

/** The documents of a page, how many there are on all of them, and the revision of the fleet they are from. */
function* pageOf(
  { cluster }: Types,
  view: View,
  type: string,
  query: ListQuery,
): Steps<{ documents: Document[]; total: number; revision: number; warnings: readonly string[] }> {
  const documents: Document[] = []
  const keys = query.selector && new UnknownKeys(cluster, query.selector)
  const page = new PageWindow(query)
  for (const { document } of view.all(type)) {
    yield
    keys?.see(document)
    if (page.takes(document)) documents.push(document)
  }
  return { documents, total: page.total, revision: view.revision, warnings: keys?.warnings() ?? [] }
}

const WRITE_ROUTES: Record<
  WriteMethod,
  (app: FastifyInstance, service: Service, type: RegisteredType) => void
> = { post: createRoute, put: replaceRoute, patch: patchRoute, delete: deleteRoute }

function createRoute(app: FastifyInstance, service: Service, { name }: RegisteredType): void {
  app.post<WithBody>(`/${name}`, WRITE, (request, reply) => {
    const command = { op: 'create', type: name, document: request.body, path: '' } as const
    return answerWrite({ service, request, reply }, command, ({ after }, { id }) =>
      entryAnswer(after.get(name, id) as Entry, { status: 201, headers: { Location: `/${name}/${id}` } }),
    )
  })
}

function replaceRoute(app: FastifyInstance, service: Service, { name }: RegisteredType): void {
  app.put<ById & WithBody>(`/${name}/:id`, WRITE, (request, reply) => {
    const { id } = request.params
    const command = { op: 'replace', type: name, id, document: request.body, path: '' } as const
    return answerWrite({ service, request, reply }, command, ({ after }, { created }) =>
      entryAnswer(
        after.get(name, id) as Entry,
        created ? { status: 201, headers: { Location: `/${name}/${id}` } } : {},
      ),
    )
  })
}

function patchRoute(app: FastifyInstance, service: Service, { name }: RegisteredType): void {
  app.patch<ById & WithBody>(`/${name}/:id`, PATCH, (request, reply) => {
    const { id } = request.params
    const format = mediaTypeOf(request) === JSON_PATCH ? 'json' : 'merge'
    const command = { op: 'patch', type: name, id, patch: request.body, format, path: '' } as const
    return answerWrite({ service, request, reply }, command, ({ after }) =>
      entryAnswer(after.get(name, id) as Entry),
    )
  })
}

function deleteRoute(app: FastifyInstance, service: Service, type: RegisteredType): void {
  const { name } = type
  const flags = type === service.types.cluster.type ? ['purge'] : ['cascade']
  const options = { config: { access: 'write', flags }, preHandler: refuseBody } as const
  app.delete<ById>(`/${name}/:id`, options, (request, reply) => {
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
  })
}

function restoreRoute(app: FastifyInstance, service: Service, name: string): void {
  const restore = { config: { access: 'write' }, preHandler: refuseBody } as const
  app.post<ById>(`/${name}/:id/restore`, restore, (request, reply) => {
    const { id } = request.params
    const command = { op: 'restore', type: name, id, path: '' } as const
    return answerWrite({ service, request, reply }, command, ({ after }) =>
      entryAnswer(after.get(name, id) as Entry),
    )
  })
}

function clusterRoutes(app: FastifyInstance, service: Service): void {
  const { engine, types } = service
  const { name, singular, methods } = types.cluster.type

  // Takes back a deletion.
  if (methods.has('delete')) restoreRoute(app, service, name)

  app.get<{ Params: { id: string; endpoint: string }; Querystring: RawQuery }>(
    `/${name}/:id/inputs/:endpoint`,
    INPUTS,
    async (request, reply) => {
      const { id, endpoint } = request.params
      const type = findEndpoint(types, endpoint)
      if (!type.ok) return sendProblem(reply, type.problem)
      if (request.query.explain === 'true') return sendExplained(service, request, reply, type.value, id)
      const answer = await readAt(service, request, reply, {
        now: () => inputsIn(engine.state, type.value, id),
        earlier: async (past, revision) =>
          inputsIn(await past.cluster(revision, id, type.value), type.value, id),
      })
      if (!answer.ok) return sendProblem(reply, answer.problem)
      const { value, revision } = answer.value
      reply.raw.setHeader('X-Request-Id', request.id)
      sendAnswer(request.raw, reply.hijack().raw, { ...value, revision }, engine.draining)
      return reply
    },
  )

  function inputsIn(view: View, type: DeliveredType, id: string): Result<RenderedAnswer> {
    const served = servedTo(view, id)
    const cluster = served.get(name, id)
    return cluster ? succeed(renderInputs(served, types, type, cluster)) : notFound(singular, id)
  }
}

/** The same inputs, field by field, with where each comes from and who set it. */
async function sendExplained(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  type: DeliveredType,
  cluster: string,
): Promise<FastifyReply> {
  const at = parseAt(request.query as RawQuery)
  if (!at.ok) return sendProblem(reply, at.problem)
  const { engine, types } = service
  const explained = await inspectFor(service, request, async (past) => {
    const revision = await past.resolve(at.value ?? { revision: engine.state.revision }, '?at')
    if (!revision.ok) return revision
    const inputs = await explain(types, past, type, { cluster, revision: revision.value })
    return inputs.ok ? succeed({ revision: revision.value, inputs: inputs.value }) : inputs
  })
  if (!explained.ok) return sendProblem(reply, explained.problem)
  const { revision, inputs } = explained.value
  const { endpoint } = type.delivery
  return setRevision(reply, revision).send({ cluster, endpoint, revision, inputs })
}

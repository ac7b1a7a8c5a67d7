// Documents of every type: list, read, create, replace, patch, delete, and what belongs to one cluster.
import type { FastifyInstance } from 'fastify'
import type { Json } from '../../domain/json.ts'
import { notFound } from '../../domain/problem.ts'
import { renderInputs } from '../../domain/render-inputs.ts'
import type { Document } from '../../domain/resource-type.ts'
import type { Entry } from '../../domain/view.ts'
import type { RegisteredType } from '../../registry/build-types.ts'
import { matchesEtag, sendAnswer } from '../answer.ts'
import { accepts, JSON_PATCH, JSON_TYPE, MERGE_PATCH, mediaTypeOf } from '../body.ts'
import { listParameters, parseListQuery, sendPageHeaders } from '../list-query.ts'
import { findEndpoint } from '../poll-handler.ts'
import { sendProblem } from '../problem-response.ts'
import type { RawQuery } from '../query.ts'
import type { Service } from '../service.ts'
import { answerWrite, etagOf, sendEntry } from '../write.ts'

interface ById {
  Params: { id: string }
  Querystring: RawQuery
}
interface WithBody {
  Body: Json
  Querystring: RawQuery
}

const READ = { config: { access: 'read' } } as const
const WRITE = { config: { access: 'write' }, preHandler: accepts([JSON_TYPE]) } as const
const PATCH = {
  config: { access: 'write' },
  preHandler: accepts([JSON_TYPE, MERGE_PATCH, JSON_PATCH]),
} as const

export function documentRoutes(app: FastifyInstance, service: Service): void {
  for (const type of service.types.all) {
    readRoutes(app, service, type)
    writeRoutes(app, service, type)
  }
  clusterRoutes(app, service)
}

function readRoutes(app: FastifyInstance, { engine }: Service, type: RegisteredType): void {
  const list = { config: { access: 'read', parameters: listParameters(type) } } as const
  app.get<{ Querystring: RawQuery }>(`/${type.name}`, list, (request, reply) => {
    const query = parseListQuery(type, request.query)
    if (!query.ok) return sendProblem(reply, query.problem)
    const { limit, offset, matches } = query.value
    const page: Document[] = []
    let total = 0
    for (const { document } of engine.state.all(type.name)) {
      if (!matches(document)) continue
      if (total >= offset && page.length < limit) page.push(document)
      total++
    }
    sendPageHeaders(reply, request.url, query.value, total)
    return reply.send(page)
  })

  app.get<ById>(`/${type.name}/:id`, READ, (request, reply) => {
    const entry = engine.state.get(type.name, request.params.id)
    if (!entry) return sendProblem(reply, notFound(type.singular, request.params.id).problem)
    const unchanged = matchesEtag(request.headers['if-none-match'], etagOf(entry))
    return unchanged ? reply.code(304).header('ETag', etagOf(entry)).send() : sendEntry(reply, entry)
  })
}

function writeRoutes(app: FastifyInstance, service: Service, type: RegisteredType): void {
  const { name } = type

  app.post<WithBody>(`/${name}`, WRITE, (request, reply) => {
    const command = { op: 'create', type: name, document: request.body, path: '' } as const
    return answerWrite({ service, request, reply }, command, ({ after }, { id }) =>
      sendEntry(reply.header('Location', `/${name}/${id}`), after.get(name, id) as Entry, 201),
    )
  })

  app.put<ById & WithBody>(`/${name}/:id`, WRITE, (request, reply) => {
    const { id } = request.params
    const command = { op: 'replace', type: name, id, document: request.body, path: '' } as const
    return answerWrite({ service, request, reply }, command, ({ after }, { created }) => {
      if (created) reply.header('Location', `/${name}/${id}`)
      return sendEntry(reply, after.get(name, id) as Entry, created ? 201 : 200)
    })
  })

  app.patch<ById & WithBody>(`/${name}/:id`, PATCH, (request, reply) => {
    const { id } = request.params
    const format = mediaTypeOf(request) === JSON_PATCH ? 'json' : 'merge'
    const command = { op: 'patch', type: name, id, patch: request.body, format, path: '' } as const
    return answerWrite({ service, request, reply }, command, ({ after }) =>
      sendEntry(reply, after.get(name, id) as Entry),
    )
  })

  const flags = type.delivery ? ['cascade'] : ['purge']
  app.delete<ById>(`/${name}/:id`, { config: { access: 'write', flags } }, (request, reply) => {
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
    return answerWrite({ service, request, reply }, command, (_written, { removed }) => reply.send(removed))
  })
}

function clusterRoutes(app: FastifyInstance, service: Service): void {
  const { engine, types } = service
  const { name, singular } = types.cluster.type

  app.post<ById>(`/${name}/:id/restore`, { config: { access: 'write' } }, (request, reply) => {
    const { id } = request.params
    const command = { op: 'restore', type: name, id, path: '' } as const
    return answerWrite({ service, request, reply }, command, ({ after }) =>
      sendEntry(reply, after.get(name, id) as Entry),
    )
  })

  app.get<{ Params: { id: string; endpoint: string } }>(
    `/${name}/:id/inputs/:endpoint`,
    READ,
    (request, reply) => {
      const { id, endpoint } = request.params
      const type = findEndpoint(types, endpoint)
      const cluster = engine.state.get(name, id)
      if (!cluster) return sendProblem(reply, notFound(singular, id).problem)
      if (!type.ok) return sendProblem(reply, type.problem)
      sendAnswer(
        service,
        request.raw,
        reply.hijack().raw,
        renderInputs(engine.state, types, type.value, cluster),
      )
      return reply
    },
  )
}

// Named tokens: created, listed, rotated, revoked. Their secrets are answered once and never again.

import type { FastifyInstance, FastifyReply } from 'fastify'
import { JSON_TYPE } from '../../api/media-types.ts'
import { NEW_TOKEN_SCHEMA, ROTATION_SCHEMA } from '../../api/token-schema.ts'
import { isObject, type Json } from '../../base/json.ts'
import { type Detail, invalid, notFound, type Result, succeed } from '../../base/problem.ts'
import { type Grant, ROLES } from '../../domain/access/grant.ts'
import {
  asToken,
  DEFAULT_GRACE,
  GRACE,
  parseGrace,
  TOKENS,
  type Token,
  useKeyOf,
  withoutSecrets,
} from '../../domain/access/token.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import { findToken, newSecret, newToken } from '../../engine/token-secret.ts'
import { buildChecker } from '../../registry/validator.ts'
import { identityOf } from '../auth/identity.ts'
import { accepts, refuseBody } from '../request/body.ts'
import { parsePage, sendPageHeaders } from '../request/list-query.ts'
import { sendProblem } from '../request/problem-response.ts'
import { parseTimeAt, type RawQuery } from '../request/query.ts'
import { answerWrite } from '../request/run-write.ts'
import { etagOf } from '../request/write-answer.ts'
import type { Service } from '../service.ts'

interface ById {
  Params: { id: string }
}

const FILTERS = ['name', 'role', 'cluster'] as const
const LIST = { config: { access: 'admin', parameters: ['limit', 'offset', ...FILTERS] } } as const
const READ = { config: { access: 'admin' } } as const
const CREATE = { config: { access: 'admin' }, preHandler: accepts([JSON_TYPE]) } as const
const ROTATE = { config: { access: 'admin' }, preHandler: accepts([JSON_TYPE], { empty: true }) } as const
const REVOKE = { config: { access: 'admin' }, preHandler: refuseBody } as const

const checkNewToken = buildChecker(NEW_TOKEN_SCHEMA)
const checkRotation = buildChecker(ROTATION_SCHEMA)

export function tokenRoutes(app: FastifyInstance, service: Service): void {
  const { engine, now } = service

  async function present(tokens: readonly Token[]): Promise<object[]> {
    const uses = await engine.uses.of(tokens.map(useKeyOf))
    return tokens.map((token) => {
      const use = uses.get(useKeyOf(token))
      return {
        ...withoutSecrets(token),
        last_used_at: use?.time ?? null,
        last_used_from: use?.address ?? null,
      }
    })
  }

  app.get<{ Querystring: RawQuery }>('/tokens', LIST, async (request, reply) => {
    const details: Detail[] = []
    const page = parsePage(request.query, details)
    const { role } = request.query
    if (role !== undefined && !ROLES.some((known) => known === role))
      details.push({ path: '?role', message: `must be one of ${ROLES.join(', ')}, not "${role}"` })
    if (details.length > 0) return sendProblem(reply, invalid(details).problem)
    const { limit, offset } = page
    const wanted = FILTERS.filter((name) => request.query[name] !== undefined)
    const read = await engine.inspect(async () => {
      const found = Iterator.from(engine.state.all(TOKENS))
        .map(({ document }) => asToken(document))
        .filter((token) => wanted.every((name) => token[name] === request.query[name]))
        .toArray()
        .sort((a, b) => (a.name < b.name ? -1 : 1))
      return succeed({ total: found.length, tokens: await present(found.slice(offset, offset + limit)) })
    })
    if (!read.ok) return sendProblem(reply, read.problem)
    sendPageHeaders(reply, request.url, page, read.value.total)
    return reply.send(read.value.tokens)
  })

  /** Also when another process has just made it. */
  function find(text: string): Promise<Result<Found>> {
    return engine.inspect(async () => {
      const entry = findToken(engine.state, text)
      if (!entry) return notFound('token', text)
      const token = asToken(entry.document)
      return succeed({ entry, token, presented: (await present([token]))[0] as object })
    })
  }

  app.get<ById>('/tokens/:id', READ, async (request, reply) => {
    const found = await find(request.params.id)
    if (!found.ok) return sendProblem(reply, found.problem)
    return reply.header('ETag', etagOf(found.value.entry)).send(found.value.presented)
  })

  app.post<{ Body: Json }>('/tokens', CREATE, (request, reply) => {
    const parsed = parseNewToken(request.body)
    if (!parsed.ok) return sendProblem(reply, parsed.problem)
    const { name: createdBy } = identityOf(request)
    const { token, secret } = newToken({ ...parsed.value, createdBy }, now())
    const command = { op: 'create_token', token, path: '' } as const
    return answerWrite({ service, request, reply }, command, ({ after }) => ({
      status: 201,
      headers: { Location: `/tokens/${token.id}`, ...headersOf(after, token.id) },
      body: { ...withoutSecrets(token), last_used_at: null, last_used_from: null },
      shownOnce: { secret },
    }))
  })

  app.post<ById & { Body: Json | undefined }>(
    '/tokens/:id/rotate',
    ROTATE,
    async (request, reply): Promise<FastifyReply> => {
      const grace = graceIn(request.body)
      if (!grace.ok) return sendProblem(reply, grace.problem)
      const found = await find(request.params.id)
      if (!found.ok) return sendProblem(reply, found.problem)
      const { id, name } = found.value.token
      const { last_used_at, last_used_from } = found.value.presented as Record<string, unknown>
      const time = now()
      const { secret, kept } = newSecret(time)
      const graceEnd = new Date(time.getTime() + grace.value * 1000).toISOString()
      const command = { op: 'rotate_token', id, name, secret: kept, graceEnd, path: '' } as const
      return answerWrite({ service, request, reply }, command, ({ after }) => ({
        headers: headersOf(after, id),
        body: {
          ...withoutSecrets(asToken((after.get(TOKENS, id) as Entry).document)),
          last_used_at,
          last_used_from,
        },
        shownOnce: { secret },
      }))
    },
  )

  app.delete<ById>('/tokens/:id', REVOKE, async (request, reply): Promise<FastifyReply> => {
    const found = await find(request.params.id)
    if (!found.ok) return sendProblem(reply, found.problem)
    const { id, name } = found.value.token
    const command = { op: 'revoke_token', id, name, path: '' } as const
    return answerWrite({ service, request, reply }, command, () => ({ body: found.value.presented }))
  })
}

interface Found {
  readonly entry: Entry
  readonly token: Token
  readonly presented: object
}

function headersOf(view: View, id: string): Record<string, string> {
  return { ETag: etagOf(view.get(TOKENS, id) as Entry), 'Cache-Control': 'no-store' }
}

/** Who the service takes its caller for. */
export function whoamiRoute(app: FastifyInstance): void {
  app.get('/whoami', { config: { access: 'known' } }, (request, reply) => {
    const { name, via, grant, expiresAt } = identityOf(request)
    const { role, cluster, selector, types } = grant
    return reply.send({ name, via, role, cluster, selector, types, expires_at: expiresAt })
  })
}

function parseNewToken(
  body: Json,
): Result<{ readonly name: string; readonly grant: Grant; readonly expiresAt: string | undefined }> {
  const details = isObject(body) ? checkNewToken(body) : [{ path: '', message: 'must be an object' }]
  if (details.length > 0) return invalid(details)
  const { name, expires_at, ...grant } = body as { name: string; expires_at?: string } & Record<string, Json>
  const expiresAt = parseTimeAt(expires_at, '/expires_at', details)
  if (details.length > 0) return invalid(details)
  return succeed({ name, grant: grant as unknown as Grant, expiresAt })
}

/** In seconds. */
function graceIn(body: Json = {}): Result<number> {
  const details = isObject(body) ? checkRotation(body) : [{ path: '', message: 'must be an object' }]
  if (details.length > 0) return invalid(details)
  const { grace = DEFAULT_GRACE } = body as { grace?: string }
  const seconds = parseGrace(grace)
  if (seconds !== undefined) return succeed(seconds)
  return invalid([{ path: '/grace', message: `must be ${GRACE}, not "${grace}"` }])
}

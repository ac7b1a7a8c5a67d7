// Named tokens: created, listed, rotated, revoked. Their secrets are answered once and never again.
import type { FastifyInstance, FastifyReply } from 'fastify'
import { parseDuration } from '../../domain/duration.ts'
import type { Grant } from '../../domain/grant.ts'
import { isObject, type Json } from '../../domain/json.ts'
import { type Detail, invalid, notFound, type Result, succeed } from '../../domain/problem.ts'
import { asToken, TOKENS, type Token, withoutSecrets } from '../../domain/token.ts'
import type { Entry, View } from '../../domain/view.ts'
import { newSecret, newToken, tokenIdOf } from '../../engine/token-secret.ts'
import { NEW_TOKEN_SCHEMA, ROTATION_SCHEMA } from '../../registry/token-schema.ts'
import { buildChecker } from '../../registry/validator.ts'
import type { Identity } from '../auth.ts'
import { accepts, JSON_TYPE, refuseBody } from '../body.ts'
import { parsePage, sendPageHeaders } from '../list-query.ts'
import { sendProblem } from '../problem-response.ts'
import { parseTimeAt, type RawQuery } from '../query.ts'
import type { Service } from '../service.ts'
import { answerWrite } from '../write.ts'

interface ById {
  Params: { id: string }
}

const FILTERS = ['name', 'role', 'cluster'] as const
const LIST = { config: { access: 'admin', parameters: ['limit', 'offset', ...FILTERS] } } as const
const READ = { config: { access: 'admin' } } as const
const CREATE = { config: { access: 'admin' }, preHandler: accepts([JSON_TYPE]) } as const
const ROTATE = { config: { access: 'admin' }, preHandler: accepts([JSON_TYPE], { empty: true }) } as const
const REVOKE = { config: { access: 'admin' }, preHandler: refuseBody } as const
const DEFAULT_GRACE = '24h'
const MAX_GRACE_DAYS = 90

const checkNewToken = buildChecker(NEW_TOKEN_SCHEMA)
const checkRotation = buildChecker(ROTATION_SCHEMA)

export function tokenRoutes(app: FastifyInstance, service: Service): void {
  const { engine, now } = service

  async function present(tokens: readonly Token[]): Promise<Result<object[]>> {
    return engine.inspect(async () => {
      const uses = await engine.uses.of(tokens.map(({ id }) => id))
      return succeed(
        tokens.map((token) => {
          const use = uses.get(token.id)
          // An earlier token of the same name is another one.
          const isOurs = use !== undefined && use.time.slice(0, 16) >= token.created_at.slice(0, 16)
          return {
            ...withoutSecrets(token),
            last_used_at: isOurs ? use.time : null,
            last_used_from: isOurs ? use.address : null,
          }
        }),
      )
    })
  }

  app.get<{ Querystring: RawQuery }>('/tokens', LIST, async (request, reply) => {
    const details: Detail[] = []
    const page = parsePage(request.query, details)
    if (details.length > 0) return sendProblem(reply, invalid(details).problem)
    const { limit, offset } = page
    const wanted = FILTERS.filter((name) => request.query[name] !== undefined)
    const found = Iterator.from(engine.state.all(TOKENS))
      .map(({ document }) => asToken(document))
      .filter((token) => wanted.every((name) => token[name] === request.query[name]))
      .toArray()
      .sort((a, b) => (a.name < b.name ? -1 : 1))
    const presented = await present(found.slice(offset, offset + limit))
    if (!presented.ok) return sendProblem(reply, presented.problem)
    sendPageHeaders(reply, request.url, page, found.length)
    return reply.send(presented.value)
  })

  app.get<ById>('/tokens/:id', READ, async (request, reply) => {
    const entry = findToken(engine.state, request.params.id)
    if (!entry) return sendProblem(reply, notFound('token', request.params.id).problem)
    return sendOne(reply, asToken(entry.document))
  })

  async function sendOne(reply: FastifyReply, token: Token): Promise<FastifyReply> {
    const presented = await present([token])
    if (!presented.ok) return sendProblem(reply, presented.problem)
    return reply.send(presented.value[0])
  }

  app.post<{ Body: Json }>('/tokens', CREATE, (request, reply) => {
    const parsed = parseNewToken(request.body)
    if (!parsed.ok) return sendProblem(reply, parsed.problem)
    const createdBy = request.identity?.name ?? 'unknown'
    const { token, secret } = newToken({ ...parsed.value, createdBy }, now())
    const command = { op: 'create_token', token, path: '' } as const
    return answerWrite({ service, request, reply }, command, () => ({
      status: 201,
      headers: { Location: `/tokens/${token.id}`, 'Cache-Control': 'no-store' },
      body: { ...withoutSecrets(token), last_used_at: null, last_used_from: null },
      shownOnce: { secret },
    }))
  })

  app.post<ById & { Body: Json | undefined }>(
    '/tokens/:id/rotate',
    ROTATE,
    async (request, reply): Promise<FastifyReply> => {
      const grace = parseGrace(request.body)
      if (!grace.ok) return sendProblem(reply, grace.problem)
      const entry = findToken(engine.state, request.params.id)
      if (!entry) return sendProblem(reply, notFound('token', request.params.id).problem)
      const uses = await present([asToken(entry.document)])
      if (!uses.ok) return sendProblem(reply, uses.problem)
      const time = now()
      const { secret, kept } = newSecret(time)
      const graceEnd = new Date(time.getTime() + grace.value * 1000).toISOString()
      const command = {
        op: 'rotate_token',
        id: entry.id,
        name: asToken(entry.document).name,
        secret: kept,
        graceEnd,
        path: '',
      } as const
      return answerWrite({ service, request, reply }, command, ({ after }) => ({
        headers: { 'Cache-Control': 'no-store' },
        body: {
          ...uses.value[0],
          ...withoutSecrets(asToken((after.get(TOKENS, entry.id) as Entry).document)),
        },
        shownOnce: { secret },
      }))
    },
  )

  app.delete<ById>('/tokens/:id', REVOKE, (request, reply) => {
    const entry = findToken(engine.state, request.params.id)
    if (!entry) return sendProblem(reply, notFound('token', request.params.id).problem)
    const { id, name } = asToken(entry.document)
    const command = { op: 'revoke_token', id, name, path: '' } as const
    return answerWrite({ service, request, reply }, command, (_written, { removed }) => ({
      body: withoutSecrets(asToken(removed as Token & Entry['document'])),
    }))
  })
}

/** Who the service takes its caller for. */
export function whoamiRoute(app: FastifyInstance): void {
  app.get('/whoami', { config: { access: 'known' } }, (request, reply) => {
    const { name, via, grant, expiresAt } = request.identity as Identity
    const { role, cluster, selector, types } = grant
    return reply.send({ name, via, role, cluster, selector, types, expires_at: expiresAt })
  })
}

/** By its id or by its name. */
function findToken(view: View, text: string): Entry | undefined {
  return view.get(TOKENS, text) ?? view.get(TOKENS, tokenIdOf(text))
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
function parseGrace(body: Json | undefined): Result<number> {
  const details =
    body === undefined
      ? []
      : isObject(body)
        ? checkRotation(body)
        : [{ path: '', message: 'must be an object' }]
  if (details.length > 0) return invalid(details)
  const { grace = DEFAULT_GRACE } = (body ?? {}) as { grace?: string }
  const seconds = parseDuration(grace)
  if (seconds !== undefined && seconds <= MAX_GRACE_DAYS * 86_400) return succeed(seconds)
  const message = `must be a duration from 0s to ${MAX_GRACE_DAYS}d, such as 30m, 24h or 7d, not "${grace}"`
  return invalid([{ path: '/grace', message }])
}

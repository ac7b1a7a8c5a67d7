// Named tokens: created, listed, rotated, revoked. A secret is returned once and never again.
import { ref } from '../../api/component-ref.ts'
import { PAGES } from '../../api/limits.ts'
import { JSON_TYPE } from '../../api/media-types.ts'
import {
  IDENTITY_SCHEMA,
  ISSUED_TOKEN_SCHEMA,
  NEW_TOKEN_SCHEMA,
  ROTATION_SCHEMA,
  TOKEN_SCHEMA,
} from '../../api/token-schema.ts'
import type { CallerIdentity, ShownToken } from '../../api/wire-types.ts'
import { isObject, type Json } from '../../base/json.ts'
import { invalid, notFound, type Result, succeed } from '../../base/problem.ts'
import { type Grant, ROLES } from '../../domain/access/grant.ts'
import {
  asToken,
  DEFAULT_GRACE,
  TOKENS,
  type Token,
  useKeyOf,
  validSecrets,
  withoutSecrets,
} from '../../domain/access/token.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import { findToken, newSecret, newToken } from '../../engine/token-secret.ts'
import { buildChecker } from '../../registry/validator.ts'
import { identityOf } from '../auth/identity.ts'
import {
  example,
  json,
  ok,
  PREVIEWED,
  READING,
  READING_ONE,
  WRITING,
  WRITTEN_HEADERS,
} from '../openapi/openapi-operation.ts'
import { EXAMPLE_NAME, newTokenSchema, rotationSchema, tokenExamples } from '../openapi/openapi-tokens.ts'
import { pageIn, sendPageHeaders } from '../request/list-query.ts'
import { IF_MATCH, inPath, inQuery, pageOf } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { answerWrite } from '../request/run-write.ts'
import { graceEndIn, readTimeAt } from '../request/time-field.ts'
import { etagOf } from '../request/write-answer.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'

const checkNewToken = buildChecker(NEW_TOKEN_SCHEMA)
const checkRotation = buildChecker(ROTATION_SCHEMA)

const SCHEMAS = { token: TOKEN_SCHEMA, issued_token: ISSUED_TOKEN_SCHEMA, identity: IDENTITY_SCHEMA }
const ID = inPath('id', 'Its id, or its name.', { type: 'string', example: EXAMPLE_NAME })
const FILTERS = ['name', 'role', 'cluster'] as const

export function tokenRoutes(service: Service): Route[] {
  return [
    listRoute(service),
    createRoute(service),
    readRoute(service),
    revokeRoute(service),
    rotateRoute(service),
  ]
}

/** The identity and grant of the caller. */
export function whoamiRoutes(): Route[] {
  return [
    route({
      method: 'GET',
      path: '/whoami',
      access: 'known',
      tag: 'tokens',
      id: 'whoami',
      summary: "The caller's identity and role.",
      description: 'The role and scope that the credential of this request gives, and until when.',
      answers: { 200: ok('You.', ref('identity'), ['X-Request-Id']) },
      problems: READING,
      schemas: SCHEMAS,
      handler: (request, reply) => {
        const { name, via, grant, expiresAt } = identityOf(request)
        const { role, cluster, selector, types } = grant
        const body = { name, via, role, cluster, selector, types, expires_at: expiresAt }
        return reply.send(body as CallerIdentity)
      },
    }),
  ]
}

async function present({ engine, now }: Service, tokens: readonly Token[]): Promise<ShownToken[]> {
  const uses = await engine.uses.of(tokens.map(useKeyOf))
  return tokens.map((token) => {
    const use = uses.get(useKeyOf(token))
    return {
      ...withoutSecrets(token),
      last_used_at: use?.time ?? null,
      last_used_from: use?.address ?? null,
      valid_secrets: validSecrets(token, now()),
    }
  })
}

interface Found {
  readonly entry: Entry
  readonly token: Token
  readonly presented: ShownToken
}

/** Finds a token by id or name, also one that another process has just created. */
function find(service: Service, text: string): Promise<Result<Found>> {
  const { engine } = service
  return engine.inspect(async () => {
    const entry = findToken(engine.state, text)
    if (!entry) return notFound('token', text)
    const token = asToken(entry.document)
    return succeed({ entry, token, presented: (await present(service, [token]))[0] as ShownToken })
  })
}

function headersOf(view: View, id: string): Record<string, string> {
  return { ETag: etagOf(view.get(TOKENS, id) as Entry), 'Cache-Control': 'no-store' }
}

function listRoute(service: Service): Route {
  const { engine } = service
  return route({
    method: 'GET',
    path: '/tokens',
    access: 'admin',
    tag: 'tokens',
    id: 'list_tokens',
    summary: 'Tokens, ordered by name, never with their secrets. For admins.',
    description: 'A page at a time: limit and offset choose it, X-Total-Count and Link describe the rest.',
    parameters: [
      ...pageOf(PAGES),
      inQuery('name', 'Only the one of this name.'),
      inQuery('role', 'Only those of this role.', { type: 'string', enum: ROLES }),
      inQuery('cluster', 'Only those of this cluster.'),
    ],
    answers: {
      200: ok('Tokens.', { type: 'array', items: ref('token') }, ['X-Request-Id', 'X-Total-Count', 'Link']),
    },
    problems: READING,
    schemas: SCHEMAS,
    handler: async (request, reply) => {
      const { query } = request
      const page = pageIn(query)
      const wanted = FILTERS.filter((name) => query[name] !== undefined)
      const read = await engine.inspect(async () => {
        const found = Iterator.from(engine.state.all(TOKENS))
          .map(({ document }) => asToken(document))
          .filter((token) => wanted.every((name) => token[name] === query[name]))
          .toArray()
          .sort((a, b) => (a.name < b.name ? -1 : 1))
        const shown = found.slice(page.offset, page.offset + page.limit)
        return succeed({ total: found.length, tokens: await present(service, shown) })
      })
      if (!read.ok) return sendProblem(reply, read.problem)
      sendPageHeaders(reply, request.url, page, read.value.total)
      return reply.send(read.value.tokens)
    },
  })
}

function createRoute(service: Service): Route {
  const { types, now } = service
  return route({
    method: 'POST',
    path: '/tokens',
    access: 'admin',
    tag: 'tokens',
    id: 'create_token',
    summary: 'Create a token. For admins.',
    description: `The secret is in this answer and nowhere else. Each role takes the fields that limit it: cluster for a cluster, selector for a mirror, selector and types for an editor. ${PREVIEWED}`,
    body: { content: json(newTokenSchema(types), JSON_TYPE, tokenExamples(types)) },
    answers: {
      200: ok('A preview with dry_run.', ref('preview'), WRITTEN_HEADERS),
      201: ok('The token with its secret, which is shown this once.', ref('issued_token'), [
        ...WRITTEN_HEADERS,
        'Location',
        'ETag',
      ]),
    },
    problems: WRITING,
    handler: (request, reply) => {
      const parsed = parseNewToken(request.body as Json)
      if (!parsed.ok) return sendProblem(reply, parsed.problem)
      const { name: createdBy } = identityOf(request)
      const { token, secret } = newToken({ ...parsed.value, createdBy }, now())
      const command = { op: 'create_token', token, path: '' } as const
      return answerWrite({ service, request, reply }, command, ({ after }) => ({
        status: 201,
        headers: { Location: `/tokens/${token.id}`, ...headersOf(after, token.id) },
        body: { ...withoutSecrets(token), last_used_at: null, last_used_from: null, valid_secrets: 1 },
        shownOnce: { secret },
      }))
    },
  })
}

function readRoute(service: Service): Route {
  return route<'id'>({
    method: 'GET',
    path: '/tokens/{id}',
    access: 'admin',
    tag: 'tokens',
    id: 'get_token',
    summary: 'One token, without its secret. For admins.',
    description: 'By id or name, with when and from where it was last used.',
    parameters: [ID],
    answers: { 200: ok('The token.', ref('token'), ['X-Request-Id', 'ETag']) },
    problems: READING_ONE,
    handler: async (request, reply) => {
      const found = await find(service, request.params.id)
      if (!found.ok) return sendProblem(reply, found.problem)
      return reply.header('ETag', etagOf(found.value.entry)).send(found.value.presented)
    },
  })
}

function revokeRoute(service: Service): Route {
  return route<'id'>({
    method: 'DELETE',
    path: '/tokens/{id}',
    access: 'admin',
    tag: 'tokens',
    id: 'revoke_token',
    summary: 'Revoke a token: it is rejected from then on. For admins.',
    description: `In force in every process within moments. ${PREVIEWED}`,
    parameters: [ID, IF_MATCH],
    answers: {
      200: ok(
        'The revoked token; a preview with dry_run.',
        { anyOf: [ref('token'), ref('preview')] },
        WRITTEN_HEADERS,
      ),
    },
    problems: WRITING,
    handler: async (request, reply) => {
      const found = await find(service, request.params.id)
      if (!found.ok) return sendProblem(reply, found.problem)
      const { id, name } = found.value.token
      const command = { op: 'revoke_token', id, name, path: '' } as const
      return answerWrite({ service, request, reply }, command, () => ({ body: found.value.presented }))
    },
  })
}

function rotateRoute(service: Service): Route {
  const { now } = service
  return route<'id'>({
    method: 'POST',
    path: '/tokens/{id}/rotate',
    access: 'admin',
    tag: 'tokens',
    id: 'rotate_token',
    summary: 'Give a token a new secret; earlier ones stay valid for a while. For admins.',
    description: `Both secrets are valid until grace is over, so that callers can change one by one. ${PREVIEWED}`,
    parameters: [ID, IF_MATCH],
    body: { content: json(rotationSchema(), JSON_TYPE, example({ grace: DEFAULT_GRACE })), isOptional: true },
    answers: {
      200: ok(
        'The token with its secret, which is shown this once; a preview with dry_run.',
        { anyOf: [ref('issued_token'), ref('preview')] },
        WRITTEN_HEADERS,
      ),
    },
    problems: WRITING,
    handler: async (request, reply) => {
      const time = now()
      const graceEnd = graceEndIn(request.body, checkRotation, time)
      if (!graceEnd.ok) return sendProblem(reply, graceEnd.problem)
      const found = await find(service, request.params.id)
      if (!found.ok) return sendProblem(reply, found.problem)
      const { id, name } = found.value.token
      const { last_used_at, last_used_from } = found.value.presented
      const { secret, kept } = newSecret(time)
      const command = {
        op: 'rotate_token',
        id,
        name,
        secret: kept,
        graceEnd: graceEnd.value,
        path: '',
      } as const
      return answerWrite({ service, request, reply }, command, ({ after }) => {
        const rotated = asToken((after.get(TOKENS, id) as Entry).document)
        return {
          headers: headersOf(after, id),
          body: {
            ...withoutSecrets(rotated),
            last_used_at,
            last_used_from,
            valid_secrets: validSecrets(rotated, time),
          },
          shownOnce: { secret },
        }
      })
    },
  })
}

function parseNewToken(
  body: Json,
): Result<{ readonly name: string; readonly grant: Grant; readonly expiresAt: string | undefined }> {
  const details = isObject(body) ? checkNewToken(body) : [{ path: '', message: 'must be an object' }]
  if (details.length > 0) return invalid(details)
  const { name, expires_at, ...grant } = body as { name: string; expires_at?: string } & Record<string, Json>
  const expiresAt = readTimeAt(expires_at, '/expires_at', details)
  if (details.length > 0) return invalid(details)
  return succeed({ name, grant: grant as unknown as Grant, expiresAt })
}

// Parses what a write needs besides its commands: author, options, preconditions, idempotency key.
import { hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { IDEMPOTENCY_KEY_PATTERN, MAX_MESSAGE } from '../../api/limits.ts'
import { isObject, type Json, own } from '../../base/json.ts'
import { fail, invalid, type Result, succeed } from '../../base/problem.ts'
import type { Expectation } from '../../domain/commands/command.ts'
import type { BatchAuthor } from '../../domain/commands/parse-batch.ts'
import { IMPACT_LIMIT } from '../../domain/delivery/impact.ts'
import type {
  Author,
  Idempotency,
  RolloutOptions,
  WriteOptions,
  Written,
} from '../../engine/write-options.ts'
import { identityOf } from '../auth/identity.ts'
import type { Service } from '../service.ts'
import { isPlan, NO_PLAN, type Query } from './parameters.ts'
import { operationsOf, parseRollout } from './parse-rollout.ts'
import { digestOf } from './send-json.ts'
import type { WriteAnswer } from './write-answer.ts'

const KEY = new RegExp(IDEMPOTENCY_KEY_PATTERN)

/** RFC 9110: If-Match expects one of these revisions, If-None-Match: * expects that the document does not exist. */
export function parseExpectation({ headers }: FastifyRequest): Result<Expectation | undefined> {
  const match = headers['if-match']
  const noneMatch = headers['if-none-match']
  if (noneMatch !== undefined) {
    if (noneMatch.trim() === '*' && match === undefined) return succeed({ exists: false })
    return invalid([{ path: 'If-None-Match', message: 'must be * on a write, without If-Match beside it' }])
  }
  if (match === undefined) return succeed(undefined)
  if (match.trim() === '*') return succeed({ exists: true })
  const tags = match.split(',').map((tag) => /^\s*"(\d{1,16})"\s*$/.exec(tag)?.[1])
  if (tags.every((tag) => tag !== undefined)) return succeed({ revisions: tags.map(Number) })
  return fail({
    code: 'precondition_failed',
    reason: 'malformed_etag',
    message: `If-Match holds ${match}, which is not an ETag of this service`,
  })
}

/** A field of the body that fleet routes take in place of a query parameter or header. */
function bodyField({ body, routeOptions }: FastifyRequest, name: string): Json | undefined {
  return routeOptions.config.isFleet && isObject(body) ? own(body, name) : undefined
}

/** Who holds clusters by a batch, and when. */
export function batchAuthor({ now }: Pick<Service, 'now'>, request: FastifyRequest): BatchAuthor {
  return { by: identityOf(request).name, at: now().toISOString() }
}

export function parseAuthor({ addressOf }: Service, request: FastifyRequest): Result<Author> {
  const { headers, id } = request
  const header = headers['x-change-message']
  // Header bytes arrive as Latin-1; people write UTF-8.
  const sent = header === undefined ? null : Buffer.from(String(header), 'latin1').toString('utf8')
  const message = (bodyField(request, 'message') as string | undefined) ?? sent
  // The schema of the body limits the message in a body.
  if (sent !== null && [...sent].length > MAX_MESSAGE) {
    return invalid([{ path: 'X-Change-Message', message: `is longer than ${MAX_MESSAGE} characters` }])
  }
  // Not every database can store such text.
  if (message?.isWellFormed() === false || message?.includes('\0')) {
    const path = sent === null ? '/message' : 'X-Change-Message'
    return invalid([{ path, message: 'holds a NUL or half of a surrogate pair, which is no text' }])
  }
  return succeed({
    actor: identityOf(request).name,
    message,
    request_id: id,
    client_address: addressOf(request.raw),
  })
}

export function parseOptions(
  service: Pick<Service, 'engine' | 'types'>,
  request: FastifyRequest,
  defaultImpact: number | undefined,
): Result<WriteOptions> {
  const query = request.query as Query
  const field = (name: string): Json | undefined => bodyField(request, name)
  const dryRun = query.dry_run === 'true' || field('dry_run') === true
  const plan = (query.plan ?? field('plan')) as string | undefined
  const confirm = [
    query.confirm?.split(',') ?? [],
    (field('confirm') as readonly string[] | undefined) ?? [],
  ].flat()
  // A plan in the URL was checked with the query, so only one in the body can fail here.
  if (plan !== undefined && !isPlan(plan)) return invalid([{ path: '/plan', message: NO_PLAN }])
  const limit = query.impact_limit === undefined ? field('impact_limit') : Number(query.impact_limit)
  const impactLimit = (limit as number | undefined) ?? (dryRun ? IMPACT_LIMIT : defaultImpact)
  const rollout = rolloutOf(service, request)
  if (rollout && !rollout.ok) return rollout
  return succeed({
    dryRun,
    ...(rollout && { rollout: rollout.value }),
    ...((query.bypass === 'true' || field('bypass') === true) && { bypass: true }),
    confirmRemovals: confirm.includes('removals'),
    confirmFinish: confirm.includes('finish'),
    ...(plan !== undefined && { plan }),
    ...(impactLimit !== undefined && { impactLimit }),
  })
}

/** `?rollout=` names a strategy; a batch may have the waves themselves in its body. */
function rolloutOf(
  service: Pick<Service, 'engine' | 'types'>,
  request: FastifyRequest,
): Result<RolloutOptions> | undefined {
  const { rollout: strategy } = request.query as Query
  const operations = operationsOf(request.body as Json | undefined)
  if (strategy !== undefined) return parseRollout(service, { strategy }, { path: '?rollout', operations })
  const given = bodyField(request, 'rollout')
  return given === undefined ? undefined : parseRollout(service, given, { path: '/rollout', operations })
}

/** A caller that repeats a request with the same key gets the first response again. */
export async function parseIdempotency(
  request: FastifyRequest,
  answerTo: (written: Written) => WriteAnswer,
): Promise<Result<Idempotency | undefined>> {
  const key = request.headers['idempotency-key']
  if (key === undefined) return succeed(undefined)
  if (typeof key !== 'string' || !KEY.test(key)) {
    return invalid([
      { path: 'Idempotency-Key', message: 'must be 1 to 255 printable ASCII characters without spaces' },
    ])
  }
  const { method, url, body } = request
  return succeed({
    key: hash('sha256', `${identityOf(request).name}\n${key}`),
    fingerprint: await digestOf(`${method} ${url}\n`, body ?? null),
    response: (written) => JSON.stringify({ ...answerTo(written), shownOnce: undefined }),
  })
}

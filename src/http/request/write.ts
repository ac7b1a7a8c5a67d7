// From a request to a write and from its result to an answer: what all writing routes share.

import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { CHANGES_IN_PREVIEW, MAX_IMPACT_DETAILS, MAX_MESSAGE } from '../../api/limits.ts'
import { isObject, type Json, own } from '../../base/json.ts'
import { type Detail, fail, invalid, type Result, succeed } from '../../base/problem.ts'
import { type Grant, reaches } from '../../domain/access/grant.ts'
import { TOKENS } from '../../domain/access/token.ts'
import type { Command, Expectation, Outcome } from '../../domain/commands/command.ts'
import { IMPACT_LIMIT } from '../../domain/delivery/impact.ts'
import { beforeAndAfter, describeChange } from '../../domain/documents/describe-change.ts'
import type { Entry } from '../../domain/documents/view.ts'
import type { Author, Once, Work, WriteOptions, Written } from '../../engine/engine.ts'
import { onlyPreviews } from '../auth/auth.ts'
import { inLane, senderOf } from '../load/admission.ts'
import type { Service } from '../service.ts'
import { sendProblem } from './problem-response.ts'
import { parseWhole, type RawQuery } from './query.ts'
import { digestOf } from './send-json.ts'
import { warningHeaders } from './warning-header.ts'

export interface WriteRoute {
  readonly service: Service
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

/** An answer as a value, so that it can be kept and given again. */
export interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body: unknown
  /** Goes with the body the first time, and is not kept. */
  readonly shownOnce?: object
}

/** Runs one command and sends its answer, or the problem. */
export async function answerWrite(
  route: WriteRoute,
  command: Command & { readonly op: string },
  answer: (written: Written, outcome: Outcome) => Answer,
): Promise<FastifyReply> {
  const expect = parseExpectation(route.request)
  if (!expect.ok) return sendProblem(route.reply, expect.problem)
  const work = [{ ...command, ...(expect.value && { expect: expect.value }) }]
  const counted = [
    'type' in command ? command.type : command.op.endsWith('_token') ? TOKENS : 'patches',
    command.op,
  ] as const
  return runWrite(route, work, counted, (written) => answer(written, written.outcomes[0] as Outcome))
}

/** Runs work on many documents; what it means for clusters is always told. */
export function answerFleetWrite(route: WriteRoute, work: Work, op: string): Promise<FastifyReply> {
  return runWrite(route, work, ['fleet', op], ({ revision, changes, impact, warnings, plan }) => ({
    body: { revision, changes: changes.length, impact, warnings, plan },
  }))
}

async function runWrite(
  { service, request, reply }: WriteRoute,
  work: Work,
  [type, op]: readonly [type: string, op: string],
  answer: (written: Written) => Answer,
): Promise<FastifyReply> {
  const author = parseAuthor(service, request)
  if (!author.ok) return sendProblem(reply, author.problem)
  const fleet = type === 'fleet'
  const options = parseOptions(request, fleet ? IMPACT_LIMIT : undefined)
  if (!options.ok) return sendProblem(reply, options.problem)
  const answerTo = (written: Written): Answer => withHeaders(answer(written), written)
  const once = await parseOnce(request, answerTo)
  if (!once.ok) return sendProblem(reply, once.problem)
  const { dryRun = false } = options.value
  const grant = request.identity?.grant as Grant
  // What says so in its body is not known to be a preview before.
  if (!dryRun && !reaches(grant, 'editor')) return sendProblem(reply, onlyPreviews(grant))
  const sender = senderOf(service, request, dryRun ? 'preview' : 'write')
  const { caller, signal } = sender
  const write = (): Promise<Result<Written>> =>
    service.engine.write(work, author.value, {
      ...options.value,
      grant,
      caller,
      signal,
      ...(once.value && !dryRun && { once: once.value }),
    })
  const result = await (dryRun ? inLane(service.admission.costly, sender, write) : write())
  service.metrics.countWrite(type, op, result.ok ? outcomeOf(result.value, dryRun) : result.problem.code)
  if (!result.ok) return sendProblem(reply, result.problem)
  const { replayed, answer: kept } = result.value
  if (replayed !== undefined) return send(reply.header('Idempotent-Replayed', 'true'), JSON.parse(replayed))
  if (kept !== undefined) return send(reply, JSON.parse(kept))
  return send(reply, dryRun ? preview(service, result.value) : answerTo(result.value))
}

function outcomeOf({ changes, replayed }: Written, dryRun: boolean): string {
  if (dryRun) return 'previewed'
  if (replayed !== undefined) return 'replayed'
  return changes.length > 0 ? 'done' : 'unchanged'
}

function send(reply: FastifyReply, { status = 200, headers = {}, body, shownOnce }: Answer): FastifyReply {
  return reply
    .code(status)
    .headers(headers)
    .send(shownOnce ? { ...(body as object), ...shownOnce } : body)
}

function withHeaders(answer: Answer, { revision, changes, warnings }: Written): Answer {
  const headers = {
    ...answer.headers,
    'X-Revision': String(revision),
    'X-Change-Count': String(changes.length),
    ...(warnings.length > 0 && { Warning: warningHeaders(warnings) }),
  }
  return { ...answer, headers }
}

function preview({ types }: Service, written: Written): Answer {
  const { revision, changes, impact, warnings, plan, removals } = written
  const described = changes
    .slice(0, CHANGES_IN_PREVIEW)
    .map((change) => describeChange(beforeAndAfter(change), types.cluster.type.name))
  const needed = removals.map((reason) => `needs confirm=removals: ${reason}`)
  return {
    body: {
      dry_run: true,
      base_revision: revision,
      change_count: changes.length,
      changes: described,
      impact,
      warnings: [...needed, ...warnings],
      requires_confirmation: removals.length > 0 ? ['removals'] : [],
      plan,
    },
  }
}

/** RFC 9110: If-Match wants one of these revisions, If-None-Match: * wants nothing to be there. */
function parseExpectation({ headers }: FastifyRequest): Result<Expectation | undefined> {
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
    message: `If-Match holds ${match}, which is not an ETag of this service`,
  })
}

/** Routes for the whole fleet take the same in their body. */
function bodyField({ body, routeOptions }: FastifyRequest, name: string): Json | undefined {
  return routeOptions.config.fleet && isObject(body) ? own(body, name) : undefined
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Takes message, dry_run, plan, confirm and impact_limit in its body too. */
    fleet?: boolean
  }
}

function parseAuthor({ addressOf }: Service, request: FastifyRequest): Result<Author> {
  const { headers, identity, id } = request
  const header = headers['x-change-message']
  // Header bytes arrive as Latin-1; people write UTF-8.
  const sent = header === undefined ? null : Buffer.from(String(header), 'latin1').toString('utf8')
  const message = (bodyField(request, 'message') as string | undefined) ?? sent
  // The one in a body is counted by its schema.
  if (sent !== null && [...sent].length > MAX_MESSAGE) {
    return invalid([{ path: 'X-Change-Message', message: `is longer than ${MAX_MESSAGE} characters` }])
  }
  // Not every database takes these, and nobody means them.
  if (message?.isWellFormed() === false || message?.includes('\0')) {
    const path = sent === null ? '/message' : 'X-Change-Message'
    return invalid([{ path, message: 'holds a NUL or half of a surrogate pair, which is no text' }])
  }
  return succeed({
    actor: identity?.name ?? 'unknown',
    message,
    request_id: id,
    client_address: addressOf(request.raw),
  })
}

function parseOptions(request: FastifyRequest, defaultImpact: number | undefined): Result<WriteOptions> {
  const query = request.query as RawQuery
  const details: Detail[] = []
  const field = (name: string): Json | undefined => bodyField(request, name)
  const dryRun = query.dry_run === 'true' || field('dry_run') === true
  const plan = (query.plan ?? field('plan')) as string | undefined
  const confirm = [query.confirm ?? [], (field('confirm') as readonly string[] | undefined) ?? []].flat()
  const limit =
    parseWhole(query.impact_limit, 'impact_limit', MAX_IMPACT_DETAILS, details) ?? field('impact_limit')
  if (plan !== undefined && !/^sha256:[0-9a-f]{64}$/.test(plan)) {
    const path = query.plan === undefined ? '/plan' : '?plan'
    details.push({ path, message: 'must be a plan that a preview answered: sha256: and 64 hex digits' })
  }
  for (const name of confirm.filter((item) => item !== 'removals')) {
    details.push({ path: '?confirm', message: `must be removals, not "${name}"` })
  }
  if (details.length > 0) return invalid(details)
  const impactLimit = (limit as number | undefined) ?? (dryRun ? IMPACT_LIMIT : defaultImpact)
  return succeed({
    dryRun,
    confirmRemovals: confirm.includes('removals'),
    ...(plan !== undefined && { plan }),
    ...(impactLimit !== undefined && { impactLimit }),
  })
}

/** A caller that repeats a request with the same key gets the first answer again. */
async function parseOnce(
  request: FastifyRequest,
  answerTo: (written: Written) => Answer,
): Promise<Result<Once | undefined>> {
  const key = request.headers['idempotency-key']
  if (key === undefined) return succeed(undefined)
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key)) {
    return invalid([
      { path: 'Idempotency-Key', message: 'must be 1 to 255 printable ASCII characters without spaces' },
    ])
  }
  const { method, url, body, identity } = request
  return succeed({
    key: hash('sha256', `${identity?.name}\n${key}`),
    fingerprint: await digestOf(`${method} ${url}\n`, body ?? null),
    answer: (written) => JSON.stringify({ ...answerTo(written), shownOnce: undefined }),
  })
}

export function entryAnswer(entry: Entry, more: Pick<Answer, 'status' | 'headers'> = {}): Answer {
  return { ...more, headers: { ...more.headers, ETag: etagOf(entry) }, body: entry.document }
}

export function etagOf({ revision }: Entry): string {
  return `"${revision}"`
}

// From a request to commands and from their result to an answer: what all writing routes share.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Command, Expectation, Outcome } from '../domain/command.ts'
import { fail, invalid, type Result, succeed } from '../domain/problem.ts'
import type { Entry } from '../domain/view.ts'
import type { Author, Written } from '../engine/engine.ts'
import { sendProblem } from './problem-response.ts'
import type { Service } from './service.ts'

const MAX_MESSAGE = 1000

interface WriteRoute {
  readonly service: Service
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

/** Runs one command and sends its answer, or the problem. */
export async function answerWrite(
  { service, request, reply }: WriteRoute,
  command: Command,
  send: (written: Written, outcome: Outcome) => FastifyReply,
): Promise<FastifyReply> {
  const result = await runWrite(service, request, command)
  if (!result.ok) return sendProblem(reply, result.problem)
  const { revision, warnings, outcomes } = result.value
  reply.header('X-Revision', revision)
  if (warnings.length > 0) reply.header('Warning', warnings.map(toWarning))
  return send(result.value, outcomes[0] as Outcome)
}

async function runWrite(
  { engine, metrics }: Service,
  request: FastifyRequest,
  command: Command,
): Promise<Result<Written>> {
  const expect = parseExpectation(request)
  if (!expect.ok) return expect
  const author = parseAuthor(request)
  if (!author.ok) return author
  const result = await engine.write(
    [{ ...command, ...(expect.value && { expect: expect.value }) }],
    author.value,
  )
  const outcome = result.ok ? (result.value.changes.length > 0 ? 'done' : 'unchanged') : result.problem.code
  metrics.countWrite('type' in command ? command.type : 'patches', command.op, outcome)
  return result
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

function parseAuthor({ headers, identity, id }: FastifyRequest): Result<Author> {
  const header = headers['x-change-message']
  // Header bytes arrive as Latin-1; people write UTF-8.
  const message = header === undefined ? null : Buffer.from(String(header), 'latin1').toString('utf8')
  if (message !== null && message.length > MAX_MESSAGE) {
    return invalid([{ path: 'X-Change-Message', message: `is longer than ${MAX_MESSAGE} characters` }])
  }
  return succeed({ actor: identity?.name ?? 'unknown', message, request_id: id })
}

export function sendEntry(reply: FastifyReply, entry: Entry, status = 200): FastifyReply {
  return reply.code(status).header('ETag', etagOf(entry)).send(entry.document)
}

export function etagOf({ revision }: Entry): string {
  return `"${revision}"`
}

/** RFC 7234's miscellaneous persistent warning, as Kubernetes sends them. */
function toWarning(text: string): string {
  return `299 flux-resourceset "${text.replaceAll(/["\\]/g, '\\$&')}"`
}

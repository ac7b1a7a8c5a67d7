// Runs the write of a route: parses the request, calls the engine, sends the response.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { invalid, type Result, succeed } from '../../base/problem.ts'
import { may, type Permission } from '../../domain/access/permissions.ts'
import type { Command, Outcome, WriteCommand } from '../../domain/commands/command.ts'
import { IMPACT_LIMIT } from '../../domain/delivery/impact.ts'
import type { Types } from '../../domain/types/resource-type.ts'
import type { WriteOptions, Written } from '../../engine/write-options.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import type { Span } from '../../runtime/spans.ts'
import { identityOf } from '../auth/identity.ts'
import { onlyPreviews } from '../auth/require-access.ts'
import { inLane, senderOf } from '../load/callers.ts'
import { previewRollout, type RolloutPreview } from '../rollouts/preview-rollout.ts'
import type { Service } from '../service.ts'
import { sendProblem } from './problem-response.ts'
import {
  fleetAnswer,
  previewAnswer,
  rolloutAnswer,
  sendWriteAnswer,
  type WriteAnswer,
  withWriteHeaders,
} from './write-answer.ts'
import { parseAuthor, parseExpectation, parseIdempotency, parseOptions } from './write-request.ts'

export interface WriteRoute {
  readonly service: Service
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  /** What the caller needs in order not only to preview it; `write` by default. */
  readonly permission?: Permission
}

/** Runs one command and sends its response, or the problem. */
export async function answerWrite(
  route: WriteRoute,
  command: Command & { readonly op: string },
  answer: (written: Written, outcome: Outcome) => WriteAnswer,
  more: WriteOptions = {},
): Promise<FastifyReply> {
  const expect = parseExpectation(route.request)
  if (!expect.ok) return sendProblem(route.reply, expect.problem)
  const commands = [{ ...command, ...(expect.value && { expect: expect.value }) }]
  const counted = [typeWritten(route.service.types, command), command.op] as const
  const answerTo = (written: Written): WriteAnswer => answer(written, written.outcomes[0] as Outcome)
  return answerCommands(route, commands, counted, answerTo, more)
}

/** The type for metrics; commands on patches and some of system types name no type. */
function typeWritten({ system }: Types, command: Command): string {
  if ('type' in command) return command.type
  return system.all.find(({ operations }) => operations?.includes(command.op))?.name ?? 'patches'
}

/** Runs commands on many documents; the impact is always part of the response. */
export function answerFleetWrite(
  route: WriteRoute,
  commands: readonly WriteCommand[],
  op: string,
): Promise<FastifyReply> {
  return answerCommands(route, commands, ['fleet', op], fleetAnswer)
}

const NO_REASON = invalid([
  {
    path: 'X-Change-Message',
    message: 'is required with bypass, or a message in the body: why it cannot wait',
  },
]).problem

/** Runs commands of one kind, counted by type and operation; `more` is what the route itself knows of the write. */
export async function answerCommands(
  { service, request, reply, permission = 'write' }: WriteRoute,
  commands: readonly WriteCommand[],
  [type, op]: readonly [type: string, op: string],
  answer: (written: Written) => WriteAnswer,
  more: WriteOptions = {},
): Promise<FastifyReply> {
  const author = parseAuthor(service, request)
  if (!author.ok) return sendProblem(reply, author.problem)
  const fleet = type === 'fleet'
  const options = parseOptions(service, request, fleet ? IMPACT_LIMIT : undefined)
  if (!options.ok) return sendProblem(reply, options.problem)
  if (options.value.bypass && !author.value.message) return sendProblem(reply, NO_REASON)
  const answerTo = (written: Written): WriteAnswer =>
    withWriteHeaders(
      written.staged && !more.rollout ? rolloutAnswer(written, written.staged) : answer(written),
      written,
    )
  const idempotency = await parseIdempotency(request, answerTo)
  if (!idempotency.ok) return sendProblem(reply, idempotency.problem)
  const { dryRun = false } = options.value
  const { grant } = identityOf(request)
  // A fleet write may ask for a dry run in its body, which `requireAccess` has not read.
  if (!dryRun && !may(grant, permission)) return sendProblem(reply, onlyPreviews(grant))
  const sender = senderOf(service, request, dryRun ? 'preview' : 'write')
  const { caller, signal } = sender
  const span = beginSpan(service, request, type, op)
  const write = (): Promise<Result<Written>> =>
    service.engine.write(commands, author.value, {
      ...options.value,
      ...more,
      grant,
      caller,
      signal,
      span,
      ...(idempotency.value && !dryRun && { idempotency: idempotency.value }),
    })
  const started = performance.now()
  const preview = (): Promise<Result<Previewed>> => previewWrite(service, write, signal)
  const running: Promise<Result<Previewed>> = dryRun
    ? inLane(service.admission.costly, sender, preview)
    : write()
  const result = await running.catch((error: unknown) => {
    span?.end('internal_error')
    throw error
  })
  const outcome = result.ok ? outcomeOf(result.value, dryRun) : result.problem.code
  service.metrics.countWrite(type, op, outcome, (performance.now() - started) / 1000)
  endSpan(span, result, outcome)
  if (!result.ok) return sendProblem(reply, result.problem)
  const { replayed, response: kept } = result.value
  if (replayed !== undefined)
    return sendWriteAnswer(reply.header('Idempotent-Replayed', 'true'), JSON.parse(replayed))
  if (kept !== undefined) return sendWriteAnswer(reply, JSON.parse(kept))
  if (!dryRun) return sendWriteAnswer(reply, answerTo(result.value))
  return sendWriteAnswer(reply, previewAnswer(service.types, result.value, result.value.planned))
}

interface Previewed extends Written {
  readonly planned?: RolloutPreview
}

/** A preview is one piece of work, what it says of a rollout included: it ends when its caller leaves, or takes too long. */
async function previewWrite(
  service: Service,
  write: () => Promise<Result<Written>>,
  signal: AbortSignal | undefined,
): Promise<Result<Previewed>> {
  const result = await write()
  if (!result.ok || !result.value.staged) return result
  const planned = await runTimeSliced(previewRollout(service, result.value.staged), signal)
  return succeed({ ...result.value, planned })
}

/** Names and attributes are of our own routes and types: nothing of what was sent. */
function beginSpan(
  { tracer }: Service,
  { method, headers, id, routeOptions }: FastifyRequest,
  type: string,
  op: string,
): Span | undefined {
  const parent = headers.traceparent
  return tracer?.start(`${op} ${type}`, typeof parent === 'string' ? parent : undefined, {
    'http.request.method': method,
    'http.route': routeOptions.url ?? '',
    'flux_resourceset.request_id': id,
  })
}

function endSpan(span: Span | undefined, result: Result<Written>, outcome: string): void {
  span?.set({ 'flux_resourceset.result': outcome })
  if (result.ok) {
    const { revision, changes } = result.value
    span?.set({ 'flux_resourceset.revision': revision, 'flux_resourceset.changes': changes.length })
  }
  // A refusal is no failure of the service.
  span?.end(outcome === 'unavailable' ? outcome : undefined)
}

function outcomeOf({ changes, replayed }: Written, dryRun: boolean): string {
  if (dryRun) return 'previewed'
  if (replayed !== undefined) return 'replayed'
  return changes.length > 0 ? 'done' : 'unchanged'
}

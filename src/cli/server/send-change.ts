// Every write goes through here: previews, questions on a terminal, plans and confirmations.

import type { Preview } from '../../api/wire-types.ts'
import { isObject, type Json } from '../../base/json.ts'
import { STATUS_KEYS } from '../../domain/access/selector-subjects.ts'
import { unmet, usage } from '../failure.ts'
import { agree, isAsked } from '../input/agree.ts'
import { INTERRUPTED } from '../input/ask.ts'
import { questionFor } from '../input/change-question.ts'
import { checkWriteFlags, oneLine, type WriteFlags } from '../input/write-flags.ts'
import { describePreview } from '../output/change-report.ts'
import { noteImpact, receivers } from '../output/impact-report.ts'
import { startProgress } from '../output/progress.ts'
import type { Session } from '../session.ts'
import type { ApiResponse } from './api.ts'
import { clusterNoun } from './nouns.ts'
import { Refusal } from './refusal.ts'
import { warningsIn } from './response-warnings.ts'

export interface WriteRequest {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string | boolean | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Json
  /** How many parts it has; with a size, progress is shown. */
  readonly size?: number
}

/** The preview of a dry run, or the response to a write. */
export type Sent =
  | { readonly preview: Preview; readonly response?: undefined }
  | { readonly response: ApiResponse; readonly preview?: undefined }

/**
 * Sends a write. One that touches several clusters or takes something from one is sent only after somebody has agreed to
 * its preview, on a terminal or by a flag.
 */
export async function sendChange(session: Session, flags: WriteFlags, request: WriteRequest): Promise<Sent> {
  checkWriteFlags(flags)
  if (flags.dryRun) return { preview: await preview(session, flags, request) }
  const agreed = await agreeTo(session, flags, request)
  const interrupted = (): void => {
    session.warn('interrupted while the change was on its way: it is made wholly or not at all. See the log')
    process.exit(INTERRUPTED)
  }
  process.once('SIGINT', interrupted)
  try {
    const response = await withProgress(session, request, 'Applying', () =>
      send(session, { ...flags, ...agreed }, request, {}),
    )
    for (const warning of warningsIn(response)) session.warn(warning)
    noteRevision(session, flags, response)
    return { response }
  } catch (error) {
    if (error instanceof Refusal && error.impact) noteImpact(session, error.impact)
    throw error
  } finally {
    process.removeListener('SIGINT', interrupted)
  }
}

/** With --wait, the clusters of what was changed are waited for; where nothing was, there is nothing to wait for. */
function noteRevision({ awaited }: Session, { wait }: WriteFlags, { headers }: ApiResponse): void {
  if (wait && headers['x-change-count'] !== '0')
    awaited.push({ revision: Number(headers['x-revision']), goal: wait })
}

/** Sends operations that are done together or not at all. */
export async function sendBatch(
  session: Session,
  flags: WriteFlags,
  operations: readonly Json[],
  size?: number,
): Promise<Sent> {
  const batch = (named: readonly Json[]): WriteRequest => ({
    method: 'POST',
    path: '/batch',
    body: { operations: named },
    ...(size !== undefined && { size }),
  })
  const request = batch(operations)
  const [operation, ...others] = operations
  if (flags.dryRun || !operations.some(selectsByStatus)) return sendChange(session, flags, request)
  if (others.length > 0 || !isObject(operation))
    throw usage('a selector over status goes with one operation alone: name the clusters', LIST_FIRST)
  const { selector, ...rest } = operation
  const clusters = changedClusters(session, await preview(session, flags, request))
  if (clusters.length === 0) throw unmet(`no cluster that (${selector}) selects would change`)
  return sendChange(session, flags, batch([{ ...rest, clusters }]))
}

const LIST_FIRST = 'cluster list --selector shows what a selector matches'
const BY_STATUS = new RegExp(`(?:^|[,\\s])(?:${STATUS_KEYS.join('|')})(?![-\\w./])`)

/** A write takes no such selector: between preview and write, status changes by itself. */
function selectsByStatus(operation: Json): boolean {
  return isObject(operation) && typeof operation.selector === 'string' && BY_STATUS.test(operation.selector)
}

function changedClusters({ nouns }: Session, { changes, change_count: count }: Preview): string[] {
  if (changes.length < count)
    throw usage(`this would change ${count} documents, too many to name: narrow the selector`, LIST_FIRST)
  const { name } = clusterNoun(nouns)
  return changes.filter(({ type }) => type === name).map(({ id }) => id)
}

async function preview(session: Session, flags: WriteFlags, request: WriteRequest): Promise<Preview> {
  const call = (): Promise<ApiResponse> => send(session, flags, request, { dry_run: 'true' })
  return (await withProgress(session, request, 'Previewing', call)).body
}

/** Shows a bar while a large request is under way; never while a question waits for its answer. */
async function withProgress<T>(
  session: Session,
  { size }: WriteRequest,
  title: string,
  call: () => Promise<T>,
): Promise<T> {
  if (size === undefined) return call()
  const progress = startProgress(session, title)
  progress.show(0, size)
  try {
    return await call()
  } finally {
    progress.end()
  }
}

function send(
  { api }: Session,
  { message, confirm, plan }: WriteFlags,
  { method, path, query, headers, body }: WriteRequest,
  more: Record<string, string>,
): Promise<ApiResponse> {
  return api.write(method, path, {
    query: { ...query, ...more, plan, confirm },
    headers: { ...headers, ...(message !== undefined && { 'x-change-message': asHeader(message) }) },
    ...(body !== undefined && { body }),
  })
}

/** Headers are bytes on one line; the service reads them as UTF-8. */
function asHeader(message: string): string {
  return Buffer.from(oneLine(message), 'utf8').toString('latin1')
}

const PREVIEW_FIRST = 'look at it with --dry-run; then add --yes, or --plan with the plan that it prints'

/** Asks for agreement where it is needed; returns the plan and the confirmation that somebody agreed to. */
async function agreeTo(
  session: Session,
  flags: WriteFlags,
  request: WriteRequest,
): Promise<Pick<WriteFlags, 'plan' | 'confirm'>> {
  if (!isAsked(session, flags) || flags.plan !== undefined) return {}
  const seen = await preview(session, flags, request)
  const needsRemovals = seen.requires_confirmation.length > 0 && flags.confirm === undefined
  const question = questionFor(session.nouns, seen, needsRemovals)
  if (!question) return {}
  const hint = `${PREVIEW_FIRST}${needsRemovals ? '; and --confirm removals' : ''}`
  const summary = receivers(seen.impact)
  const isAgreed = await agree(session, { ...question, summary }, hint, (look) => describePreview(look, seen))
  if (!isAgreed) return {}
  return { plan: seen.plan, ...(needsRemovals && { confirm: 'removals' }) }
}

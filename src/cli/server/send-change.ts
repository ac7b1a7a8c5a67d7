// Every write goes through here: previews, questions on a terminal, plans and confirmations.

import type { RolloutStarted } from '../../api/rollout-schema.ts'
import type { Preview } from '../../api/wire-types.ts'
import { isObject, type Json } from '../../base/json.ts'
import { STATUS_KEYS } from '../../domain/access/selector-subjects.ts'
import { unmet, usage } from '../failure.ts'
import { agree, isAsked, type Question } from '../input/agree.ts'
import { INTERRUPTED } from '../input/ask.ts'
import { asServed, inManner, questionFor } from '../input/change-question.ts'
import { inFlags } from '../input/rollout-flags.ts'
import { checkWriteFlags, oneLine, type WriteFlags } from '../input/write-flags.ts'
import { describePreview } from '../output/change-report.ts'
import { noteImpact, receivers } from '../output/impact-report.ts'
import { startProgress } from '../output/progress.ts'
import { rolloutNamed } from '../rollouts/read-rollouts.ts'
import type { Session } from '../session.ts'
import type { ApiResponse, Call } from './api.ts'
import { batchOf, stagedRequest, type WriteRequest } from './change-request.ts'
import { clusterNoun } from './nouns.ts'
import { inFlagWords } from './own-words.ts'
import { Refusal, refusedBy } from './refusal.ts'
import { warningsIn } from './response-warnings.ts'

/** The preview of a dry run, the response to a write, or the rollout that it has become. */
export type Sent =
  | { readonly preview: Preview; readonly response?: undefined; readonly started?: undefined }
  | { readonly response: ApiResponse; readonly preview?: undefined; readonly started?: undefined }
  | { readonly started: RolloutStarted; readonly preview?: undefined; readonly response?: undefined }

/**
 * Sends a write. One that touches several clusters or takes something from one is sent only after somebody has agreed to
 * its preview, on a terminal or by a flag.
 */
export async function sendChange(session: Session, given: WriteFlags, written: WriteRequest): Promise<Sent> {
  checkWriteFlags(given)
  const flags = await withRolloutIds(session, given)
  const request = stagedRequest(flags, written)
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
    const started = startedBy(flags, response)
    noteAwaited(session, flags, response, started)
    return started ? { started } : { response }
  } catch (error) {
    if (error instanceof Refusal && error.impact) noteImpact(session, error.impact)
    throw error
  } finally {
    process.removeListener('SIGINT', interrupted)
  }
}

/** The flags with the ids of the rollouts that they name. */
async function withRolloutIds(session: Session, flags: WriteFlags): Promise<WriteFlags> {
  const { amend, supersede } = flags
  if (amend === undefined && supersede === undefined) return flags
  return {
    ...flags,
    ...(amend !== undefined && { amend: await rolloutNamed(session, amend) }),
    ...(supersede !== undefined && { supersede: await rolloutNamed(session, supersede) }),
  }
}

/** The rollout that a write has started or amended; undefined where it reached all its clusters at once. */
function startedBy(
  { amend }: WriteFlags,
  { status, body, headers }: ApiResponse,
): RolloutStarted | undefined {
  if (status === ACCEPTED) return body
  if (amend === undefined) return undefined
  return { rollout: body, revision: Number(headers['x-revision']), warnings: [] }
}

/** With --wait, the clusters of what was changed are waited for; where nothing was, there is nothing to wait for. */
function noteAwaited(
  { awaited }: Session,
  { wait }: WriteFlags,
  { headers }: ApiResponse,
  started: RolloutStarted | undefined,
): void {
  if (!wait) return
  if (started) awaited.push({ rollout: started.rollout.id })
  else if (headers['x-change-count'] !== '0')
    awaited.push({ revision: Number(headers['x-revision']), goal: wait })
}

/** HTTP 202. */
const ACCEPTED = 202

/** Sends operations that are done together or not at all. */
export async function sendBatch(
  session: Session,
  flags: WriteFlags,
  operations: readonly Json[],
  size?: number,
): Promise<Sent> {
  const request = batchOf(operations, size)
  const [operation, ...others] = operations
  if (flags.dryRun || !operations.some(selectsByStatus)) return sendChange(session, flags, request)
  if (others.length > 0 || !isObject(operation))
    throw usage('a selector over status goes with one operation alone: name the clusters', LIST_FIRST)
  const { selector, ...rest } = operation
  const clusters = changedClusters(session, await preview(session, flags, stagedRequest(flags, request)))
  if (clusters.length === 0) throw unmet(`no cluster that (${selector}) selects would change`)
  return sendChange(session, flags, batchOf([{ ...rest, clusters }]))
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

async function send(
  { api }: Session,
  flags: WriteFlags,
  { method, path, query, headers, body, size, isFile }: WriteRequest,
  more: Record<string, string>,
): Promise<ApiResponse> {
  const { message, confirm, plan, bypass } = flags
  const call: Call = {
    query: { ...query, ...more, plan, ...(confirm && { confirm }), ...(bypass && { bypass }) },
    headers: { ...headers, ...(message !== undefined && { 'x-change-message': asHeader(message) }) },
    ...(body !== undefined && { body }),
  }
  try {
    return await api.write(method, path, call)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    // Operations that were read from files are named by whoever has read them.
    const isOwn = size === undefined && isFile !== true
    throw error.reworded((text) => inFlags(flags, inFlagWords(isOwn ? withoutOperation(text) : text)))
  }
}

/** Which operation of a command it is nobody can see: `/operations/0/selector` is --selector. */
function withoutOperation(text: string): string {
  return text
    .replaceAll(/\/operations\/\d+\/selector(?![\w/])/g, '--selector')
    .replaceAll(/\/operations\/\d+\/clusters\/\d+:? ?/g, '')
    .replaceAll(/\/operations\/\d+\/(?:document|patch|ref|values)(?=\/)/g, '')
    .replaceAll(/\/operations\/\d+(?=\/)/g, '')
    .replaceAll(/\/operations\/\d+:? ?/g, '')
}

/** Headers are bytes on one line; the service reads them as UTF-8. */
function asHeader(message: string): string {
  return Buffer.from(oneLine(message), 'utf8').toString('latin1')
}

const PREVIEW_FIRST = 'look at it with --dry-run; then add --yes, or --plan with the plan that it prints'

function alwaysAsked(question: Question | undefined, { always }: WriteRequest): Question | undefined {
  if (!always) return question
  const { does, notes } = always
  if (!question) return { word: 'yes', ...always }
  const isOptional = false
  return { ...question, does: `${does}: ${question.does}`, notes: [...notes, ...question.notes], isOptional }
}

/** Asks for agreement where it is needed; returns the plan and the confirmation that somebody agreed to. */
async function agreeTo(
  session: Session,
  flags: WriteFlags,
  request: WriteRequest,
): Promise<Pick<WriteFlags, 'plan' | 'confirm'>> {
  if (!isAsked(session, flags) || flags.plan !== undefined) return {}
  const seen = await preview(session, flags, request)
  const [confirm] = seen.requires_confirmation.filter((what) => what !== flags.confirm)
  const { bypass = false } = flags
  // Nobody is asked in vain.
  const refused = seen.requires.filter(
    ({ lifted_by: by }) => by !== 'confirm' && !(by === 'bypass' && bypass),
  )
  const failure = refusedBy(refused)
  if (failure) throw failure
  const asked = questionFor(session.nouns, request.does === undefined ? seen : asServed(seen), confirm)
  const question = alwaysAsked(inManner(asked, seen, { ...flags, does: request.does }), request)
  if (!question) return {}
  const hint = `${PREVIEW_FIRST}${confirm === undefined ? '' : `; and --confirm ${confirm}`}`
  const summary = receivers(seen.impact)
  const isAgreed = await agree(session, { ...question, summary }, hint, (look) => describePreview(look, seen))
  if (!isAgreed) return {}
  return { plan: seen.plan, ...(confirm !== undefined && { confirm }) }
}

// Every write goes through here: previews, questions on a terminal, plans and confirmations.

import type { Command } from 'commander'
import type { Preview } from '../../api/wire-types.ts'
import type { Json } from '../../base/json.ts'
import { usage } from '../failure.ts'
import { agree, isAsked } from '../input/agree.ts'
import { INTERRUPTED } from '../input/ask.ts'
import { questionFor } from '../input/change-question.ts'
import { describePreview } from '../output/change-report.ts'
import { count } from '../output/count.ts'
import { describeImpact, receivers } from '../output/impact-report.ts'
import type { Printable } from '../output/print.ts'
import { startProgress } from '../output/progress.ts'
import { painter } from '../output/terminal.ts'
import type { Session } from '../session.ts'
import { type Answer, Refusal } from './api-client.ts'
import { nameOf } from './nouns.ts'
import { changesIn } from './revision-changes.ts'

export interface WriteFlags {
  readonly dryRun?: boolean
  readonly message?: string
  readonly confirm?: string
  readonly plan?: string
  readonly yes?: boolean
}

export function addWriteFlags(command: Command): Command {
  return command
    .option('--dry-run', 'show what would change, for documents and for clusters, and change nothing')
    .option('-m, --message <text>', 'why the change is made; kept with its revision')
    .option('--plan <digest>', 'do exactly what the preview with this plan showed, or nothing')
    .option('--confirm <what>', 'let what removes a lot pass the brake: removals')
    .option('-y, --yes', 'do not ask; needed where there is no terminal to ask on')
}

export interface Change {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string | boolean | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Json
  /** Of how many parts it is: that may take a while, which is shown. */
  readonly size?: number
}

export type Sent =
  | { readonly preview: Preview; readonly answer?: undefined }
  | { readonly answer: Answer; readonly preview?: undefined }

/**
 * Sends a write; one that touches several clusters or takes something from one only after somebody has agreed to what it
 * does, on a terminal or by a flag.
 */
export async function sendChange(session: Session, flags: WriteFlags, change: Change): Promise<Sent> {
  checkFlags(flags)
  if (flags.dryRun) return { preview: await preview(session, flags, change) }
  const agreed = await agreeTo(session, flags, change)
  const interrupted = (): void => {
    session.warn('interrupted while the change was on its way: it is made wholly or not at all. See the log')
    process.exit(INTERRUPTED)
  }
  process.once('SIGINT', interrupted)
  try {
    const answer = await shown(session, change, 'Applying', () =>
      send(session, { ...flags, ...agreed }, change, {}),
    )
    for (const warning of warningsIn(answer)) session.warn(warning)
    return { answer }
  } catch (error) {
    if (error instanceof Refusal && error.impact) {
      const look = { paint: painter(session.terminal, session.terminal.stderr), width: undefined }
      session.note(describeImpact(look, error.impact).trimEnd())
    }
    throw error
  } finally {
    process.removeListener('SIGINT', interrupted)
  }
}

/** Sends operations that are done together or not at all. */
export function sendBatch(
  session: Session,
  flags: WriteFlags,
  operations: readonly Json[],
  size?: number,
): Promise<Sent> {
  const change = { method: 'POST', path: '/batch', body: { operations } } as const
  return sendChange(session, flags, { ...change, ...(size !== undefined && { size }) })
}

/** What can be wrong with the flags themselves. */
export function checkFlags({ confirm, plan, message = '' }: WriteFlags): void {
  if (/\p{Cc}/u.test(oneLine(message))) throw usage('--message holds control characters: write it without')
  if (confirm !== undefined && confirm !== 'removals') {
    throw usage(`--confirm must be removals, not "${confirm}"`)
  }
  if (plan !== undefined && !/^sha256:[0-9a-f]{64}$/.test(plan)) {
    throw usage('--plan must be what a preview printed: sha256: and 64 hex digits')
  }
}

async function preview(session: Session, flags: WriteFlags, change: Change): Promise<Preview> {
  const call = (): Promise<Answer> => send(session, flags, change, { dry_run: 'true' })
  return (await shown(session, change, 'Previewing', call)).body
}

/** A bar while a large request is under way; never while a question waits for its answer. */
async function shown<T>(
  session: Session,
  { size }: Change,
  what: string,
  call: () => Promise<T>,
): Promise<T> {
  if (size === undefined) return call()
  const progress = startProgress(session, what)
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
  { method, path, query, headers, body }: Change,
  more: Record<string, string>,
): Promise<Answer> {
  return api.write(method, path, {
    query: { ...query, ...more, plan, confirm },
    headers: { ...headers, ...(message !== undefined && { 'x-change-message': asHeader(message) }) },
    ...(body !== undefined && { body }),
  })
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}

/** Headers are bytes on one line; the service reads them as UTF-8. */
function asHeader(message: string): string {
  return Buffer.from(oneLine(message), 'utf8').toString('latin1')
}

const LOOK_FIRST = 'look at it with --dry-run; then add --yes, or --plan with the plan that it prints'

/** What somebody agreed to. */
async function agreeTo(
  session: Session,
  flags: WriteFlags,
  change: Change,
): Promise<Pick<WriteFlags, 'plan' | 'confirm'>> {
  if (!isAsked(session, flags) || flags.plan !== undefined) return {}
  const seen = await preview(session, flags, change)
  const needsRemovals = seen.requires_confirmation.length > 0 && flags.confirm === undefined
  const question = questionFor(session.nouns, seen, needsRemovals)
  if (!question) return {}
  const hint = `${LOOK_FIRST}${needsRemovals ? '; and --confirm removals' : ''}`
  const summary = receivers(seen.impact)
  const isAgreed = await agree(session, { ...question, summary }, hint, (look) => describePreview(look, seen))
  if (!isAgreed) return {}
  return { plan: seen.plan, ...(needsRemovals && { confirm: 'removals' }) }
}

export function warningsIn({ headers, body }: Answer): string[] {
  if (Array.isArray(body?.warnings)) return body.warnings
  const header = headers.warning
  return header === undefined
    ? []
    : [...String(header).matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map(unquote)
}

function unquote([, quoted = '']: RegExpMatchArray): string {
  return Buffer.from(quoted.replaceAll(/\\(.)/g, '$1'), 'latin1').toString('utf8')
}

/** A preview, as it is printed. */
export function printablePreview(preview: Preview): Printable {
  return {
    value: preview,
    names: preview.changes.map(nameOf),
    human: (look) => describePreview(look, preview),
  }
}

/** The answer to a write of many documents, as it is printed. */
export async function printFleetWrite(session: Session, sent: Sent, what: string): Promise<void> {
  if (sent.preview) return session.print(printablePreview(sent.preview))
  const { body } = sent.answer
  const { revision, changes, impact } = body
  const changed =
    session.format.kind === 'name' ? await changesIn(session, [body], Number.POSITIVE_INFINITY) : []
  await session.print({
    value: body,
    names: changed.map(nameOf),
    human: ({ paint }) =>
      changes === 0
        ? `${what}: nothing to change\n`
        : `${what}: ${count(changes, 'document')} changed ${paint('dim', `(revision ${revision})`)}\n${receivers(impact)}\n`,
  })
}

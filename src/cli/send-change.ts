// Every write goes through here: previews, questions on a terminal, plans and confirmations.
import type { Command } from 'commander'
import type { Json } from '../domain/json.ts'
import { type Answer, Refusal } from './api-client.ts'
import { confirm, INTERRUPTED } from './ask.ts'
import { count, describeImpact, describePreview, type Preview, receivers } from './change-report.ts'
import { usage } from './failure.ts'
import { clusterNoun, nameOf } from './nouns.ts'
import type { Printable } from './print.ts'
import { changesIn } from './revision-changes.ts'
import type { Session } from './session.ts'
import { isInteractive, painter } from './terminal.ts'

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
    .option('-y, --yes', 'do not ask on a terminal')
}

export interface Change {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string | boolean | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Json
}

export type Sent =
  | { readonly preview: Preview; readonly answer?: undefined }
  | { readonly answer: Answer; readonly preview?: undefined }

/**
 * Sends a write; on a terminal, one that touches several clusters, or one with a warning, only after somebody has seen
 * what it does.
 */
export async function sendChange(session: Session, flags: WriteFlags, change: Change): Promise<Sent> {
  checkFlags(flags)
  if (flags.dryRun) return { preview: await preview(session, flags, change) }
  const agreed = await agree(session, flags, change)
  const interrupted = (): void => {
    session.warn('interrupted while the change was on its way: it is made wholly or not at all. See the log')
    process.exit(INTERRUPTED)
  }
  process.once('SIGINT', interrupted)
  try {
    const answer = await send(session, { ...flags, ...agreed }, change, {})
    for (const warning of warningsIn(answer)) session.warn(warning)
    return { answer }
  } catch (error) {
    if (error instanceof Refusal && error.impact) {
      session.note(describeImpact(painter(session.terminal, session.terminal.stderr), error.impact).trimEnd())
    }
    throw error
  } finally {
    process.removeListener('SIGINT', interrupted)
  }
}

/** Sends operations that are done together or not at all. */
export function sendBatch(session: Session, flags: WriteFlags, operations: readonly Json[]): Promise<Sent> {
  return sendChange(session, flags, { method: 'POST', path: '/batch', body: { operations } })
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
  return (await send(session, flags, change, { dry_run: 'true' })).body
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

/** What somebody at the terminal agreed to. */
async function agree(
  session: Session,
  flags: WriteFlags,
  change: Change,
): Promise<Pick<WriteFlags, 'plan' | 'confirm'>> {
  const { terminal } = session
  if (flags.yes || flags.plan !== undefined || !isInteractive(terminal)) return {}
  const seen = await preview(session, flags, change)
  const removes = seen.requires_confirmation.length > 0 && flags.confirm === undefined
  const touched = touchedBy(session, seen)
  const isWarned = touched === 1 && seen.warnings.length > 0
  if (touched <= 1 && !removes && !isWarned) return {}
  terminal.stderr.write(describePreview(painter(terminal, terminal.stderr), seen))
  await confirm(terminal, `Change ${count(touched, 'cluster')}?`, removes ? 'removals' : 'yes')
  return { plan: seen.plan, ...(removes && { confirm: 'removals' }) }
}

/** Clusters that receive something else, or whose own documents change without that. */
function touchedBy({ nouns }: Session, { impact, changes }: Preview): number {
  const clusters = clusterNoun(nouns).name
  return Math.max(impact.clusters, changes.filter(({ type }) => type === clusters).length)
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
    human: ({ paint }) => describePreview(paint, preview),
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

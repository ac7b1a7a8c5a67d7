// The audit: `log`, `show`, and `NOUN history`.
import type { Command } from 'commander'
import type { DescribedChange } from '../../domain/describe-change.ts'
import type { Impact } from '../../domain/impact.ts'
import type { Call } from '../api-client.ts'
import { describeChanges, describeImpact } from '../change-report.ts'
import { usage } from '../failure.ts'
import { parseMoment, parseRevision } from '../moments.ts'
import type { Noun } from '../nouns.ts'
import type { Look, Printable } from '../print.ts'
import { PROGRAM, type Tools } from '../program.ts'
import { pathOf } from '../read-documents.ts'
import type { Session } from '../session.ts'
import { parseCount } from './list.ts'

export interface Revision {
  readonly revision: number
  readonly time: string
  readonly actor: string
  readonly message: string | null
  readonly operation: string
  readonly change_count: number
  readonly changes: readonly DescribedChange[]
  readonly [more: string]: unknown
}

interface Flags {
  readonly actor?: string
  readonly cluster?: string
  readonly type?: string
  readonly id?: string
  readonly since?: string
  readonly until?: string
  readonly grep?: string
  readonly limit: number
}

const PAGE = 1000

export function defineLog(command: Command, { run }: Tools): void {
  command
    .option(
      '--cluster <id>',
      'what concerns this cluster: its own document, and definitions while it had them',
    )
    .option('--actor <name>', 'by this actor')
    .option('--type <name>', 'of this type, such as platform_components')
    .option('--id <id>', 'of documents with this id')
    .option('--since <time>', 'from then on: 2h, 3d, 2026-01-31 or an RFC 3339 time')
    .option('--until <time>', 'up to then')
    .option('--grep <text>', 'with this text in the message, operation, actor or request id')
    .option('--limit <number>', 'at most so many', parseCount, 20)
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} log --cluster qa-eu-01 --since 2d\n  ${PROGRAM} log --actor writer --grep INC-4711 -o json\n  ${PROGRAM} show 12`,
    )
    .action(
      run(async (session, { grep, since, until, limit, ...rest }: Flags) => {
        const query = { ...rest, q: grep, since: moment(since, '--since'), until: moment(until, '--until') }
        await printRevisions(session, '/revisions', query, limit)
      }),
    )
}

function moment(text: string | undefined, flag: string): string | undefined {
  return text === undefined ? undefined : parseMoment(text, flag, new Date())
}

export function defineHistory(command: Command, { run }: Tools, noun: Noun): void {
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .option('--limit <number>', 'at most so many', parseCount, 20)
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} ${noun.noun} history ID\n  ${PROGRAM} show REVISION`)
    .action(
      run((session, id: string, { limit }: { limit: number }) =>
        printRevisions(session, pathOf(noun, id, 'history'), {}, limit),
      ),
    )
}

async function printRevisions(
  session: Session,
  path: string,
  query: Call['query'],
  limit: number,
): Promise<void> {
  const revisions: Revision[] = []
  for (;;) {
    const before = revisions.at(-1)?.revision
    const size = Math.min(PAGE, limit - revisions.length)
    const { body } = await session.api.get(path, { query: { ...query, limit: size, before } })
    revisions.push(...body)
    if (body.length < size || revisions.length >= limit || size === 0) break
  }
  await session.print(printableRevisions(revisions))
  if (limit > 0 && revisions.length === limit) session.note(`the newest ${limit}; --limit shows more`)
}

export const REVISION_HEADERS = ['REVISION', 'TIME', 'ACTOR', 'CHANGES', 'MESSAGE', 'OPERATION']

export function revisionRow({ revision, time, actor, change_count, message, operation }: Revision): string[] {
  return [
    String(revision),
    time.replace(/\.\d+Z$/, 'Z'),
    actor,
    String(change_count),
    message ?? '',
    operation,
  ]
}

function printableRevisions(revisions: readonly Revision[]): Printable {
  return {
    value: revisions,
    names: revisions.map(({ revision }) => `revisions/${revision}`),
    human: ({ table }) =>
      revisions.length === 0 ? 'No revisions found.\n' : table(REVISION_HEADERS, revisions.map(revisionRow)),
  }
}

export function defineShow(command: Command, { run }: Tools): void {
  command
    .argument('<revision>', 'its number')
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} show 12\n  ${PROGRAM} show 12 -o jsonpath='{.impact.clusters}'`,
    )
    .action(
      run(async (session, text: string) => {
        const revision = parseRevision(text)
        if (revision === undefined) throw usage(`a revision is a whole number, not "${text}"`)
        const { body } = await session.api.get(`/revisions/${revision}`)
        await session.print({
          value: body,
          names: [`revisions/${revision}`],
          human: (look) => describeRevision(look, body),
        })
      }),
    )
}

function describeRevision({ paint, table }: Look, revision: Revision & { impact?: Impact }): string {
  const { message, operation, actor, time, changes, change_count, impact } = revision
  const lines = [
    ['Revision:', String(revision.revision)],
    ['Time:', time],
    ['Actor:', actor],
    ['From:', String(revision.client_address ?? '')],
    ['Message:', message ?? ''],
    ['Operation:', operation],
    ['Request id:', String(revision.request_id ?? '')],
    ['Hash:', String(revision.hash ?? '')],
  ]
  const head = table(['', ''], lines).replace(/^\n/, '')
  return `${head}\n${describeChanges(paint, changes, change_count)}${impact ? describeImpact(paint, impact) : ''}`
}

// The audit: `log`, `show`, and `NOUN history`.
import type { Command } from 'commander'
import { REVISION_PAGES } from '../../api/limits.ts'
import type { Revision } from '../../api/wire-types.ts'
import type { Impact } from '../../domain/delivery/impact.ts'
import { PROGRAM, type Tools } from '../command-tree.ts'
import { usage } from '../failure.ts'
import { describeChanges } from '../output/change-report.ts'
import { describeImpact } from '../output/impact-report.ts'
import { parseMoment, parseRevision } from '../output/moments.ts'
import type { Look, Printable } from '../output/print.ts'
import type { Call } from '../server/api-client.ts'
import { type Noun, typeNamed } from '../server/nouns.ts'
import { pathOf } from '../server/read-documents.ts'
import type { Session } from '../session.ts'
import { parseCount } from './list.ts'

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
      run(async (session, { grep, since, until, limit, type, ...rest }: Flags) => {
        const query = {
          ...rest,
          type: type && typeNamed(session.nouns, type),
          q: grep,
          since: moment(since, '--since'),
          until: moment(until, '--until'),
        }
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
  // One more than is shown tells whether there are more.
  while (revisions.length <= limit) {
    const before = revisions.at(-1)?.revision
    const size = Math.min(REVISION_PAGES.max, limit + 1 - revisions.length)
    const { body } = await session.api.get(path, { query: { ...query, limit: size, before } })
    for (const revision of body) revisions.push(revision)
    if (body.length < size) break
  }
  const shown = revisions.slice(0, limit)
  await session.print(printableRevisions(shown))
  if (shown.length < revisions.length) session.note(`the newest ${shown.length}; --limit shows more`)
  if (shown.length === 0 && session.format.kind === 'human') session.note('No revisions found.')
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
    human: ({ table }) => (revisions.length === 0 ? '' : table(REVISION_HEADERS, revisions.map(revisionRow))),
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

function describeRevision(look: Look, revision: Revision & { impact?: Impact }): string {
  const { message, operation, actor, time, changes, change_count, impact } = revision
  const head = look.pairs([
    ['Revision:', String(revision.revision)],
    ['Time:', time],
    ['Actor:', actor],
    ['From:', String(revision.client_address ?? '')],
    ['Message:', message ?? ''],
    ['Operation:', operation],
    ['Request id:', String(revision.request_id ?? '')],
    ['Hash:', String(revision.hash ?? '')],
  ])
  return `${head}\n${describeChanges(look, changes, change_count)}${impact ? describeImpact(look, impact) : ''}`
}

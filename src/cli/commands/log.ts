// `log`: who changed what, when and why.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { parseMoment } from '../input/moments.ts'
import { parseCount } from '../input/option-parsers.ts'
import { printRevisions } from '../output/revision-table.ts'
import { typeNamed } from '../server/nouns.ts'

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

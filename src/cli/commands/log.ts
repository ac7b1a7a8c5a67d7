// `log`: who changed what, when and why.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { printRevisions } from '../fleet/print-revisions.ts'
import { parseMoment } from '../input/moments.ts'
import { parseCount } from '../input/option-parsers.ts'
import {
  addRevisionFilters,
  filterQuery,
  parseSince,
  type RevisionFilters,
} from '../input/revision-filters.ts'
import { clusterNoun } from '../server/nouns.ts'

interface Flags extends RevisionFilters {
  readonly since?: string
  readonly until?: string
  readonly limit: number
  readonly patch?: boolean
}

export function defineLog(command: Command, { run, nouns }: Tools): void {
  command.argument(`[${clusterNoun(nouns).noun}]`, 'what concerns this cluster, as --cluster')
  addRevisionFilters(command)
    .option(
      '--since <revision|time>',
      'after this revision, or from then on: 40, 2h, 1h30m, yesterday, 2026-01-31',
    )
    .option('--until <time>', 'up to then')
    .option('-n, --limit <number>', 'at most so many', parseCount, 20)
    .option('-p, --patch', 'each with what it changed, as show has it')
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} log --cluster qa-eu-01 --since 2d\n  ${PROGRAM} log -l environment=prod --since yesterday\n  ${PROGRAM} log --actor writer --grep INC-4711 -o json\n  ${PROGRAM} log prod-eu-01 -p --limit 3`,
    )
    .action(
      run(async (session, named: string | undefined, { limit, patch, until, ...flags }: Flags) => {
        if (named !== undefined && flags.cluster !== undefined)
          throw usage('the cluster is given twice: as an argument, and by --cluster')
        const { after, since } = parseSince(flags.since)
        const filters = filterQuery(session, { ...flags, ...(named !== undefined && { cluster: named }) })
        const moment = until === undefined ? undefined : parseMoment(until, '--until', new Date())
        const query = { ...filters, since, until: moment }
        await printRevisions(session, { path: '/revisions', query, limit, after, isWhole: patch })
      }),
    )
}

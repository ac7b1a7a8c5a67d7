// `attention`: the clusters that need somebody, worst first, each with what to do next.
import type { Command } from 'commander'
import type { Attention } from '../../api/attention-schema.ts'
import { ageOf } from '../../base/relative-time.ts'
import { firstOf } from '../../base/sentences.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { unmet } from '../failure.ts'
import { getNew } from '../fleet/read-status.ts'
import { parseCount } from '../input/option-parsers.ts'
import { whyOf } from '../output/cluster-status-report.ts'
import type { Look } from '../output/print.ts'
import { plain } from '../output/terminal.ts'
import { clusterNoun } from '../server/nouns.ts'

interface Flags {
  readonly selector?: string
  readonly limit: number
  readonly exitCode?: boolean
}

/** How many clusters a next step is told for by name. */
const NAMED = 5

export function defineAttention(command: Command, { run }: Tools): void {
  command
    .option('-l, --selector <selector>', 'only clusters that match this label selector')
    .option('--limit <number>', 'at most so many', parseCount, 20)
    .option('--exit-code', 'exit with 4 when a cluster needs attention')
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} attention\n  ${PROGRAM} attention -l environment=prod --exit-code --quiet`,
    )
    .action(
      run(async (session, { exitCode, ...query }: Flags) => {
        const { body } = await getNew(session, '/status/attention', query)
        const { total, clusters }: Attention = body
        const { name } = clusterNoun(session.nouns)
        await session.print({
          value: body,
          names: clusters.map(({ cluster }) => `${name}/${cluster}`),
          human: (look) => (total === 0 ? '' : attentionReport(look, clusters)),
        })
        if (total === 0) session.note('No cluster needs attention.')
        if (clusters.length < total)
          session.note(`${clusters.length} of ${total.toLocaleString('en')} shown; --limit shows more`)
        if (exitCode && total > 0) throw unmet('')
      }),
    )
}

function attentionReport(look: Look, clusters: Attention['clusters']): string {
  const now = new Date()
  const rows = clusters.map((each) => [
    each.cluster,
    each.environment ?? '',
    each.problem,
    ageOf(each.since, now),
    each.component ?? each.endpoint ?? '',
    whyOf(each),
  ])
  const steps = Map.groupBy(clusters, ({ next_step }) => next_step)
  const next = [...steps].map(([step, who]) => {
    const names = who.map(({ cluster }) => cluster)
    return `  ${plain(firstOf(names, NAMED))}\n    ${plain(step)}\n`
  })
  return [
    look.table(['CLUSTER', 'ENVIRONMENT', 'PROBLEM', 'SINCE', 'OF', 'REASON'], rows),
    `\n${look.paint('bold', 'Next steps')}\n`,
    ...next,
  ].join('')
}

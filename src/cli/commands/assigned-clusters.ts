// `NOUN clusters`: the clusters that have a definition, and which version each of them is served.
import type { Command } from 'commander'
import type { AssignedCluster } from '../../api/versions-schema.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { parseCount } from '../input/option-parsers.ts'
import { cell } from '../output/document-columns.ts'
import type { Look } from '../output/print.ts'
import { clusterNoun, type Noun } from '../server/nouns.ts'
import { readAssigned } from '../server/read-assigned.ts'

interface Flags {
  readonly selector?: string
  readonly limit?: number
}

export function defineAssignedClusters(command: Command, { run }: Tools, noun: Noun): void {
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .option('-l, --selector <selector>', 'only clusters that match this label selector')
    .option('--limit <number>', 'at most so many', parseCount)
    .addHelpText('after', examples(noun))
    .action(
      run(async (session, id: string, { selector, limit }: Flags) => {
        const { clusters, total } = await readAssigned(session, noun, id, { selector, limit })
        const { name } = clusterNoun(session.nouns)
        await session.print({
          value: clusters,
          names: clusters.map(({ cluster }) => `${name}/${cluster}`),
          human: (look) => (clusters.length === 0 ? '' : assignedTable(look, noun, clusters)),
        })
        if (clusters.length === 0 && session.format.kind === 'human')
          session.note(`No cluster has ${noun.name}/${id}.`)
        if (clusters.length < total) session.note(`${clusters.length} of ${total.toLocaleString('en')} shown`)
      }),
    )
}

function assignedTable({ table }: Look, { delivery }: Noun, clusters: readonly AssignedCluster[]): string {
  const columns: readonly (readonly [title: string, read: (line: AssignedCluster) => string])[] = [
    ['CLUSTER', ({ cluster }) => cluster],
    ['ENV', ({ environment }) => environment ?? ''],
    ...(delivery?.versions ? ([['VERSION', versionOf]] as const) : []),
    ['FROM', originOf],
    ['STATE', stateOf],
    ['OWN-FIELDS', ({ overrides }) => cell(overrides)],
    ...(delivery?.patches
      ? ([['OWN-VALUES', ({ patches }: AssignedCluster) => String(patches)]] as const)
      : []),
  ]
  const shown = columns.filter(([title, read], i) => i === 0 || title !== 'OWN-FIELDS' || clusters.some(read))
  return table(
    shown.map(([title]) => title),
    clusters.map((line) => shown.map(([, read]) => read(line))),
  )
}

function versionOf({ version, enabled }: AssignedCluster): string {
  return enabled ? (version ?? '') : '(off)'
}

function originOf({ overrides }: AssignedCluster): string {
  return Object.keys(overrides).length > 0 ? 'override' : 'catalog'
}

function stateOf({ enabled, failed, healthy, applied }: AssignedCluster): string {
  if (!enabled) return 'off'
  if (failed) return 'failed'
  if (healthy) return 'healthy'
  return applied ? 'applied' : 'pending'
}

function examples({ noun, name, delivery }: Noun): string {
  const version = delivery?.versions ? `\n  ${PROGRAM} ${noun} clusters ID -l version.ID=v1.1.0 -o name` : ''
  return `
FROM: override where a cluster sets a field itself. STATE: off, failed, healthy, applied, or pending until the cluster reports it.

Examples:
  ${PROGRAM} ${noun} clusters ID -l environment=prod
  ${PROGRAM} ${noun} clusters ID -l overrides.${name}=ID${version}`
}

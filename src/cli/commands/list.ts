// `NOUN list`: documents of a type, all of them or some.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { columnsFor, watchClusters } from '../fleet/cluster-list.ts'
import { addDefinitionFlags, selectorWith } from '../input/definition-flags.ts'
import { parsePair } from '../input/field-values.ts'
import { parseAt } from '../input/moments.ts'
import { collect, parseCount } from '../input/option-parsers.ts'
import { printableList } from '../output/document-table.ts'
import type { Call } from '../server/api.ts'
import type { Noun } from '../server/nouns.ts'
import { listAll, usedBy } from '../server/read-documents.ts'
import type { Session } from '../session.ts'

interface Flags {
  readonly selector?: string
  readonly filter?: readonly string[]
  readonly limit?: number
  readonly at?: string
  readonly watch?: boolean
}

export function defineList(command: Command, { run, nouns }: Tools, noun: Noun): void {
  const whose = noun.cluster
    ? 'that match this label selector'
    : 'that clusters matching this selector are given'
  if (noun.cluster || noun.delivery) {
    command.option('-l, --selector <selector>', `only those ${whose}`)
  }
  command
    .option(
      '--filter <field=value>',
      `only those with this value (repeatable): ${noun.filters.join(', ') || 'none here'}`,
      collect,
    )
    .option('--limit <number>', 'at most so many', parseCount)
    .option('--at <revision|time>', 'as it was then')
  if (noun.cluster) addDefinitionFlags(command, nouns)
  if (noun.cluster)
    command.option('-w, --watch', 'go on with a line for every cluster that changes; Ctrl-C ends it')
  command.addHelpText('after', examples(noun)).action(
    run(async (session, { filter = [], limit, watch, ...flags }: Flags) => {
      const at = parseAt(flags.at)
      const selector = noun.cluster ? selectorWith(nouns, { ...flags }, flags.selector) : flags.selector
      const chosen = { ...filters(filter), at }
      if (watch) return watchClusters(session, { noun, query: { ...chosen, selector }, limit })
      if (!noun.cluster) return listDefinitions(session, noun, { query: chosen, limit, selector })
      const list = { noun, query: { ...chosen, selector }, limit }
      const { documents, total } = await listAll(session, noun, list)
      const columns = session.format.kind === 'human' ? await columnsFor(session, list, documents) : []
      await session.print(printableList(noun, nouns, documents, columns))
      noteSize(session, noun, documents.length, total)
    }),
  )
}

interface Definitions {
  readonly query: Call['query']
  readonly limit: number | undefined
  /** Of the clusters that are given them. */
  readonly selector: string | undefined
}

async function listDefinitions(
  session: Session,
  noun: Noun,
  { query, limit, selector }: Definitions,
): Promise<void> {
  const at = query?.at as string | undefined
  const used = selector === undefined ? undefined : await usedBy(session, noun, selector, at)
  const listed = await listAll(session, noun, { query, limit: used ? undefined : limit })
  const found = used ? listed.documents.filter(({ id }) => used.has(id)) : listed.documents
  const documents = found.slice(0, limit)
  await session.print(printableList(noun, session.nouns, documents))
  noteSize(session, noun, documents.length, used ? found.length : listed.total)
}

function noteSize(session: Session, noun: Noun, shown: number, total: number): void {
  if (shown === 0 && session.format.kind === 'human')
    session.note(`No ${noun.name.replaceAll('_', ' ')} found.`)
  if (shown < total) session.note(`${shown} of ${total.toLocaleString('en')} shown`)
}

function filters(given: readonly string[]): Record<string, string> {
  const pairs = given.map((text) => parsePair(text, '--filter'))
  const names = pairs.map(([name]) => name)
  for (const [i, name] of names.entries()) {
    if (name === 'offset')
      throw usage('--filter offset: lists are read whole; --limit shows the first of them')
    if (['limit', 'at', 'selector'].includes(name)) throw usage(`--filter ${name}: use the flag --${name}`)
    if (names.indexOf(name) < i) throw usage(`--filter ${name} is given twice: a field has one value`)
  }
  return Object.fromEntries(pairs)
}

function examples({ noun, cluster, delivery, filters }: Noun): string {
  const lines = [
    `${PROGRAM} ${noun} list`,
    ...(cluster
      ? [
          `${PROGRAM} ${noun} list --selector 'environment in (dev,qa),region=eu'`,
          `${PROGRAM} ${noun} list --component grafana=v1.1.0`,
          `${PROGRAM} ${noun} list --selector environment=prod --watch`,
        ]
      : []),
    ...(delivery ? [`${PROGRAM} ${noun} list --selector environment=prod`] : []),
    ...(filters.length > 0 ? [`${PROGRAM} ${noun} list --filter ${filters.at(-1)}=… -o json`] : []),
    `${PROGRAM} ${noun} list -o jsonpath='{range [*]}{.id}{"\\n"}{end}'`,
  ]
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`
}

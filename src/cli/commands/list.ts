// `NOUN list`: documents of a type, all of them or some.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { UPDATED } from '../fleet/last-changes.ts'
import { type ListChoice, readList, watchList } from '../fleet/read-list.ts'
import { addDefinitionFlags, selectorWith } from '../input/definition-flags.ts'
import { parsePair } from '../input/field-values.ts'
import { parseAt } from '../input/moments.ts'
import { collect, collectIds, parseCount } from '../input/option-parsers.ts'
import { type Column, columnNamed, columnsOf } from '../output/document-columns.ts'
import { printableList } from '../output/document-table.ts'
import { STATUS_TITLES } from '../output/status-table.ts'
import type { Noun } from '../server/nouns.ts'
import type { Session } from '../session.ts'

interface Flags {
  readonly selector?: string
  readonly filter?: readonly string[]
  readonly limit?: number
  readonly offset?: number
  readonly at?: string
  readonly watch?: boolean
  readonly deleted?: boolean
  readonly labelColumns?: readonly string[]
  readonly columns?: readonly string[]
  readonly sortBy?: string
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
    .option('--offset <number>', 'without the first so many', parseCount)
    .option('--at <revision|time>', 'as it was then')
  if (noun.cluster) {
    addDefinitionFlags(command, nouns)
    command.option('--deleted', 'those that were deleted: when, by whom and why')
  }
  command
    .option('-w, --watch', `go on with a line for every ${noun.singular} that changes; Ctrl-C ends it`)
    .optionsGroup('What is shown:')
    .option('-L, --label-columns <keys>', 'these labels in columns of their own', collectIds)
    .option(
      '--columns <names>',
      'these columns: titles, fields such as labels.region, or updated: when each was last changed',
      collectIds,
    )
    .option('--sort-by <column>', 'ordered by this column, instead of by id')
  command.addHelpText('after', examples(noun)).action(
    run(async (session, { filter = [], limit, offset, watch, ...flags }: Flags) => {
      const selector = noun.cluster ? selectorWith(nouns, { ...flags }, flags.selector) : flags.selector
      const { sortBy } = flags
      const choice = { labels: flags.labelColumns, columns: flags.columns, sortBy }
      checkColumns(noun, nouns, choice)
      const chosen = { ...filters(filter), at: parseAt(flags.at), ...(flags.deleted && { deleted: 'true' }) }
      const query = { ...chosen, ...(noun.cluster && { selector }) }
      const list = { noun, query, usedBy: noun.cluster ? undefined : selector, limit, offset, choice }
      if (watch) return watchList(session, list)
      const { documents, columns, total } = await readList(session, list)
      await session.print(printableList(noun, nouns, documents, columns, choice))
      noteSize(session, noun, documents.length, total)
    }),
  )
}

/** Throws where a column is asked for that is not there, before anything is read. */
function checkColumns(noun: Noun, nouns: readonly Noun[], { columns = [], sortBy }: ListChoice): void {
  const unread = noun.cluster ? [...STATUS_TITLES, UPDATED] : [UPDATED]
  const all = columnsOf(noun, nouns, unread.map(unreadColumn))
  for (const name of sortBy === undefined ? columns : [...columns, sortBy]) columnNamed(noun, all, name)
}

/** A column that is read later. */
function unreadColumn(title: string): Column {
  return { title, wide: false, read: () => '' }
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
    if (['limit', 'offset', 'at', 'selector', 'deleted'].includes(name))
      throw usage(`--filter ${name}: use the flag --${name}`)
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
          `${PROGRAM} ${noun} list --component grafana=v1.1.0 -L region --sort-by seen`,
          `${PROGRAM} ${noun} list --selector environment=prod --watch`,
        ]
      : []),
    ...(delivery ? [`${PROGRAM} ${noun} list --selector environment=prod`] : []),
    ...(filters.length > 0 ? [`${PROGRAM} ${noun} list --filter ${filters.at(-1)}=… -o json`] : []),
    `${PROGRAM} ${noun} list -o jsonpath='{range [*]}{.id}{"\\n"}{end}'`,
  ]
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`
}

// `overrides`: what clusters set themselves instead of taking it from the catalog, and giving it up.
import { type Command, Option } from 'commander'
import { OVERRIDE_PAGES } from '../../api/limits.ts'
import type { ShownOwnValue } from '../../api/own-values-schema.ts'
import type { JsonObject } from '../../base/json.ts'
import { ageOf } from '../../base/relative-time.ts'
import { count } from '../../base/sentences.ts'
import { OWN_KINDS } from '../../domain/delivery/own-values.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { unmet, usage } from '../failure.ts'
import { getNew } from '../fleet/read-status.ts'
import { dropOperation } from '../input/drop-overrides.ts'
import { parseCount } from '../input/option-parsers.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { cell } from '../output/document-columns.ts'
import type { Look } from '../output/print.ts'
import { printFleetWrite } from '../output/write-report.ts'
import { clusterNoun, type Noun, typeNamed } from '../server/nouns.ts'
import { readPages } from '../server/read-pages.ts'
import { sendBatch } from '../server/send-change.ts'
import type { Session } from '../session.ts'

interface Flags extends WriteFlags {
  readonly selector?: string
  readonly type?: string
  readonly kind?: string
  readonly redundant?: boolean
  readonly limit?: number
  readonly drop?: boolean
}

export function defineOverrides(command: Command, { run }: Tools): void {
  command
    .argument('[id]', 'only of this definition, such as grafana')
    .optionsGroup('Which:')
    .option('-l, --selector <selector>', 'only of clusters that match this label selector')
    .option('--type <name>', 'only of definitions of this type, such as component')
    .addOption(
      new Option('--kind <kind>', 'only fields of definitions, or only values for them').choices(OWN_KINDS),
    )
    .option('--redundant', 'only those that say the same as the catalog')
    .option('--limit <number>', 'at most so many', parseCount)
    .optionsGroup('Giving them up:')
    .option('--drop', 'give up those that are chosen, as one revision')
  addWriteFlags(command)
    .addHelpText(
      'after',
      `\nCATALOG is what the cluster would get without it.\n\nExamples:\n  ${PROGRAM} overrides\n  ${PROGRAM} overrides grafana -l environment=prod\n  ${PROGRAM} overrides --redundant --drop -m 'the catalog says the same'`,
    )
    .action(
      run(async (session, id: string | undefined, flags: Flags) => {
        const { drop, limit, selector, type, kind, redundant } = flags
        const query = {
          id,
          selector,
          type: type && typeNamed(session.nouns, type),
          kind,
          ...(redundant && { redundant: 'true' }),
        }
        if (!drop)
          return printOverrides(session, await readOverrides(session, { ...query, explain: 'true' }, limit))
        if (Object.values(query).every((value) => value === undefined))
          throw usage('give up which? Name a definition, or give --selector, --type, --kind or --redundant')
        if (limit !== undefined)
          throw usage('--limit does not go with --drop: all that are chosen are given up')
        await dropOverrides(session, flags, (await readOverrides(session, query)).lines)
      }),
    )
}

interface Overrides {
  readonly lines: readonly ShownOwnValue[]
  readonly total: number
}

async function readOverrides(
  session: Session,
  query: Readonly<Record<string, string | undefined>>,
  limit?: number,
): Promise<Overrides> {
  const lines: ShownOwnValue[] = []
  let listed = 0
  const pages = readPages<ShownOwnValue>(
    ({ limit: size, offset }) => getNew(session, '/overrides', { ...query, limit: size, offset }),
    { size: OVERRIDE_PAGES.max, limit },
  )
  for await (const { items, total = items.length } of pages) {
    lines.push(...items)
    listed = total
  }
  return { lines, total: listed }
}

async function printOverrides(session: Session, { lines, total }: Overrides): Promise<void> {
  const { name } = clusterNoun(session.nouns)
  await session.print({
    value: lines,
    names: [...new Set(lines.map(({ cluster }) => `${name}/${cluster}`))],
    human: (look) => (lines.length === 0 ? '' : overridesTable(look, session.nouns, lines)),
  })
  const redundant = lines.filter((line) => line.redundant).length
  if (lines.length === 0 && session.format.kind === 'human')
    session.note('No overrides found: clusters have what the catalog says.')
  if (lines.length < total) session.note(`${lines.length} of ${total.toLocaleString('en')} shown`)
  if (redundant > 0 && session.format.kind === 'human')
    session.note(`${redundant} redundant: overrides --redundant --drop gives them up`)
}

function overridesTable({ table }: Look, nouns: readonly Noun[], lines: readonly ShownOwnValue[]): string {
  const now = new Date()
  const isOfMany = new Set(lines.map(({ type }) => type)).size > 1
  const nounOf = (type: string): string => nouns.find(({ name }) => name === type)?.noun ?? type
  const rows = lines.map((line) => [
    line.cluster,
    line.environment ?? '',
    isOfMany ? `${nounOf(line.type)}/${line.id}` : line.id,
    line.field,
    cell(line.value),
    line.redundant
      ? `${cell(line.catalog)} (redundant)`
      : line.kind === 'patch'
        ? '(patch)'
        : cell(line.catalog),
    ageOf(line.time ?? null, now),
    line.actor ?? '',
    line.message ?? '',
  ])
  return table(['CLUSTER', 'ENV', 'OF', 'FIELD', 'VALUE', 'CATALOG', 'AGE', 'ACTOR', 'MESSAGE'], rows)
}

/** The overrides of one definition on one cluster are given up together; clusters that give up the same share an operation. */
async function dropOverrides(session: Session, flags: Flags, lines: readonly ShownOwnValue[]): Promise<void> {
  if (lines.length === 0) throw unmet('there is no such override: nothing to give up')
  const own = Map.groupBy(lines, ({ cluster, type, id, kind }) => JSON.stringify([cluster, type, id, kind]))
  const operations = new Map<string, { operation: JsonObject; clusters: string[] }>()
  for (const each of own.values()) {
    const [{ cluster, type, id, kind }] = each as [ShownOwnValue]
    const fields = each.map(({ field }) => field).toSorted()
    const key = JSON.stringify([type, id, kind, fields])
    const found = operations.get(key)
    if (found) found.clusters.push(cluster)
    else operations.set(key, { operation: giveUp(type, id, kind, fields), clusters: [cluster] })
  }
  const all = [...operations.values()].map(({ operation, clusters }) => ({ ...operation, clusters }))
  const sent = await sendBatch(session, flags, all)
  await printFleetWrite(session, sent, `give up ${count(lines.length, 'override')}`)
}

function giveUp(
  type: string,
  id: string,
  kind: ShownOwnValue['kind'],
  fields: readonly string[],
): JsonObject {
  if (kind === 'override') return dropOperation({ name: type }, id, fields)
  return {
    op: 'patch_values',
    component: id,
    values: Object.fromEntries(fields.map((field) => [field, null])),
  }
}

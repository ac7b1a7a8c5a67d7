// Lists with what clusters are doing: once, and kept up to date.
import { setTimeout as sleep } from 'node:timers/promises'
import type { FleetStatus } from '../../api/status-schema.ts'
import type { Document } from '../../domain/types/resource-type.ts'
import { usage } from '../failure.ts'
import type { Column, ColumnChoice } from '../output/document-columns.ts'
import { printableList } from '../output/document-table.ts'
import type { Look } from '../output/print.ts'
import { sortDocuments } from '../output/sort-documents.ts'
import { statusColumns } from '../output/status-table.ts'
import type { Call } from '../server/api.ts'
import type { Noun } from '../server/nouns.ts'
import { listAll, usedBy } from '../server/read-documents.ts'
import { isTransient } from '../server/refusal.ts'
import type { Session } from '../session.ts'
import { deletionColumns, type KnownTimes, textOf, UPDATED, updatedColumn } from './last-changes.ts'
import { findStatus } from './read-status.ts'

export interface ListChoice extends ColumnChoice {
  /** The column that it is ordered by, instead of by id. */
  readonly sortBy?: string | undefined
}

export interface ListQuery {
  readonly noun: Noun
  /** Of the list of documents. */
  readonly query: NonNullable<Call['query']>
  /** Only documents that clusters matching this selector are given. */
  readonly usedBy: string | undefined
  readonly limit: number | undefined
  readonly offset: number | undefined
  readonly choice: ListChoice
}

interface Listed {
  readonly documents: readonly Document[]
  readonly columns: Column[]
  /** How many there are, those that are not shown included. */
  readonly total: number
  /** What clusters do, by id, without times that pass. */
  readonly doing: ReadonlyMap<string, string>
}

/** Clusters are named to the server up to this many: the names have to fit into a URL. */
const NAMED = 100
const EVERY_MS = 3000

/** Reads a list as it is shown: chosen, ordered, and with the columns that others than its documents have. */
export async function readList(
  session: Session,
  list: ListQuery,
  known: KnownTimes = new Map(),
): Promise<Listed> {
  const { noun, query, usedBy: selector, limit, offset = 0, choice } = list
  const { sortBy } = choice
  // The server leaves out the rest, where it knows of the order and of the choice.
  const isPart = sortBy === undefined && selector === undefined
  const part = isPart ? { limit, offset } : {}
  const used =
    selector === undefined ? undefined : await usedBy(session, noun, selector, query.at as string | undefined)
  const { documents, total } = await listAll(session, noun, { query, ...part })
  const found = used ? documents.filter(({ id }) => used.has(id)) : documents
  const { kind } = session.format
  const isTable = kind === 'human' || kind === 'csv' || sortBy !== undefined
  const isNow = noun.cluster && query.at === undefined && query.deleted === undefined
  const status =
    isTable && isNow && found.length > 0
      ? await statusOf(session, { ...list, offset: part.offset }, found)
      : undefined
  const columns = status ? statusColumns(status) : []
  if (isTable && query.deleted !== undefined && found.length > 0)
    columns.push(...(await deletionColumns(session, noun, found)))
  if (wantsUpdated(choice)) columns.push(await updatedColumn(session, noun, found, known))
  const sorted = sortBy === undefined ? found : sortDocuments(noun, session.nouns, found, columns, sortBy)
  const shown = isPart ? sorted : sorted.slice(offset, limit === undefined ? undefined : offset + limit)
  const doing = status?.clusters.map(
    ({ cluster, contact, delivery, health }) => [cluster, [contact, delivery, health].join()] as const,
  )
  return { documents: shown, columns, total: used ? found.length : total, doing: new Map(doing) }
}

/** Whether the time of the last change is asked for, which is read from the log. */
function wantsUpdated({ columns = [], sortBy }: ListChoice): boolean {
  return [...columns, sortBy].some((name) => name?.toUpperCase() === UPDATED)
}

/** Asks for the same clusters as the list; what only lists of documents can filter by is asked for by id. */
function statusOf(
  session: Session,
  { noun, query, offset = 0 }: Pick<ListQuery, 'noun' | 'query' | 'offset'>,
  documents: readonly Document[],
): Promise<FleetStatus | undefined> {
  const { selector, at: _at, ...filters } = query
  const others = Object.keys(filters).filter((name) => name !== noun.cluster?.environment)
  if (others.length === 0 && offset === 0)
    return findStatus(session, { query: { ...filters, selector }, limit: documents.length })
  const ids = documents.map(({ id }) => id)
  return findStatus(session, {
    query: { selector: ids.length <= NAMED ? `id in (${ids.join(',')})` : selector },
  })
}

/** Prints the list, and then a line for every document that changes, until Ctrl-C. */
export async function watchList(session: Session, list: ListQuery): Promise<void> {
  if (session.format.kind !== 'human') throw usage('--watch is for tables: leave --output out')
  if (list.query.at !== undefined) throw usage('--watch shows the present: leave --at out')
  const known: KnownTimes = new Map()
  let shown = await readList(session, list, known)
  await session.print(printableList(list.noun, session.nouns, shown.documents, shown.columns, list.choice))
  for (;;) {
    await sleep(EVERY_MS)
    const next = await readPatiently(session, list, known)
    const [before, now] = [statesIn(shown), statesIn(next)]
    const changed = next.documents.filter(({ id }) => now.get(id) !== before.get(id))
    const gone = shown.documents.filter(({ id }) => !now.has(id))
    shown = next
    if (changed.length > 0) await append(session, list, next, changed)
    for (const { id } of gone) session.note(`${id} is no longer in the list`)
  }
}

/** What a new line is shown for, by id. */
function statesIn({ documents, doing }: Listed): ReadonlyMap<string, string> {
  return new Map(documents.map((document) => [document.id, `${doing.get(document.id)} ${textOf(document)}`]))
}

/** Reads again where the server does not respond for a moment. */
async function readPatiently(session: Session, list: ListQuery, known: KnownTimes): Promise<Listed> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await readList(session, list, known)
    } catch (error) {
      if (!isTransient(error) || attempt === TRIES) throw error
      session.note(error.message)
      await sleep(EVERY_MS)
    }
  }
}

/** Attempts on a server that does not respond: some minutes. */
const TRIES = 30

/** Prints rows below those of before, in columns as wide as theirs. */
function append(
  session: Session,
  { noun, choice }: ListQuery,
  { documents, columns }: Listed,
  changed: readonly Document[],
): Promise<void> {
  const all = printableList(noun, session.nouns, [...documents, ...changed], columns, choice)
  const human = (look: Look): string =>
    `${all
      .human(look)
      .split('\n')
      .slice(-changed.length - 1)
      .join('\n')}`
  return session.print({ ...all, human })
}

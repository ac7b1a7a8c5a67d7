// Lists with what clusters are doing: once, and kept up to date.
import { setTimeout as sleep } from 'node:timers/promises'
import type { FleetStatus } from '../../api/status-schema.ts'
import type { Document } from '../../domain/types/resource-type.ts'
import { usage } from '../failure.ts'
import type { Column, ColumnChoice } from '../output/document-columns.ts'
import { printableList } from '../output/document-table.ts'
import type { Look } from '../output/print.ts'
import { statusColumns } from '../output/status-table.ts'
import type { Call } from '../server/api.ts'
import type { Noun } from '../server/nouns.ts'
import { listAll } from '../server/read-documents.ts'
import { isTransient } from '../server/refusal.ts'
import type { Session } from '../session.ts'
import { deletionColumns } from './last-changes.ts'
import { findStatus } from './read-status.ts'

export interface ListQuery {
  readonly noun: Noun
  /** Of the list of documents. */
  readonly query: NonNullable<Call['query']>
  readonly limit: number | undefined
  readonly offset: number | undefined
  readonly choice: ColumnChoice
}

/** Clusters are named to the server up to this many: the names have to fit into a URL. */
const NAMED = 100
const EVERY_MS = 3000

/** The columns of what the clusters of a list are doing; none where the server does not tell. */
export async function columnsFor(
  session: Session,
  list: ListQuery,
  documents: readonly Document[],
): Promise<Column[]> {
  const { noun, query } = list
  // Of the past there is no status.
  if (!noun.cluster || query.at !== undefined || documents.length === 0) return []
  if (query.deleted !== undefined) return deletionColumns(session, noun, documents)
  const status = await statusOf(session, list, documents)
  return status ? statusColumns(status) : []
}

/** Asks for the same clusters as the list; what only lists of documents can filter by is asked for by id. */
function statusOf(
  session: Session,
  { noun, query, offset = 0 }: ListQuery,
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
  let shown = await readList(session, list)
  await session.print(printableList(list.noun, session.nouns, shown.documents, shown.columns, list.choice))
  for (;;) {
    await sleep(EVERY_MS)
    const next = await readPatiently(session, list)
    const changed = next.documents.filter(({ id }) => next.states.get(id) !== shown.states.get(id))
    const gone = shown.documents.filter(({ id }) => !next.states.has(id))
    shown = next
    if (changed.length > 0) await append(session, list, next, changed)
    for (const { id } of gone) session.note(`${id} is no longer in the list`)
  }
}

interface Shown {
  readonly documents: readonly Document[]
  readonly columns: Column[]
  /** What a new line is shown for, by id. */
  readonly states: ReadonlyMap<string, string>
}

async function readList(session: Session, list: ListQuery): Promise<Shown> {
  const { documents } = await listAll(session, list.noun, list)
  const isCluster = list.noun.cluster !== undefined && documents.length > 0
  const status = isCluster ? await statusOf(session, list, documents) : undefined
  const doing = new Map(
    status?.clusters.map(({ cluster, contact, delivery, health }) => [
      cluster,
      [contact, delivery, health].join(),
    ]),
  )
  return {
    documents,
    columns: status ? statusColumns(status) : [],
    states: new Map(
      documents.map((document) => [document.id, `${doing.get(document.id)} ${JSON.stringify(document)}`]),
    ),
  }
}

/** Reads again where the server does not respond for a moment. */
async function readPatiently(session: Session, list: ListQuery): Promise<Shown> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await readList(session, list)
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
  { documents, columns }: Shown,
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

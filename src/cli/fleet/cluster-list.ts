// Clusters with what they are doing: as a list, and as a list that is kept up to date.
import { setTimeout as sleep } from 'node:timers/promises'
import type { FleetStatus, StatusLine } from '../../api/status-schema.ts'
import type { Document } from '../../domain/types/resource-type.ts'
import { EXIT, Failure, usage } from '../failure.ts'
import { type Column, printableList } from '../output/document-table.ts'
import type { Look } from '../output/print.ts'
import { statusColumns } from '../output/status-table.ts'
import type { Call } from '../server/api.ts'
import type { Noun } from '../server/nouns.ts'
import { listAll } from '../server/read-documents.ts'
import { isTransient } from '../server/refusal.ts'
import type { Session } from '../session.ts'
import { findStatus } from './read-status.ts'

export interface ClusterQuery {
  readonly noun: Noun
  /** Of the list of documents. */
  readonly query: NonNullable<Call['query']>
  readonly limit: number | undefined
}

/** Clusters are named to the server up to this many: the names have to fit into a URL. */
const NAMED = 100
const EVERY_MS = 3000

/** The columns of what the clusters of a list are doing; none where the server does not tell. */
export async function columnsFor(
  session: Session,
  list: ClusterQuery,
  documents: readonly Document[],
): Promise<Column[]> {
  // Of the past there is no status.
  if (list.query.at !== undefined || documents.length === 0) return []
  const status = await statusOf(session, list, documents)
  return status ? statusColumns(status) : []
}

/** Asks for the same clusters as the list; what only lists of documents can filter by is asked for by id. */
function statusOf(
  session: Session,
  { noun, query }: ClusterQuery,
  documents: readonly Document[],
): Promise<FleetStatus | undefined> {
  const { selector, at: _at, ...filters } = query
  const others = Object.keys(filters).filter((name) => name !== noun.cluster?.environment)
  if (others.length === 0)
    return findStatus(session, { query: { ...filters, selector }, limit: documents.length })
  const ids = documents.map(({ id }) => id)
  return findStatus(session, {
    query: { selector: ids.length <= NAMED ? `id in (${ids.join(',')})` : selector },
  })
}

/** Prints the list, and then a line for every cluster that changes, until Ctrl-C. */
export async function watchClusters(session: Session, list: ClusterQuery): Promise<void> {
  if (session.format.kind !== 'human') throw usage('--watch is for tables: leave --output out')
  if (list.query.at !== undefined) throw usage('--watch shows the present: leave --at out')
  let shown = await readList(session, list)
  await session.print(printableList(list.noun, session.nouns, shown.documents, shown.columns))
  for (;;) {
    await sleep(EVERY_MS)
    const next = await readPatiently(session, list)
    const changed = next.documents.filter(({ id }) => stateOf(next, id) !== stateOf(shown, id))
    const gone = shown.documents.filter(({ id }) => !next.lines.has(id))
    shown = next
    if (changed.length > 0) await append(session, list.noun, next, changed)
    for (const { id } of gone) session.note(`${id} is no longer in the list`)
  }
}

interface Shown {
  readonly documents: readonly Document[]
  readonly columns: Column[]
  readonly lines: ReadonlyMap<string, StatusLine>
}

async function readList(session: Session, list: ClusterQuery): Promise<Shown> {
  const { documents } = await listAll(session, list.noun, list)
  const status = documents.length === 0 ? undefined : await statusOf(session, list, documents)
  if (documents.length > 0 && !status)
    throw new Failure(EXIT.refused, `${session.api.url.origin} does not tell what clusters are doing`)
  return {
    documents,
    columns: status ? statusColumns(status) : [],
    lines: new Map(status?.clusters.map((line) => [line.cluster, line])),
  }
}

/** Reads again where the server does not respond for a moment. */
async function readPatiently(session: Session, list: ClusterQuery): Promise<Shown> {
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

function stateOf({ lines }: Shown, id: string): string {
  const { contact, delivery, health } = lines.get(id) ?? {}
  return [contact, delivery, health].join()
}

/** Prints rows below those of before, in columns as wide as theirs. */
function append(
  session: Session,
  noun: Noun,
  { documents, columns }: Shown,
  changed: readonly Document[],
): Promise<void> {
  const all = printableList(noun, session.nouns, [...documents, ...changed], columns)
  const human = (look: Look): string =>
    `${all
      .human(look)
      .split('\n')
      .slice(-changed.length - 1)
      .join('\n')}`
  return session.print({ ...all, human })
}

// The columns of a list that the log of changes has: when documents were last changed, and those that were deleted by whom.
import type { Revision } from '../../api/wire-types.ts'
import { ageOf, fromNow } from '../../base/relative-time.ts'
import type { Document } from '../../domain/types/resource-type.ts'
import { usage } from '../failure.ts'
import type { Column } from '../output/document-columns.ts'
import type { Noun } from '../server/nouns.ts'
import { pathOf } from '../server/read-documents.ts'
import type { Session } from '../session.ts'

export const UPDATED = 'UPDATED'
/** The log is read for each document: of so many, and no more. */
const MOST = 200
/** How many are read at once. */
const AT_ONCE = 8

/** The last changes that were read before, by document: one that is the same has not been changed since. */
export type KnownTimes = Map<string, { readonly text: string; readonly time: string | null }>

export function textOf(document: Document): string {
  return JSON.stringify(document)
}

/** How long ago each was changed itself; what is assigned to a cluster has a time of its own. */
export async function updatedColumn(
  session: Session,
  noun: Noun,
  documents: readonly Document[],
  known: KnownTimes,
): Promise<Column> {
  const open = documents.filter((document) => known.get(document.id)?.text !== textOf(document))
  if (open.length > MOST)
    throw usage(`${UPDATED} is read for at most ${MOST} at a time, not ${open.length}`, 'add --limit')
  const revisions = await lastRevisions(session, noun, open)
  for (const document of open)
    known.set(document.id, { text: textOf(document), time: revisions.get(document.id)?.time ?? null })
  const now = new Date()
  const timeOf = (id: unknown): string | null => known.get(String(id))?.time ?? null
  return {
    title: UPDATED,
    wide: false,
    read: ({ id }) => ageOf(timeOf(id), now),
    order: ({ id }) => -Date.parse(timeOf(id) ?? ''),
  }
}

/** When each was deleted, by whom and why; of many, the first. */
export async function deletionColumns(
  session: Session,
  noun: Noun,
  documents: readonly Document[],
): Promise<Column[]> {
  const revisions = await lastRevisions(session, noun, documents.slice(0, MOST))
  const now = new Date()
  const column = (title: string, read: (revision: Revision) => string): Column => ({
    title,
    wide: false,
    read({ id }) {
      const revision = revisions.get(String(id))
      return revision ? read(revision) : ''
    },
  })
  return [
    column('DELETED', ({ time }) => fromNow(time, now)),
    column('REVISION', ({ revision }) => String(revision)),
    column('ACTOR', ({ actor }) => actor),
    column('MESSAGE', ({ message }) => message ?? ''),
  ]
}

/** The newest revision of each document, by its id. */
async function lastRevisions(
  { api }: Session,
  noun: Noun,
  documents: readonly Document[],
): Promise<ReadonlyMap<string, Revision>> {
  const found = new Map<string, Revision>()
  const open = documents.values()
  const readOn = async (): Promise<void> => {
    for (const { id } of open) {
      const { body } = await api.get(pathOf(noun, id, 'history'), { query: { limit: 1 } })
      if (body[0]) found.set(id, body[0])
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, readOn))
  return found
}

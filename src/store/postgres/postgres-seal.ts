// Prepares the rows of a commit to PostgreSQL: changes and revisions with their hashes.
import { TimeSlice } from '../../runtime/time-slice.ts'
import { checkHash, NO_HASH, RevisionHash } from '../hash-chain.ts'
import type { DocumentVersion, LoggedChange, NewRevision } from '../store.ts'
import type { Database } from './postgres-database.ts'
import { readLast } from './postgres-head.ts'
import { S } from './postgres-query.ts'

/** Changes to read or write at once. */
export const CHUNK = 400
/** Time limit of a commit: it may have to wait for a large commit of another process. */
export const COMMIT_MS = 15_000

export interface Sealed {
  readonly hash: string
  readonly revisions: readonly object[]
  readonly changes: readonly (LoggedChange & {
    readonly revision: number
    readonly position: number
    readonly final: boolean
  })[]
}

/**
 * Prepares the rows to write. Its reads are not of one consistent moment, which does no harm: if any of them has changed,
 * the store is not at base any more, and nothing is written.
 */
export async function seal(
  db: Database,
  base: number,
  revisions: readonly NewRevision[],
): Promise<Sealed | undefined> {
  const [last, documents] = await Promise.all([
    base === 0 ? { hash: NO_HASH, time: '' } : readLast(db, base),
    readBefore(db, revisions),
  ])
  if (!last) return undefined
  const timeSlice = new TimeSlice()
  const rows: object[] = []
  const changes: (Sealed['changes'][number] & { final: boolean })[] = []
  const latest = new Map<string, { final: boolean }>()
  let { hash: previous, time } = last
  for (const [i, { changes: made, hash: expected, idempotency: _, ...given }] of revisions.entries()) {
    const revision = base + 1 + i
    if (given.time > time) time = given.time
    const meta = { ...given, time }
    const hash = new RevisionHash(previous, revision, meta)
    for (const [position, { type, id, after }] of made.entries()) {
      const key = `${type}/${id}`
      const before = documents.get(key)
      const change = {
        revision,
        position,
        type,
        id,
        before: before?.json ?? null,
        before_deleted: before?.deleted ?? false,
        before_revision: before?.revision ?? 0,
        after: after?.json ?? null,
        after_deleted: after?.deleted ?? false,
        final: true,
      }
      hash.add(change)
      const earlier = latest.get(key)
      if (earlier) earlier.final = false
      latest.set(key, change)
      changes.push(change)
      if (after) documents.set(key, { type, id, revision, deleted: after.deleted, json: after.json })
      else documents.delete(key)
      if (timeSlice.expired) await timeSlice.yield()
    }
    previous = checkHash(revision, hash.digest(), expected)
    const types = [...new Set(made.map(({ type }) => type))]
    rows.push({ ...meta, revision, types, hash: previous, change_count: made.length })
  }
  return { hash: previous, revisions: rows, changes }
}

async function readBefore(
  db: Database,
  revisions: readonly NewRevision[],
): Promise<Map<string, DocumentVersion>> {
  const keys = new Map(
    revisions.flatMap(({ changes }) => changes.map(({ type, id }) => [`${type}/${id}`, { type, id }])),
  )
  const wanted = [...keys.values()]
  const found = new Map<string, DocumentVersion>()
  for (let at = 0; at < wanted.length; at += CHUNK) {
    const rows = await db.query<DocumentVersion>(
      `SELECT type, id, revision, deleted, document AS json FROM ${S}.documents
      JOIN json_to_recordset($1) AS k(type text, id text) USING (type, id)`,
      [JSON.stringify(wanted.slice(at, at + CHUNK))],
      COMMIT_MS,
    )
    for (const row of rows) found.set(`${row.type}/${row.id}`, row)
  }
  return found
}

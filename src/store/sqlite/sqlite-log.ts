// Reading the log in a SQLite file: walking along it, and going back in time.
import type { DatabaseSync } from 'node:sqlite'
import type { Applied } from '../../domain/documents/state.ts'
import { TimeSlice } from '../../runtime/time-slice.ts'
import {
  CHANGE,
  META,
  type PastChange,
  type RevisionRow,
  toApplied,
  toPast,
  withinReach,
} from '../log-rows.ts'
import {
  type Anchor,
  type DocumentVersion,
  type LoggedChange,
  type LogSlice,
  type PastDocument,
  prunedMeanwhileError,
  type RevisionMeta,
  type Store,
} from '../store.ts'
import { guard, prepared } from './sqlite-database.ts'

/** Changes to read at once, with their documents. */
const SLICE = 20
/** Rows to read at once, without documents. */
export const WINDOW = 200

/** Revisions up to the anchor count as pruned, even before their rows are deleted. */
export const IN_LOG = 'revision > coalesce((SELECT revision FROM anchor), 0)'
export interface ChangeRow {
  readonly type: string
  readonly id: string
  readonly before: string | null
  readonly before_deleted: number
  readonly before_revision: number
  readonly after: string | null
  readonly after_deleted: number
}

export function toLogged({ before_deleted, after_deleted, ...change }: ChangeRow): LoggedChange {
  return { ...change, before_deleted: before_deleted === 1, after_deleted: after_deleted === 1 }
}

export async function* changesSince(db: DatabaseSync, since: number): ReturnType<Store['changesSince']> {
  const timeSlice = new TimeSlice()
  for await (const { revision, hash, change_count } of revisionsAfter(db, since)) {
    const changes: Applied[] = []
    for await (const { rows } of slicesOf(db, revision, timeSlice))
      changes.push(...rows.map(toLogged).map(toApplied))
    if (changes.length < change_count) throw prunedMeanwhileError(revision)
    yield { revision, hash, changes }
  }
}

export async function* readLog(
  db: DatabaseSync,
  since: number,
  until = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<LogSlice> {
  // One time slice for the whole walk: most revisions take less than one.
  const timeSlice = new TimeSlice()
  for await (const { revision, hash, change_count, ...meta } of revisionsAfter(db, since, until)) {
    for await (const { rows, last } of slicesOf(db, revision, timeSlice)) {
      yield { revision, meta: meta as RevisionMeta, hash, change_count, changes: rows.map(toLogged), last }
    }
  }
}

async function* revisionsAfter(
  db: DatabaseSync,
  since: number,
  until = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<RevisionRow> {
  const next = prepared(
    db,
    `SELECT ${META} FROM revisions WHERE revision > ? AND revision <= ? AND ${IN_LOG} ORDER BY revision LIMIT 1`,
  )
  for (let last = since; ; ) {
    const row = (await guard(() => next.get(last, until))) as RevisionRow | undefined
    if (!row) return
    yield row
    last = row.revision
  }
}

/** A revision's changes, a few at a time. */
async function* slicesOf(
  db: DatabaseSync,
  revision: number,
  timeSlice: TimeSlice,
): AsyncGenerator<{ rows: ChangeRow[]; last: boolean }> {
  const slice = prepared(
    db,
    `SELECT ${CHANGE} FROM changes WHERE revision = ? AND position >= ? ORDER BY position LIMIT ?`,
  )
  for (let position = 0; ; position += SLICE) {
    const rows = (await guard(() => slice.all(revision, position, SLICE))) as unknown as ChangeRow[]
    if (timeSlice.expired) await timeSlice.yield()
    const last = rows.length < SLICE
    yield { rows, last }
    if (last) return
  }
}

export async function* readDocuments(db: DatabaseSync): AsyncGenerator<DocumentVersion> {
  const slice = prepared(
    db,
    `SELECT type, id, revision, deleted, document AS json FROM documents
    WHERE (type, id) > (?, ?) ORDER BY type, id LIMIT ?`,
  )
  const timeSlice = new TimeSlice()
  for (let at: [string, string] = ['', '']; ; ) {
    const rows = (await guard(() => slice.all(...at, SLICE))) as unknown as DocumentRow[]
    if (timeSlice.expired) await timeSlice.yield()
    for (const row of rows) yield { ...row, deleted: row.deleted === 1 }
    const last = rows.at(-1)
    if (!last || rows.length < SLICE) return
    at = [last.type, last.id]
  }
}

type DocumentRow = Omit<DocumentVersion, 'deleted'> & { readonly deleted: number }

export function readAnchor(db: DatabaseSync): Promise<Anchor | undefined> {
  const anchor = prepared(db, 'SELECT revision, time, hash, state FROM anchor')
  return guard(() => anchor.get() as Anchor | undefined)
}

export function readRevisionAt(db: DatabaseSync, time: string): Promise<number | undefined> {
  const last = prepared(
    db,
    `SELECT revision FROM revisions WHERE time <= ? AND ${IN_LOG} ORDER BY time DESC, revision DESC LIMIT 1`,
  )
  return guard(() => last.get(time)?.revision as number | undefined)
}

/** The first change after a revision knows what the document was at that revision. */
export function changedAfter(
  db: DatabaseSync,
  revision: number,
  only?: { readonly type: string; readonly id?: string },
): AsyncGenerator<PastDocument> {
  return withinReach(revision, () => readAnchor(db), readChangedAfter(db, revision, only))
}

async function* readChangedAfter(
  db: DatabaseSync,
  revision: number,
  only?: { readonly type: string; readonly id?: string },
): AsyncGenerator<PastDocument> {
  const columns = 'type, id, before, before_deleted, before_revision'
  if (only?.id !== undefined) {
    const first = prepared(
      db,
      `SELECT ${columns} FROM changes WHERE type = ? AND id = ? AND revision > ? ORDER BY revision LIMIT 1`,
    )
    const row = await guard(() => first.get(only.type, only.id as string, revision))
    if (row) yield toPast(pastOf(row as unknown as PastRow))
    return
  }
  const window = prepared(
    db,
    `SELECT revision, position, type, id FROM changes
    WHERE (revision, position) > (?, ?) ORDER BY revision, position LIMIT ?`,
  )
  const one = prepared(db, `SELECT ${columns} FROM changes WHERE revision = ? AND position = ?`)
  const seen = new Set<string>()
  const timeSlice = new TimeSlice()
  for (let at: [number, number] = [revision, Number.MAX_SAFE_INTEGER]; ; ) {
    const rows = (await guard(() => window.all(...at, WINDOW))) as unknown as WindowRow[]
    for (const { type, id, ...place } of rows) {
      at = [place.revision, place.position]
      const key = `${type}/${id}`
      if ((only && type !== only.type) || seen.has(key)) continue
      seen.add(key)
      const row = await guard(() => one.get(...at))
      if (row) yield toPast(pastOf(row as unknown as PastRow))
      if (timeSlice.expired) await timeSlice.yield()
    }
    if (timeSlice.expired) await timeSlice.yield()
    if (rows.length < WINDOW) return
  }
}

interface WindowRow {
  readonly revision: number
  readonly position: number
  readonly type: string
  readonly id: string
}

type PastRow = Omit<PastChange, 'before_deleted'> & { readonly before_deleted: number }

function pastOf({ before_deleted, ...row }: PastRow): PastChange {
  return { ...row, before_deleted: before_deleted === 1 }
}

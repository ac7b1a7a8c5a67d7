// Reading the log in PostgreSQL: walking along it, and going back in time.

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
import type { Database } from './postgres-database.ts'
import { QUICK_MS, S } from './postgres-query.ts'

/** Revisions to read at once, without their changes. */
export const REVISIONS = 200
/** Changes or documents to read at once. */
const SLICE = 200
/** Positions in the log to read at once. */
const WINDOW = 2000

/** The largest value of the column `position`. */
const LAST_POSITION = 2_147_483_647

/** Revisions up to the anchor count as pruned, even before their rows are deleted. */
export const IN_LOG = `revision > coalesce((SELECT revision FROM ${S}.anchor), 0)`

export async function* changesSince(db: Database, since: number): ReturnType<Store['changesSince']> {
  const columns = 'type, id, after, after_deleted'
  let changes: ReturnType<typeof toApplied>[] = []
  for await (const { row, rows, last } of slices<LoggedChange>(db, columns, since)) {
    changes.push(...rows.map(toApplied))
    if (!last) continue
    yield { revision: row.revision, hash: row.hash, changes }
    changes = []
  }
}

export async function* readLog(db: Database, since: number, until?: number): AsyncGenerator<LogSlice> {
  for await (const { row, rows, last } of slices<LoggedChange>(db, CHANGE, since, until)) {
    const { revision, hash, change_count, ...meta } = row
    yield { revision, meta: meta as RevisionMeta, hash, change_count, changes: rows.map(withoutPlace), last }
  }
}

function withoutPlace<T extends object>(row: T & Partial<Place>): T {
  const { revision: _, position: __, ...rest } = row
  return rest as T
}

interface Place {
  readonly revision: number
  readonly position: number
}

/** Every revision with its changes, a few at a time; many small ones are read together. */
async function* slices<T>(
  db: Database,
  columns: string,
  since: number,
  until = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<{ row: RevisionRow; rows: (T & Place)[]; last: boolean }> {
  const changes = new Changes<T>(db, columns, since, until)
  for (let at = since; ; ) {
    const reading = db.query<RevisionRow>(
      `SELECT ${META} FROM ${S}.revisions WHERE revision > $1 AND revision <= $2 AND ${IN_LOG}
      ORDER BY revision LIMIT ${REVISIONS}`,
      [at, until],
    )
    // Mostly there is one new revision; its changes are read at the same time.
    const [page] = await Promise.all([reading, changes.read()])
    const end = page.at(-1)
    if (!end) return
    for (const row of page) {
      for (let seen = 0; ; ) {
        const rows = seen < row.change_count ? await changes.of(row.revision) : []
        seen += rows.length
        const last = seen >= row.change_count
        if (!last && rows.length === 0) throw prunedMeanwhileError(row.revision)
        yield { row, rows, last }
        if (last) break
      }
    }
    at = end.revision
    if (page.length < REVISIONS) return
  }
}

/** The changes of some revisions, in their order. */
class Changes<T> {
  readonly #db: Database
  readonly #columns: string
  readonly #until: number
  #at: readonly [number, number]
  #rows: (T & Place)[] = []

  constructor(db: Database, columns: string, since: number, until: number) {
    this.#db = db
    this.#columns = columns
    this.#until = until
    this.#at = [since, LAST_POSITION]
  }

  /** The next changes that are of this revision; empty when there are no more. */
  async of(revision: number): Promise<(T & Place)[]> {
    await this.read()
    const other = this.#rows.findIndex((row) => row.revision !== revision)
    return this.#rows.splice(0, other < 0 ? this.#rows.length : other)
  }

  /** Reads the next changes, unless some are buffered. */
  async read(): Promise<void> {
    if (this.#rows.length > 0) return
    this.#rows = await this.#db.query<T & Place>(
      `SELECT revision, position, ${this.#columns} FROM ${S}.changes
      WHERE (revision, position) > ($1, $2) AND revision <= $3 ORDER BY revision, position LIMIT ${SLICE}`,
      [...this.#at, this.#until],
    )
    const last = this.#rows.at(-1)
    if (last) this.#at = [last.revision, last.position]
  }
}

export async function* readDocuments(db: Database): AsyncGenerator<DocumentVersion> {
  const timeSlice = new TimeSlice()
  for (let at: [string, string] = ['', '']; ; ) {
    const rows = await db.query<DocumentVersion>(
      `SELECT type, id, revision, deleted, document AS json FROM ${S}.documents
      WHERE (type, id) > ($1, $2) ORDER BY type, id LIMIT ${SLICE}`,
      at,
    )
    for (const row of rows) {
      yield row
      if (timeSlice.expired) await timeSlice.yield()
    }
    const last = rows.at(-1)
    if (!last || rows.length < SLICE) return
    at = [last.type, last.id]
  }
}

export async function readAnchor(db: Database): Promise<Anchor | undefined> {
  const [anchor] = await db.query<Anchor>(`SELECT revision, time, hash, state FROM ${S}.anchor`, [], QUICK_MS)
  return anchor
}

export async function readRevisionAt(db: Database, time: string): Promise<number | undefined> {
  const [row] = await db.query<{ revision: number }>(
    `SELECT revision FROM ${S}.revisions WHERE time <= $1 AND ${IN_LOG} ORDER BY time DESC, revision DESC LIMIT 1`,
    [time],
  )
  return row?.revision
}

/** The first change after a revision knows what the document was at that revision. */
export function changedAfter(
  db: Database,
  revision: number,
  only?: { readonly type: string; readonly id?: string },
): AsyncGenerator<PastDocument> {
  return withinReach(revision, () => readAnchor(db), readChangedAfter(db, revision, only))
}

/** Whether an id cannot exist in PostgreSQL, which refuses it even in a query. */
export function isUnknowable(id: string): boolean {
  return id.includes('\0')
}

const BEFORE = 'type, id, before, before_deleted, before_revision'

async function* readChangedAfter(
  db: Database,
  revision: number,
  only?: { readonly type: string; readonly id?: string },
): AsyncGenerator<PastDocument> {
  if (only?.id !== undefined) {
    if (isUnknowable(only.id)) return
    const [row] = await db.query<PastChange>(
      `SELECT ${BEFORE} FROM ${S}.changes WHERE type = $1 AND id = $2 AND revision > $3 ORDER BY revision LIMIT 1`,
      [only.type, only.id, revision],
    )
    if (row) yield toPast(row)
    return
  }
  const seen = new Set<string>()
  const timeSlice = new TimeSlice()
  for (let at: [number, number] = [revision, LAST_POSITION]; ; ) {
    const places = await db.query<Place & { type: string; id: string }>(
      `SELECT revision, position, type, id FROM ${S}.changes
      WHERE (revision, position) > ($1, $2) ORDER BY revision, position LIMIT ${WINDOW}`,
      at,
    )
    const first = places.filter(({ type, id }) => {
      if ((only && type !== only.type) || seen.has(`${type}/${id}`)) return false
      seen.add(`${type}/${id}`)
      return true
    })
    for (let i = 0; i < first.length; i += SLICE) {
      const rows = await db.query<PastChange>(
        `SELECT ${BEFORE} FROM ${S}.changes JOIN json_to_recordset($1) AS place(revision bigint, position integer)
        USING (revision, position) ORDER BY revision, position`,
        [JSON.stringify(first.slice(i, i + SLICE))],
      )
      for (const row of rows) {
        yield toPast(row)
        if (timeSlice.expired) await timeSlice.yield()
      }
    }
    const last = places.at(-1)
    if (!last || places.length < WINDOW) return
    at = [last.revision, last.position]
  }
}

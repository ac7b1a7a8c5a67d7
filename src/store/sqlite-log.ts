// Reading the log in a SQLite file: searching it, walking along it, and going back in time.
import type { DatabaseSync } from 'node:sqlite'
import type { Document } from '../domain/resource-type.ts'
import type { Applied } from '../domain/state.ts'
import { Pace } from './pace.ts'
import { guard, prepared } from './sqlite-database.ts'
import {
  type Anchor,
  type HistoryQuery,
  type LoggedChange,
  type LogSlice,
  type PastDocument,
  prunedError,
  type RecordedRevision,
  type RevisionMeta,
  type Store,
  type StoredDocument,
  StoreError,
} from './store.ts'

/** Changes to read at once, with their documents. */
const SLICE = 20
/** Rows to look at at once, without documents. */
const WINDOW = 200

/** What a prune has begun to delete is gone already. */
const IN_LOG = 'revision > coalesce((SELECT revision FROM anchor), 0)'
const META = 'revision, time, actor, message, request_id, client_address, operation, hash, change_count'
const CHANGE = 'type, id, before, before_deleted, before_revision, after, after_deleted'

interface ChangeRow {
  readonly type: string
  readonly id: string
  readonly before: string | null
  readonly before_deleted: number
  readonly before_revision: number
  readonly after: string | null
  readonly after_deleted: number
}

type RevisionRow = Omit<RecordedRevision, 'changes'>

export function parseApplied(
  type: string,
  id: string,
  json: string,
  deleted: number,
): NonNullable<Applied['after']> {
  try {
    return { document: JSON.parse(json) as Document, deleted: deleted === 1, size: json.length }
  } catch (cause) {
    throw new StoreError(`${type} "${id}" is not readable in the database: restore it from a backup`, {
      cause,
    })
  }
}

function toApplied({ type, id, after, after_deleted }: ChangeRow): Applied {
  return { type, id, after: after === null ? undefined : parseApplied(type, id, after, after_deleted) }
}

function toLogged({ before_deleted, after_deleted, ...change }: ChangeRow): LoggedChange {
  return { ...change, before_deleted: before_deleted === 1, after_deleted: after_deleted === 1 }
}

export async function* changesSince(db: DatabaseSync, since: number): ReturnType<Store['changesSince']> {
  for await (const revision of revisionsAfter(db, since)) {
    const changes: Applied[] = []
    for await (const { rows } of slicesOf(db, revision)) changes.push(...rows.map(toApplied))
    yield { revision: revision.revision, changes }
  }
}

export async function* readLog(
  db: DatabaseSync,
  since: number,
  until = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<LogSlice> {
  for await (const { revision, hash, change_count, ...meta } of revisionsAfter(db, since, until)) {
    for await (const { rows, last } of slicesOf(db, { revision })) {
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
  { revision }: { revision: number },
): AsyncGenerator<{ rows: ChangeRow[]; last: boolean }> {
  const slice = prepared(
    db,
    `SELECT ${CHANGE} FROM changes WHERE revision = ? AND position >= ? ORDER BY position LIMIT ?`,
  )
  const pace = new Pace()
  for (let position = 0; ; position += SLICE) {
    const rows = (await guard(() => slice.all(revision, position, SLICE))) as unknown as ChangeRow[]
    const last = rows.length < SLICE
    yield { rows, last }
    if (last) return
    if (pace.isDue) await pace.rest()
  }
}

export async function* readDocuments(db: DatabaseSync): AsyncGenerator<StoredDocument> {
  const slice = prepared(
    db,
    `SELECT type, id, revision, deleted, document AS json FROM documents
    WHERE (type, id) > (?, ?) ORDER BY type, id LIMIT ?`,
  )
  const pace = new Pace()
  for (let at: [string, string] = ['', '']; ; ) {
    const rows = (await guard(() => slice.all(...at, SLICE))) as unknown as DocumentRow[]
    if (pace.isDue) await pace.rest()
    for (const row of rows) yield { ...row, deleted: row.deleted === 1 }
    const last = rows.at(-1)
    if (!last || rows.length < SLICE) return
    at = [last.type, last.id]
  }
}

type DocumentRow = Omit<StoredDocument, 'deleted'> & { readonly deleted: number }

/** The first change after a revision knows what the document was at that revision. */
export async function* changedAfter(
  db: DatabaseSync,
  revision: number,
  only?: { readonly type: string; readonly id?: string },
): AsyncGenerator<PastDocument> {
  const readAnchor = prepared(db, 'SELECT revision, time, hash, state FROM anchor')
  const checkReach = async (): Promise<void> => {
    const anchor = (await guard(() => readAnchor.get())) as Anchor | undefined
    if (anchor && anchor.revision > revision) throw prunedError(revision, anchor)
  }
  await checkReach()
  yield* readChangedAfter(db, revision, only)
  // What was given up while it was read would be missing.
  await checkReach()
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
    if (row) yield toPast(row as unknown as PastRow)
    return
  }
  const window = prepared(
    db,
    `SELECT revision, position, type, id FROM changes
    WHERE (revision, position) > (?, ?) ORDER BY revision, position LIMIT ?`,
  )
  const one = prepared(db, `SELECT ${columns} FROM changes WHERE revision = ? AND position = ?`)
  const seen = new Set<string>()
  const pace = new Pace()
  for (let at: [number, number] = [revision, Number.MAX_SAFE_INTEGER]; ; ) {
    const rows = (await guard(() => window.all(...at, WINDOW))) as unknown as WindowRow[]
    for (const { type, id, ...place } of rows) {
      at = [place.revision, place.position]
      const key = `${type}/${id}`
      if ((only && type !== only.type) || seen.has(key)) continue
      seen.add(key)
      const row = await guard(() => one.get(...at))
      if (row) yield toPast(row as unknown as PastRow)
      if (pace.isDue) await pace.rest()
    }
    if (pace.isDue) await pace.rest()
    if (rows.length < WINDOW) return
  }
}

interface WindowRow {
  readonly revision: number
  readonly position: number
  readonly type: string
  readonly id: string
}

type PastRow = Pick<ChangeRow, 'type' | 'id' | 'before' | 'before_deleted' | 'before_revision'>

function toPast({ type, id, before, before_deleted, before_revision }: PastRow): PastDocument {
  if (before === null) return { type, id, was: undefined }
  return { type, id, was: { ...parseApplied(type, id, before, before_deleted), revision: before_revision } }
}

/** Makes what searching needs; once for a connection. */
export function addSearch(db: DatabaseSync): void {
  db.function('holds', { deterministic: true }, (field, text) =>
    Number(
      String(field ?? '')
        .toLowerCase()
        .includes(String(text)),
    ),
  )
}

export async function readHistory(db: DatabaseSync, asked: HistoryQuery): Promise<RecordedRevision[]> {
  const query = withoutOtherTypes(asked)
  const found = query.documents
    ? await guard(() => findByDocuments(db, query))
    : await findInWindows(db, query)
  const { documents, type } = query
  const spans = documents && JSON.stringify(documents)
  const chosen = [
    'revision = ?',
    ...(type === undefined ? [] : ['type = ?']),
    ...(spans ? [`EXISTS (${SPANS})`] : []),
  ].join(' AND ')
  const changes = prepared(
    db,
    `SELECT ${CHANGE} FROM changes WHERE ${chosen} ORDER BY position LIMIT ? OFFSET ?`,
  )
  const recorded: RecordedRevision[] = []
  const pace = new Pace()
  for (const row of found) {
    const filter = [...(type === undefined ? [] : [type]), ...(spans ? [spans] : [])]
    const page = [...filter, query.changeLimit, query.changeOffset ?? 0]
    const rows = (await guard(() => changes.all(row.revision, ...page))) as unknown as ChangeRow[]
    recorded.push({ ...row, changes: rows.map(toRecorded) })
    if (pace.isDue) await pace.rest()
  }
  return recorded
}

/** Of documents, those of the type are left; the type need then not be looked for as well. */
function withoutOtherTypes(query: HistoryQuery): HistoryQuery {
  const { type, documents, ...rest } = query
  if (type === undefined || !documents) return query
  return { ...rest, documents: documents.filter((span) => span.type === type) }
}

const SPANS = `SELECT 1 FROM json_each(?) AS span
  WHERE changes.type = span.value ->> 'type' AND changes.id = span.value ->> 'id'
  AND changes.revision >= coalesce(span.value ->> 'from', 0)
  AND changes.revision < coalesce(span.value ->> 'until', 9007199254740991)`

/** Documents are found by an index of their own. */
function findByDocuments(db: DatabaseSync, query: HistoryQuery): RevisionRow[] {
  const { where, values } = conditions(query)
  const rows = prepared(
    db,
    `SELECT ${META} FROM revisions WHERE revision IN (
      SELECT changes.revision FROM json_each(?) AS span CROSS JOIN changes
      ON changes.type = span.value ->> 'type' AND changes.id = span.value ->> 'id'
      WHERE changes.revision >= coalesce(span.value ->> 'from', 0)
      AND changes.revision < coalesce(span.value ->> 'until', 9007199254740991)
    ) AND ${where} ORDER BY revision DESC LIMIT ?`,
  )
  return rows.all(JSON.stringify(query.documents), ...values, query.limit) as unknown as RevisionRow[]
}

/** Anything else is looked for from the newest revision downwards, a window at a time. */
async function findInWindows(db: DatabaseSync, query: HistoryQuery): Promise<RevisionRow[]> {
  const { where, values } = conditions(query)
  const rows = prepared(
    db,
    `SELECT ${META} FROM revisions WHERE revision >= ? AND revision < ? AND ${where}
    ORDER BY revision DESC LIMIT ?`,
  )
  const range = prepared(db, 'SELECT min(revision) AS lowest, max(revision) AS highest FROM revisions')
  const { lowest, highest } = (await guard(() => range.get())) as { lowest: number | null; highest: number }
  const found: RevisionRow[] = []
  if (lowest === null) return found
  const pace = new Pace()
  for (let top = highest + 1; top > lowest && found.length < query.limit; top -= WINDOW) {
    const more = await guard(() => rows.all(top - WINDOW, top, ...values, query.limit - found.length))
    found.push(...(more as unknown as RevisionRow[]))
    if (pace.isDue) await pace.rest()
  }
  return found
}

function conditions(query: HistoryQuery): { where: string; values: (string | number)[] } {
  const { revision, before, type, actor, since, until, text } = query
  const parts: [string, string | number | undefined][] = [
    ['revision = ?', revision],
    ['revision < ?', before],
    ["instr(types, ',' || ? || ',') > 0", type],
    ['actor = ?', actor],
    ['time >= ?', since],
    ['time <= ?', until],
    [
      "holds(coalesce(message, '') || char(0) || operation || char(0) || actor || char(0) || request_id, ?)",
      text?.toLowerCase(),
    ],
  ]
  const given = parts.filter((part): part is [string, string | number] => part[1] !== undefined)
  return {
    where: [IN_LOG, ...given.map(([condition]) => condition)].join(' AND '),
    values: given.map(([, value]) => value),
  }
}

function toRecorded(row: ChangeRow): RecordedRevision['changes'][number] {
  const { type, id, before, after } = row
  return {
    type,
    id,
    before: before === null ? null : JSON.parse(before),
    before_deleted: row.before_deleted === 1,
    after: after === null ? null : JSON.parse(after),
    after_deleted: row.after_deleted === 1,
  }
}

// Searching the log in a SQLite file.
import type { DatabaseSync } from 'node:sqlite'
import { TimeSlice } from '../../runtime/time-slice.ts'
import { CHANGE, META, type RevisionRow, toRecorded } from '../log-rows.ts'
import type { HistoryQuery, RecordedRevision } from '../store.ts'
import { guard, prepared } from './sqlite-database.ts'
import { type ChangeRow, IN_LOG, toLogged, WINDOW } from './sqlite-log.ts'

/** Defines the SQL function `holds` for searches; once per connection. */
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
    ...(spans ? [`EXISTS (SELECT 1 FROM json_each(?) AS span WHERE ${IN_SPAN})`] : []),
  ].join(' AND ')
  const changes = prepared(
    db,
    `SELECT ${CHANGE} FROM changes WHERE ${chosen} ORDER BY position LIMIT ? OFFSET ?`,
  )
  const recorded: RecordedRevision[] = []
  const timeSlice = new TimeSlice()
  for (const row of found) {
    const filter = [...(type === undefined ? [] : [type]), ...(spans ? [spans] : [])]
    const page = [...filter, query.changeLimit, query.changeOffset ?? 0]
    const rows = (await guard(() => changes.all(row.revision, ...page))) as unknown as ChangeRow[]
    recorded.push({ ...row, changes: rows.map(toLogged).map(toRecorded) })
    if (timeSlice.expired) await timeSlice.yield()
  }
  return recorded
}

/** A type beside documents leaves only the documents of that type, and is then dropped from the query. */
function withoutOtherTypes(query: HistoryQuery): HistoryQuery {
  const { type, documents, ...rest } = query
  if (type === undefined || !documents) return query
  return { ...rest, documents: documents.filter((span) => span.type === type) }
}

/** The condition that a change is of one of the queried documents, within its range of revisions. */
const IN_SPAN = `changes.type = span.value ->> 'type' AND changes.id = span.value ->> 'id'
  AND changes.revision >= coalesce(span.value ->> 'from', 0)
  AND changes.revision < coalesce(span.value ->> 'until', 9007199254740991)`

/** A query by documents uses the index of changes. */
function findByDocuments(db: DatabaseSync, query: HistoryQuery): RevisionRow[] {
  const { where, values } = conditions(query)
  const rows = prepared(
    db,
    `SELECT ${META} FROM revisions WHERE revision IN (
      SELECT changes.revision FROM json_each(?) AS span CROSS JOIN changes ON ${IN_SPAN}
    ) AND ${where} ORDER BY revision DESC LIMIT ?`,
  )
  return rows.all(JSON.stringify(query.documents), ...values, query.limit) as unknown as RevisionRow[]
}

/** A query without documents scans from the newest revision downwards, a window at a time. */
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
  const timeSlice = new TimeSlice()
  for (let top = highest + 1; top > lowest && found.length < query.limit; top -= WINDOW) {
    const more = await guard(() => rows.all(top - WINDOW, top, ...values, query.limit - found.length))
    found.push(...(more as unknown as RevisionRow[]))
    if (timeSlice.expired) await timeSlice.yield()
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

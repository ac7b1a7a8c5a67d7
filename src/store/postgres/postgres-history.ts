// Searching the log in PostgreSQL.
import { CHANGE, holdsText, META, type RevisionRow, toRecorded } from '../log-rows.ts'
import type { HistoryQuery, LoggedChange, RecordedRevision } from '../store.ts'
import type { Database } from './postgres-database.ts'
import { IN_LOG, isUnknowable, REVISIONS } from './postgres-log.ts'
import { S } from './postgres-query.ts'

export async function readHistory(db: Database, query: HistoryQuery): Promise<RecordedRevision[]> {
  const { documents, type, changeLimit, changeOffset = 0 } = query
  // A type beside documents leaves only the documents of that type.
  const spans = documents?.filter(
    (span) => (type === undefined || span.type === type) && !isUnknowable(span.id),
  )
  const found = await findRevisions(db, query, spans)
  const recorded: RecordedRevision[] = []
  const filter = spans
    ? `EXISTS (SELECT 1 FROM ${SPANS} WHERE ${IN_SPAN})`
    : '($2::json IS NULL OR changes.type = $2::json #>> ARRAY[]::text[])'
  const given = JSON.stringify(spans ?? type ?? null)
  for (const row of found) {
    const rows =
      changeLimit === 0
        ? []
        : await db.query<LoggedChange>(
            `SELECT ${CHANGE} FROM ${S}.changes WHERE revision = $1 AND ${filter}
            ORDER BY position LIMIT $3 OFFSET $4`,
            [row.revision, given === 'null' ? null : given, changeLimit, changeOffset],
          )
    recorded.push({ ...row, changes: rows.map(toRecorded) })
  }
  return recorded
}

const SPANS = 'json_to_recordset($2) AS span(type text, id text, "from" bigint, until bigint)'

/** The condition that a change is of one of the queried documents, within its range of revisions. */
const IN_SPAN = `changes.type = span.type AND changes.id = span.id AND changes.revision >= coalesce(span."from", 0)
  AND changes.revision < coalesce(span.until, ${Number.MAX_SAFE_INTEGER})`

/** Newest first. Text is matched here and not in SQL: the collation of the database must not decide what matches. */
async function findRevisions(
  db: Database,
  query: HistoryQuery,
  spans: HistoryQuery['documents'],
): Promise<RevisionRow[]> {
  const { revision, type, actor, since, until, text, limit } = query
  const values: unknown[] = []
  const given: string[] = []
  const where = (condition: (parameter: string) => string, value: unknown): void => {
    if (value === undefined) return
    values.push(value)
    given.push(condition(`$${values.length}`))
  }
  where((p) => `revision < ${p}`, query.before ?? Number.MAX_SAFE_INTEGER)
  // This must be parameter $2: SPANS refers to it by that number.
  where(
    (p) =>
      `(${p}::json IS NULL OR revision IN (SELECT changes.revision FROM ${SPANS} JOIN ${S}.changes ON ${IN_SPAN}))`,
    spans ? JSON.stringify(spans) : null,
  )
  where((p) => `revision = ${p}`, revision)
  where((p) => `${p} = ANY(types)`, spans ? undefined : type)
  where((p) => `actor = ${p}`, actor)
  where((p) => `time >= ${p}`, since)
  where((p) => `time <= ${p}`, until)
  const found: RevisionRow[] = []
  while (found.length < limit) {
    const size = text === undefined ? limit - found.length : REVISIONS
    const rows = await db.query<RevisionRow>(
      `SELECT ${META} FROM ${S}.revisions WHERE ${IN_LOG} AND ${given.join(' AND ')} ORDER BY revision DESC LIMIT ${size}`,
      values,
    )
    found.push(...rows.filter((row) => holdsText(row, text)))
    const last = rows.at(-1)
    if (!last || rows.length < size) break
    values[0] = last.revision
  }
  return found.slice(0, limit)
}

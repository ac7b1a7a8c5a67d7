// Idempotency records in PostgreSQL.
import { expiredBefore, type IdempotencyRecord } from '../idempotency.ts'
import type { Database } from './postgres-database.ts'
import { QUICK_MS, S } from './postgres-query.ts'

const COLUMNS = 'key, fingerprint, time, answer'
/** Records to read at once. */
const PAGE = 1000

export async function findRecord(
  db: Database,
  key: string,
  now: string,
): Promise<IdempotencyRecord | undefined> {
  const sql = `SELECT ${COLUMNS} FROM ${S}.answers WHERE key = $1 AND time >= $2`
  const [record] = await db.query<IdempotencyRecord>(sql, [key, expiredBefore(now)], QUICK_MS)
  return record
}

export async function* listRecords(db: Database, now: string): AsyncGenerator<IdempotencyRecord> {
  for (let at = ''; ; ) {
    const rows = await db.query<IdempotencyRecord>(
      `SELECT ${COLUMNS} FROM ${S}.answers WHERE time >= $1 AND key > $2 ORDER BY key LIMIT ${PAGE}`,
      [expiredBefore(now), at],
    )
    yield* rows
    if (rows.length < PAGE) return
    at = rows.at(-1)?.key as string
  }
}

const SAVE = `
  INSERT INTO ${S}.answers AS known (${COLUMNS})
  SELECT ${COLUMNS} FROM json_to_recordset($1) AS a(key text, fingerprint text, time text, answer text)
  ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint, time = excluded.time, answer = excluded.answer
  WHERE known.time < $2`

export async function saveRecord(db: Database, record: IdempotencyRecord): Promise<void> {
  await db.query(SAVE, [JSON.stringify([record]), expiredBefore(record.time)])
}

export async function deleteExpired(db: Database, now: string): Promise<void> {
  await db.query(`DELETE FROM ${S}.answers WHERE time < $1`, [expiredBefore(now)])
}

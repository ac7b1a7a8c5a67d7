// Idempotency records in a SQLite file: saved by the writing thread, read by any connection.
import type { DatabaseSync } from 'node:sqlite'
import { expiredBefore, type IdempotencyRecord } from '../idempotency.ts'
import { guard, prepared } from './sqlite-database.ts'

/** Records to read at once. */
const PAGE = 20
const COLUMNS = 'key, fingerprint, time, answer'

export function findRecord(
  db: DatabaseSync,
  key: string,
  now: string,
): Promise<IdempotencyRecord | undefined> {
  const sql = `SELECT ${COLUMNS} FROM answers WHERE key = ? AND time >= ?`
  return guard(() => prepared(db, sql).get(key, expiredBefore(now)) as IdempotencyRecord | undefined)
}

export async function* listRecords(db: DatabaseSync, now: string): AsyncGenerator<IdempotencyRecord> {
  const sql = `SELECT ${COLUMNS} FROM answers WHERE time >= ? AND key > ? ORDER BY key LIMIT ${PAGE}`
  for (let at = ''; ; ) {
    const after = at
    const rows = (await guard(() =>
      prepared(db, sql).all(expiredBefore(now), after),
    )) as unknown as IdempotencyRecord[]
    yield* rows
    if (rows.length < PAGE) return
    at = rows.at(-1)?.key as string
  }
}

/** Whether a valid record is there under the same key. */
export function hasRecord(db: DatabaseSync, { key, time }: IdempotencyRecord): boolean {
  const find = prepared(db, 'SELECT 1 FROM answers WHERE key = ? AND time >= ?')
  return find.get(key, expiredBefore(time)) !== undefined
}

/** Runs inside a transaction. */
export function saveRecord(db: DatabaseSync, { key, fingerprint, time, answer }: IdempotencyRecord): void {
  prepared(db, 'DELETE FROM answers WHERE time < ?').run(expiredBefore(time))
  const save = prepared(db, `INSERT OR IGNORE INTO answers (${COLUMNS}) VALUES (?, ?, ?, ?)`)
  save.run(key, fingerprint, time, answer)
}

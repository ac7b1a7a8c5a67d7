// The head of the log in PostgreSQL, and the hashes of revisions.
import { NO_HASH } from '../hash-chain.ts'
import { StoreError, type StoreHead } from '../store.ts'
import type { Database } from './postgres-database.ts'
import { IMPORT_IN_PROGRESS } from './postgres-leases.ts'
import { IN_LOG } from './postgres-log.ts'
import { refuseNewer, SCHEMA, type Schema } from './postgres-migrate.ts'
import { QUICK_MS, S } from './postgres-query.ts'

/** One statement reads one moment. After a failover the host name may still lead to the old primary, now a standby. */
export function readHead(db: Database, write: boolean): Promise<StoreHead> {
  const sql = `SELECT revision, ${HASH} AS hash, pg_is_in_recovery() AS standby, (revision > 0 AND ${IMPORT_IN_PROGRESS}) AS importing, schema.version,
      schema."from" FROM ${S}.head CROSS JOIN (${SCHEMA}) AS schema`
  return db.readRow(sql, (row?: Schema & HeadRow) => {
    if (!row) throw new StoreError('the database is damaged: it has no head; restore it from a backup')
    refuseNewer(row)
    if (write && row.standby)
      throw new StoreError('the database takes no writes: it is a standby', { isTransient: true })
    const { revision, hash, importing } = row
    return { revision, hash: hash ?? NO_HASH, ...(importing && { importInProgress: true }) }
  })
}

interface HeadRow {
  readonly revision: number
  readonly hash: string | null
  readonly standby: boolean
  readonly importing: boolean
}

export const HASH = `coalesce(
  (SELECT r.hash FROM ${S}.revisions AS r WHERE r.revision = head.revision),
  (SELECT a.hash FROM ${S}.anchor AS a WHERE a.revision = head.revision))`

export async function readHash(db: Database, revision: number): Promise<string | undefined> {
  if (revision === 0) return NO_HASH
  return (await readLast(db, revision))?.hash
}

/** The revision that the next one follows. */
export async function readLast(
  db: Database,
  revision: number,
): Promise<{ hash: string; time: string } | undefined> {
  const [row] = await db.query<{ hash: string; time: string }>(
    `SELECT hash, time FROM ${S}.revisions WHERE revision = $1 AND ${IN_LOG}
    UNION ALL SELECT hash, time FROM ${S}.anchor WHERE revision = $1`,
    [revision],
    QUICK_MS,
  )
  return row
}

// Leases in PostgreSQL, and the marker of an import, which is a row among them.
import type { Lease } from '../leases.ts'
import type { Database } from './postgres-database.ts'
import { S } from './postgres-query.ts'

/** The expiry is evaluated once, for both holder and term: a new holder without a new term would not be fenced off. */
const ACQUIRE = `
  INSERT INTO ${S}.leases AS known (name, holder, term, expires)
  VALUES ($1, $2, 1, clock_timestamp() + $3 * interval '1 millisecond')
  ON CONFLICT (name) DO UPDATE SET (term, holder, expires) = (
    SELECT CASE WHEN is_over THEN known.term + 1 ELSE known.term END,
      CASE WHEN is_over THEN excluded.holder ELSE known.holder END,
      CASE WHEN is_over OR known.holder = excluded.holder THEN excluded.expires ELSE known.expires END
    FROM (SELECT known.expires <= clock_timestamp() AS is_over) AS asked)
  RETURNING name, holder, term`

/** Expiry is by the clock of the database. */
export async function acquireLease(db: Database, name: string, holder: string, ms: number): Promise<Lease> {
  const [lease] = await db.query<Lease>(ACQUIRE, [name, holder, ms])
  return lease as Lease
}

export async function releaseLease(db: Database, { name, term }: Lease): Promise<void> {
  const sql = `UPDATE ${S}.leases SET expires = clock_timestamp() WHERE name = $1 AND term = $2`
  await db.query(sql, [name, term])
}

/** Programs of earlier versions know an import by a lease of this name that is not over. */
const IMPORT = 'filling'

export async function setImportInProgress(db: Database, inProgress: boolean): Promise<void> {
  const set = `
    INSERT INTO ${S}.leases (name, holder, term, expires) VALUES ($1, 'import', 1, 'infinity')
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires = excluded.expires`
  await db.query(inProgress ? set : `DELETE FROM ${S}.leases WHERE name = $1`, [IMPORT])
}

/** The SQL condition that an import is in progress. */
export const IMPORT_IN_PROGRESS = `EXISTS (
  SELECT 1 FROM ${S}.leases WHERE name = '${IMPORT}' AND expires > clock_timestamp())`

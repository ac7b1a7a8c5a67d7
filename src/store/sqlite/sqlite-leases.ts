// Leases in a SQLite file, and the marker of an import, which is a row among them.
import type { DatabaseSync } from 'node:sqlite'
import type { Lease } from '../leases.ts'
import { prepared } from './sqlite-database.ts'

const WRITE = `
  INSERT INTO leases (name, holder, term, expires) VALUES (?, ?, ?, ?)
  ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, term = excluded.term, expires = excluded.expires`

/** Runs inside a transaction. Expiry is by the clock of this host, which all processes on the file share. */
export function acquireLease(db: DatabaseSync, name: string, holder: string, ms: number): Lease {
  const read = prepared(db, 'SELECT name, holder, term, expires FROM leases WHERE name = ?')
  const known = read.get(name) as (Lease & { expires: number }) | undefined
  const now = Date.now()
  const isFree = !known || known.expires <= now
  if (!isFree && known.holder !== holder) return { name, holder: known.holder, term: known.term }
  const term = isFree ? (known?.term ?? 0) + 1 : known.term
  prepared(db, WRITE).run(name, holder, term, now + ms)
  return { name, holder, term }
}

export function releaseLease(db: DatabaseSync, { name, term }: Lease): void {
  prepared(db, 'UPDATE leases SET expires = 0 WHERE name = ? AND term = ?').run(name, term)
}

/** Programs of earlier versions know an import by a lease of this name that is not over. */
const IMPORT = 'filling'
const NEVER = Number.MAX_SAFE_INTEGER

export function setImportInProgress(db: DatabaseSync, inProgress: boolean): void {
  if (inProgress) prepared(db, WRITE).run(IMPORT, 'import', 1, NEVER)
  else prepared(db, 'DELETE FROM leases WHERE name = ?').run(IMPORT)
}

export function isImportInProgress(db: DatabaseSync): boolean {
  const read = prepared(db, 'SELECT 1 FROM leases WHERE name = ? AND expires > ?')
  return read.get(IMPORT, Date.now()) !== undefined
}

// Bringing a PostgreSQL database to the current schema, and refusing one that is too new.
import { readdirSync, readFileSync } from 'node:fs'
import pg from 'pg'
import { type Migrated, StoreError } from '../store.ts'
import { clientConfig, clientOf, type PostgresOptions } from './postgres-client.ts'
import { withStoreErrors } from './postgres-errors.ts'
import { QUICK_MS, type Query, READ_COMMITTED, send, transaction } from './postgres-query.ts'

/** Any number; it only has to be the same in all versions of this program. */
const MIGRATION_LOCK = 7_205_148_301
const FOLDER = new URL('../migrations/', import.meta.url)

/** In order; each says which version a program must know of at least to work with what it leaves. */
const MIGRATIONS = readdirSync(FOLDER)
  .filter((name) => /^postgres-\d+\.sql$/.test(name))
  .sort()
  .map((name) => {
    const sql = readFileSync(new URL(name, FOLDER), 'utf8')
    return { sql, from: Number(/^-- Works with programs from version: (\d+)/.exec(sql)?.[1]) }
  })

export interface Schema {
  readonly version: number
  /** The version that a program must know of at least. */
  readonly from: number
}

export const SCHEMA =
  'SELECT version, works_from AS "from" FROM flux_resourceset.migrations ORDER BY version DESC LIMIT 1'

async function schemaOf(query: Query): Promise<Schema> {
  const [found] = await query<{ ours: boolean; theirs: boolean; encoding: string }>(`
    SELECT to_regclass('flux_resourceset.migrations') IS NOT NULL AS ours,
      current_setting('server_encoding') AS encoding,
      EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = 'flux_resourceset') AS theirs`)
  // A database in another encoding would work until the first character that it cannot store.
  if (found?.encoding !== 'UTF8')
    throw new StoreError(
      `the encoding of the database is ${found?.encoding}, and has to be UTF8: create one with TEMPLATE template0 ENCODING 'UTF8'`,
    )
  if (!found?.ours && found?.theirs)
    throw new StoreError('the schema flux_resourceset of the database is of another program')
  if (!found?.ours) return { version: 0, from: 0 }
  const [last] = await query<Schema>(SCHEMA)
  return last ?? { version: 0, from: 0 }
}

/** Throws for a schema that needs a newer program. A running process checks too: what it reads or writes could be wrong. */
export function refuseNewer({ version, from }: Schema): void {
  const known = MIGRATIONS.length
  if (version > known && from > known)
    throw new StoreError(
      `the schema of the database is version ${version}, which needs a program that knows ${from} or more, and this one knows ${known}: upgrade the program`,
    )
}

export async function checkSchema(pool: pg.Pool): Promise<void> {
  const schema = await schemaOf((text, values) => send(pool, text, values, QUICK_MS))
  refuseNewer(schema)
  if (schema.version < MIGRATIONS.length)
    throw new StoreError(
      `the schema of the database is version ${schema.version}, and this program needs ${MIGRATIONS.length}: run flux-resourceset migrate, or start a process in crud mode`,
      { isTransient: true },
    )
}

/** Applies the missing migrations, each once, even when several processes start together. */
export async function migrate(pool: pg.Pool): Promise<Migrated> {
  const known = MIGRATIONS.length
  const seen = await schemaOf((text, values) => send(pool, text, values, QUICK_MS))
  refuseNewer(seen)
  if (seen.version >= known) return { from: seen.version, to: seen.version }
  return transaction(pool, READ_COMMITTED, async (query) => {
    await query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK])
    const schema = await schemaOf(query)
    refuseNewer(schema)
    if (schema.version === 0) {
      const [row] = await query<{ there: boolean }>(
        "SELECT to_regnamespace('flux_resourceset') IS NOT NULL AS there",
      )
      if (!row?.there) await query('CREATE SCHEMA flux_resourceset')
      await query(`CREATE TABLE flux_resourceset.migrations
        (version integer PRIMARY KEY, works_from integer NOT NULL, applied timestamptz NOT NULL DEFAULT now())`)
    }
    for (const [i, { sql, from }] of MIGRATIONS.entries()) {
      if (i < schema.version) continue
      await query(sql)
      await query('INSERT INTO flux_resourceset.migrations (version, works_from) VALUES ($1, $2)', [
        i + 1,
        from,
      ])
    }
    return { from: schema.version, to: Math.max(schema.version, known) }
  })
}

/** Migrates a database and closes the connection. */
export async function migratePostgres(options: Omit<PostgresOptions, 'write'>): Promise<Migrated> {
  const config = clientConfig({ ...options, write: true })
  const pool = new pg.Pool({ ...config, Client: clientOf(config, options.tls), max: 1 })
  pool.on('error', () => {})
  try {
    return await withStoreErrors(() => migrate(pool))
  } finally {
    await pool.end()
  }
}

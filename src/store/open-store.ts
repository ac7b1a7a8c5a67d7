// Opens the store that the settings name.
import { openMemoryStore } from './memory.ts'
import { openPostgresStore } from './postgres/postgres.ts'
import type { PostgresOptions } from './postgres/postgres-client.ts'
import { migratePostgres } from './postgres/postgres-migrate.ts'
import { openSqliteStore, type SqliteOptions } from './sqlite/sqlite.ts'
import { migrate as migrateSqlite } from './sqlite/sqlite-database.ts'
import type { Migrated, Store } from './store.ts'

export type StoreLocation =
  | { readonly backend: 'memory' }
  | ({ readonly backend: 'sqlite' } & Pick<SqliteOptions, 'path' | 'mode'>)
  | ({ readonly backend: 'postgres' } & Omit<PostgresOptions, 'write' | 'warn'>)

export function openStore(location: StoreLocation, options: Pick<PostgresOptions, 'write' | 'warn'>): Store {
  if (location.backend === 'memory') return openMemoryStore()
  if (location.backend === 'sqlite') return openSqliteStore({ ...location, write: options.write })
  return openPostgresStore({ ...location, ...options })
}

/** Migrates a store's schema, and creates the store where there is none. */
export async function migrateStore(
  location: Exclude<StoreLocation, { backend: 'memory' }>,
): Promise<Migrated> {
  return location.backend === 'sqlite' ? migrateSqlite(location.path) : migratePostgres(location)
}

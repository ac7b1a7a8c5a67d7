// Opening a SQLite file and bringing it to the current schema.
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { getOrSet } from '../../base/get-or-set.ts'
import { NO_HASH, RevisionHash } from '../hash-chain.ts'
import { type LoggedChange, type Migrated, type RevisionMeta, StoreError } from '../store.ts'

export interface WriterOptions {
  readonly path: string
  /** The largest size of the file in pages; a write beyond it fails like on a full disk. */
  readonly maxPages?: number
}

export function openDatabase(path: string, options: { readOnly: boolean; timeout: number }): DatabaseSync {
  return namingDatabase(path, () => new DatabaseSync(path, options))
}

/** How long a writer waits for the lock of another one. */
export const LOCK_TIMEOUT_MS = 10_000

const FOLDER = new URL('../migrations/', import.meta.url)

/** In order; the schema's version is how many of them a file has had. */
const MIGRATIONS = readdirSync(FOLDER)
  .filter((name) => /^sqlite-\d+\.sql$/.test(name))
  .sort()
  .map((name) => readFileSync(new URL(name, FOLDER), 'utf8'))

/** Whether the file holds the current schema; throws when it is not ours, damaged, or newer than this program. */
export function isCurrent(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats?.isDirectory()) throw new StoreError(`${path}: is a folder, which cannot be opened as a database`)
  if (!stats?.size) return false
  const db = openDatabase(path, { readOnly: true, timeout: 5_000 })
  try {
    return namingDatabase(path, () => {
      // One transaction for all reads, as another process may be migrating the file right now.
      db.exec('BEGIN')
      return checkVersion(path, db) === MIGRATIONS.length
    })
  } finally {
    db.close()
  }
}

/** Creates the file and its folder where needed, and applies missing migrations once, even when several processes start. */
export function migrate(path: string): Migrated {
  return namingDatabase(path, () => {
    mkdirSync(dirname(path), { recursive: true })
    makeFile(path)
    const db = openDatabase(path, { readOnly: false, timeout: LOCK_TIMEOUT_MS })
    try {
      db.exec('PRAGMA page_size = 8192')
      useWriteAheadLog(db)
      db.exec('PRAGMA synchronous = FULL; BEGIN IMMEDIATE')
      const from = checkVersion(path, db)
      for (const sql of MIGRATIONS.slice(from)) db.exec(sql)
      sealOldRevisions(db)
      db.exec(`PRAGMA user_version = ${MIGRATIONS.length}; COMMIT`)
      return { from, to: MIGRATIONS.length }
    } finally {
      db.close()
    }
  })
}

/** Mode 0600, as the file holds digests of tokens; SQLite gives the files beside it the same mode. */
function makeFile(path: string): void {
  if (existsSync(path)) return
  try {
    closeSync(openSync(path, 'a', 0o600))
  } catch {
    // SQLite will fail to open the file too, and report why.
  }
}

/** Computes the hashes of revisions from before the hash chain. */
function sealOldRevisions(db: DatabaseSync): void {
  const changes = db.prepare('SELECT * FROM changes WHERE revision = ? ORDER BY position')
  const seal = db.prepare('UPDATE revisions SET hash = ? WHERE revision = ?')
  let previous = NO_HASH
  for (const row of db.prepare('SELECT * FROM revisions ORDER BY revision').all()) {
    const meta = row as unknown as RevisionMeta & { revision: number; hash: string }
    if (meta.hash === '') {
      const hash = new RevisionHash(previous, meta.revision, meta)
      for (const change of changes.iterate(meta.revision)) {
        const { before_deleted, after_deleted, ...rest } = change
        hash.add({
          ...rest,
          before_deleted: before_deleted === 1,
          after_deleted: after_deleted === 1,
        } as LoggedChange)
      }
      previous = hash.digest()
      seal.run(previous, meta.revision)
    } else {
      previous = meta.hash
    }
  }
}

/** Retries: while another process runs the same statement, SQLite fails it at once, whatever the busy timeout. */
function useWriteAheadLog(db: DatabaseSync): void {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (const deadline = Date.now() + LOCK_TIMEOUT_MS; ; Atomics.wait(pause, 0, 0, 5)) {
    try {
      db.exec('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      if (resultCode(error) !== BUSY || Date.now() > deadline) throw error
    }
  }
}

function checkVersion(path: string, db: DatabaseSync): number {
  const version = Number(db.prepare('PRAGMA user_version').get()?.user_version)
  const known = MIGRATIONS.length
  if (version > known) {
    const message = `its schema is version ${version}, newer than the ${known} that this program knows: upgrade the program`
    throw new StoreError(`${path}: ${message}`)
  }
  const tables = Number(db.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.n)
  if (version === 0 && tables > 0) throw new StoreError(`${path}: is a SQLite file of another program`)
  return version
}

/** Turns a SQLite error into a StoreError that names the file. */
function namingDatabase<T>(path: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw new StoreError(`${path}: ${sqliteProblem(error)}`, { cause: error })
  }
}

const BUSY = 5
const PROBLEMS: Record<number, string> = {
  [BUSY]: 'the database is locked by another process',
  8: 'the database is read-only here: give this process write permission, or start one that has it first',
  10: 'the disk failed (input/output error)',
  11: 'the database is damaged: restore it from a backup',
  13: 'the disk is full: make room and try again',
  14: 'the file cannot be opened: check its path and permissions',
  26: 'the file is not a SQLite database, or is damaged',
}

/** SQLite's primary result code. */
function resultCode(error: unknown): number {
  return ((error as { errcode?: number }).errcode ?? 0) & 0xff
}

/** The message for a SQLite error. */
export function sqliteProblem(error: unknown): string {
  return PROBLEMS[resultCode(error)] ?? (error as Error).message
}

const statements = new WeakMap<DatabaseSync, Map<string, StatementSync>>()

/** A statement of a connection, prepared once. */
export function prepared(db: DatabaseSync, sql: string): StatementSync {
  const known = getOrSet(statements, db, () => new Map<string, StatementSync>())
  return getOrSet(known, sql, () => db.prepare(sql))
}

/** Reads; a failure becomes a StoreError. */
export async function guard<T>(read: () => T): Promise<T> {
  try {
    return read()
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw new StoreError(sqliteProblem(error), { cause: error })
  }
}

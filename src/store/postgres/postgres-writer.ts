// Writing to PostgreSQL: commits, each in one statement, and pruning.
import { setTimeout as sleep } from 'node:timers/promises'
import { backoff } from '../../runtime/backoff.ts'
import { expiredBefore } from '../idempotency.ts'
import {
  type Anchor,
  type CommitResult,
  type DocumentVersion,
  type Head,
  type NewRevision,
  notEmptyError,
  StoreError,
} from '../store.ts'
import type { Database } from './postgres-database.ts'
import { isCollision } from './postgres-errors.ts'
import { readHash, readHead } from './postgres-head.ts'
import { type Query, READ_COMMITTED, S } from './postgres-query.ts'
import { CHUNK, COMMIT_MS, type Sealed, seal } from './postgres-seal.ts'

export const CHANNEL = 'flux_resourceset'
const CHUNK_SIZE = 8 * 1024 * 1024
/** Rows to delete before other writers get the lock. */
const PRUNED_AT_ONCE = 5000
/** How often to retry a commit whose outcome is unknown, and for how long: its caller waits. */
const MAX_TRIES = 6
const MAX_TRYING_MS = 10_000
const FIRST_RETRY_MS = 150
const MAX_RETRY_MS = 1_000
/** Less than half of COMMIT_MS, as a commit may wait twice: no statement may wait on after its client has timed out. */
const LOCK_MS = 7_000
/** Any number other than MIGRATION_LOCK, and the same in all versions of this program. */
const WRITE_LOCK = 7_205_148_302
/** How long to wait for the write lock, and how long it may be held before others go on. */
const WRITE_LOCK_MS = 5_000

/**
 * When a connection breaks, it is unknown whether the database has committed. The revision's hash is unique and shows it,
 * so the same commit can be retried until the outcome is known.
 */
export async function commit(
  db: Database,
  base: number,
  revisions: readonly NewRevision[],
): Promise<CommitResult> {
  const sealed = await seal(db, base, revisions)
  if (!sealed) return refused(db)
  const { hash } = sealed
  const end = performance.now() + MAX_TRYING_MS
  const delays = backoff({ first: FIRST_RETRY_MS, max: MAX_RETRY_MS })
  for (let tries = 1; ; tries++) {
    try {
      if (await write(db, base, sealed, revisions)) return { ok: true, hash }
      // A retry may be refused because the first attempt has committed.
      const isThere = tries > 1 && (await readHash(db, base + revisions.length)) === hash
      return isThere ? { ok: true, hash } : await refused(db)
    } catch (error) {
      const isWorthIt = error instanceof StoreError && (error.isTransient || isCollision(error.cause))
      if (!isWorthIt || tries === MAX_TRIES || performance.now() > end) throw error
    }
    await sleep(delays.next())
  }
}

/** The lock ends with its transaction, so that no process keeps it by accident; a failure of that transaction is ignored. */
export async function withWriteLock<T>(db: Database, run: () => Promise<T>): Promise<T> {
  let running: Promise<T> | undefined
  try {
    await db.transact(READ_COMMITTED, async (query) => {
      await query(
        `SELECT set_config('lock_timeout', '${WRITE_LOCK_MS}', true),
          set_config('idle_in_transaction_session_timeout', '${WRITE_LOCK_MS}', true), pg_advisory_xact_lock($1)`,
        [WRITE_LOCK],
      )
      running = run()
      await running
    })
  } catch {
    // A failure of `run` is thrown below.
  }
  return running ?? run()
}

async function refused(db: Database): Promise<CommitResult> {
  const { revision: head } = await readHead(db, true)
  return { ok: false, head }
}

/** Rows of the log, and what they leave of the documents. */
const CHANGED = `
  changed AS (
    INSERT INTO ${S}.changes
      (revision, position, type, id, before, before_deleted, before_revision, after, after_deleted)
    SELECT revision, position, type, id, before, before_deleted, before_revision, after, after_deleted FROM made
  ), put AS (
    INSERT INTO ${S}.documents (type, id, revision, deleted, document)
    SELECT type, id, revision, after_deleted, after FROM made WHERE final AND after IS NOT NULL
    ON CONFLICT (type, id) DO UPDATE
    SET revision = excluded.revision, deleted = excluded.deleted, document = excluded.document
  ), removed AS (
    DELETE FROM ${S}.documents AS d USING made
    WHERE made.final AND made.after IS NULL AND d.type = made.type AND d.id = made.id
  )`
const MADE = `json_to_recordset($1) AS c(revision bigint, position integer, type text, id text, before text,
  before_deleted boolean, before_revision bigint, after text, after_deleted boolean, final boolean)`

/**
 * All of a commit in one statement, and so in one transaction and one round trip: where the head is not at base any more,
 * `moved` is empty, and so is everything that follows from it. A server that would not wait for its disk has to.
 * An idempotency record that was saved since the statement began is not seen by it: its answer would become NULL,
 * which the table refuses, and with it all of the commit (`isCollision`).
 */
const COMMIT = `
  WITH moved AS (
    UPDATE ${S}.head SET revision = $3 WHERE revision = $2
      AND NOT EXISTS (
        SELECT 1 FROM json_to_recordset($5) AS kept(key text, expired text)
        JOIN ${S}.answers USING (key) WHERE answers.time >= kept.expired)
      AND set_config('lock_timeout', '${LOCK_MS}', true) IS NOT NULL
    RETURNING revision
  ), made AS MATERIALIZED (
    SELECT c.* FROM moved, ${MADE}
  ), logged AS (
    INSERT INTO ${S}.revisions
      (revision, time, actor, message, request_id, client_address, operation, types, hash, change_count)
    SELECT r.* FROM moved, json_to_recordset($4) AS r(revision bigint, time text, actor text, message text,
      request_id text, client_address text, operation text, types text[], hash text, change_count integer)
  ), kept AS (
    INSERT INTO ${S}.answers AS known (key, fingerprint, time, answer)
    SELECT a.key, a.fingerprint, a.time, a.answer FROM moved, json_to_recordset($5)
    AS a(key text, fingerprint text, time text, answer text)
    ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint, time = excluded.time,
      answer = CASE WHEN known.time < (
        SELECT expired FROM json_to_recordset($5) AS f(key text, expired text) WHERE f.key = known.key
      ) THEN excluded.answer END
  ), ${CHANGED}
  SELECT pg_notify('${CHANNEL}', moved.revision::text),
    CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END
  FROM moved`
const MORE = `WITH made AS MATERIALIZED (SELECT c.* FROM ${MADE}), ${CHANGED} SELECT 1`

/** Returns whether the changes were written: false when the store was not at base. */
async function write(
  db: Database,
  base: number,
  { changes, revisions: rows }: Sealed,
  revisions: readonly NewRevision[],
): Promise<boolean> {
  const records = revisions.flatMap(({ idempotency }) =>
    idempotency ? [{ ...idempotency, expired: expiredBefore(idempotency.time) }] : [],
  )
  const values = (some: Sealed['changes']): unknown[] => [
    JSON.stringify(some),
    base,
    base + revisions.length,
    JSON.stringify(rows),
    JSON.stringify(records),
  ]
  const [first = [], ...more] = chunksOf(changes)
  if (more.length === 0) return (await db.query(COMMIT, values(first), COMMIT_MS)).length > 0
  return db.transact(READ_COMMITTED, async (query) => {
    // A process that is cut off here must not hold up the others.
    await query("SELECT set_config('idle_in_transaction_session_timeout', '10000', true)")
    const moved = await query(COMMIT, values(first))
    for (const chunk of moved.length > 0 ? more : []) await query(MORE, [JSON.stringify(chunk)])
    return moved.length > 0
  })
}

/** Splits changes by number (CHUNK) and by size (CHUNK_SIZE). */
function chunksOf(changes: Sealed['changes']): Sealed['changes'][] {
  const chunks: Sealed['changes'][number][][] = []
  let size = 0
  for (const change of changes) {
    const more = (change.before?.length ?? 0) + (change.after?.length ?? 0)
    const chunk = chunks.at(-1)
    if (chunk && chunk.length < CHUNK && size + more <= CHUNK_SIZE) chunk.push(change)
    else chunks.push([change])
    size = chunk && chunk === chunks.at(-1) ? size + more : more
  }
  return chunks
}

async function insertAnchor(query: Query, { revision, time, hash, state }: Anchor): Promise<void> {
  await query(`INSERT INTO ${S}.anchor (revision, time, hash, state) VALUES ($1, $2, $3, $4)`, [
    revision,
    time,
    hash,
    state,
  ])
}

/** Once the anchor is written, no reader reads what is before it; the rest is tidying up. */
export async function prune(db: Database, anchor: Anchor): Promise<void> {
  const known = await db.transact(READ_COMMITTED, async (query) => {
    await query(`LOCK TABLE ${S}.anchor IN EXCLUSIVE MODE`)
    const [current] = await query<Anchor>(`SELECT revision FROM ${S}.anchor`)
    if (current && current.revision > anchor.revision) return true
    await query(`DELETE FROM ${S}.anchor`)
    await insertAnchor(query, anchor)
    return false
  })
  if (known) return
  for (const table of ['changes', 'revisions']) {
    const some = `SELECT ctid FROM ${S}.${table} WHERE revision <= $1 LIMIT ${PRUNED_AT_ONCE}`
    const sql = `DELETE FROM ${S}.${table} WHERE ctid = ANY(ARRAY(${some})) RETURNING 1`
    while ((await db.query(sql, [anchor.revision])).length > 0);
  }
}

export async function initFromSnapshot(
  db: Database,
  anchor: Anchor,
  documents: readonly DocumentVersion[],
): Promise<void> {
  await db.transact(READ_COMMITTED, async (query) => {
    const [head] = await query<Head>(`SELECT revision FROM ${S}.head FOR UPDATE`)
    if (head?.revision !== 0) throw notEmptyError()
    await insertAnchor(query, anchor)
    for (let at = 0; at < documents.length; at += CHUNK) {
      await query(
        `INSERT INTO ${S}.documents (type, id, revision, deleted, document)
        SELECT type, id, revision, deleted, json FROM json_to_recordset($1)
        AS d(type text, id text, revision bigint, deleted boolean, json text)`,
        [JSON.stringify(documents.slice(at, at + CHUNK))],
      )
    }
    await query(`UPDATE ${S}.head SET revision = $1`, [anchor.revision])
  })
}

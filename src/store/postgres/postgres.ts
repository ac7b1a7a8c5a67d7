// The store for several machines: one PostgreSQL database, for any number of processes.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Applied } from '../../domain/documents/state.ts'
import { TimeSlice } from '../../runtime/time-slice.ts'
import { checkHash, NO_HASH, RevisionHash } from '../hash-chain.ts'
import { parseApplied } from '../log-rows.ts'
import {
  type Anchor,
  type CommitResult,
  FILLING,
  forgottenBefore,
  type Head,
  type Lease,
  type LoggedChange,
  type NewRevision,
  notEmptyError,
  type Remembered,
  type Store,
  StoreError,
  type StoreHead,
  type TokenUse,
} from '../store.ts'
import {
  Database,
  DEFAULT_POOL_SIZE,
  isCollision,
  LOOK_MS,
  type PostgresOptions,
  type Query,
  READ_COMMITTED,
  refuseNewer,
  SCHEMA,
  type Schema,
} from './postgres-database.ts'
import {
  changedAfter,
  changesSince,
  IN_LOG,
  readAnchor,
  readDocuments,
  readHistory,
  readLog,
  readRevisionAt,
} from './postgres-log.ts'

const S = 'flux_resourceset'
const CHANNEL = 'flux_resourceset'
/** Documents to load at once. */
const PAGE = 1000
/** Changes to write at once. */
const CHUNK = 400
const CHUNK_SIZE = 8 * 1024 * 1024
/** Rows to delete before other writers get their turn. */
const PRUNED_AT_ONCE = 5000
/** How often to try a commit whose end is not known, and for how long: whoever asked for it waits. */
const MAX_TRIES = 6
const MAX_TRYING_MS = 10_000
const RETRY_MS = 150
/** A larger commit of another process may be in the way, and is not waited for much longer. */
const COMMIT_MS = 15_000
/** Less than half of it, as one may wait in line and then for the row: nothing is to be left waiting in the database. */
const LOCK_MS = 7_000
const MIN_POOL_FOR_TURNS = 4
/** Any number but that of migrations. */
const TURN_LOCK = 7_205_148_302
/** How long to wait for a turn, and how long one may take before others go on. */
const TURN_MS = 5_000
/** Pauses before listening again. */
const LISTEN_AGAIN_MS = 500
const MAX_LISTEN_AGAIN_MS = 15_000
/** Old answers are cleared away every so many. */
const FORGET_EVERY = 100

/** Nothing is asked of the database before the first use: it may be away. */
export function openPostgresStore(options: PostgresOptions): Store {
  const db = new Database(options)
  const { poolSize = DEFAULT_POOL_SIZE } = options
  let remembered = 0

  const writing = (): Database => {
    if (!options.write) throw new StoreError('the database is opened for reading only')
    return db
  }

  async function forget(time: string): Promise<void> {
    if (remembered++ % FORGET_EVERY === 0)
      await db.query(`DELETE FROM ${S}.answers WHERE time < $1`, [forgottenBefore(time)]).catch(() => {})
  }

  return {
    load: (take) => loadDocuments(db, take),
    documents: () => readDocuments(db),
    head: () => readHead(db, options.write),
    hashOf: (revision) => readHash(db, revision),
    async commit(base, ...revisions) {
      const result = await commit(writing(), base, revisions)
      const kept = revisions.find(({ remember }) => remember)?.remember
      if (kept) void forget(kept.time)
      return result
    },
    // It keeps a connection while others are needed.
    withWriteLock: (run) => (poolSize < MIN_POOL_FOR_TURNS ? run() : withWriteLock(db, run)),
    async initFromSnapshot(anchor, documents) {
      await writing().transact(READ_COMMITTED, async (query) => {
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
    },
    changesSince: (revision) => changesSince(db, revision),
    history: (query) => readHistory(db, query),
    log: (since, until) => readLog(db, since, until),
    changedAfter: (revision, only) => changedAfter(db, revision, only),
    revisionAt: (time) => readRevisionAt(db, time),
    anchor: () => readAnchor(db),
    prune: (anchor) => prune(writing(), anchor),
    async recall(key, now) {
      const [known] = await db.query<Remembered>(
        `SELECT key, fingerprint, time, answer FROM ${S}.answers WHERE key = $1 AND time >= $2`,
        [key, forgottenBefore(now)],
        LOOK_MS,
      )
      return known
    },
    async remember(answer) {
      await writing().query(KEEP, [JSON.stringify([answer]), forgottenBefore(answer.time)])
      await forget(answer.time)
    },
    async *answers(now) {
      for (let at = ''; ; ) {
        const rows = await db.query<Remembered>(
          `SELECT key, fingerprint, time, answer FROM ${S}.answers
          WHERE time >= $1 AND key > $2 ORDER BY key LIMIT ${PAGE}`,
          [forgottenBefore(now), at],
        )
        yield* rows
        if (rows.length < PAGE) return
        at = rows.at(-1)?.key as string
      }
    },
    usesOf: (ids) =>
      db.query<TokenUse>(`SELECT id, time, address FROM ${S}.token_uses WHERE id = ANY($1)`, [ids]),
    recordUses: (uses) => recordUses(db, options.write, uses),
    async acquire(name, holder, ms) {
      const [lease] = await writing().query<Lease>(ACQUIRE, [name, holder, ms])
      return lease as Lease
    },
    async release({ name, term }) {
      await writing().query(
        `UPDATE ${S}.leases SET expires = clock_timestamp() WHERE name = $1 AND term = $2`,
        [name, term],
      )
    },
    watch: (moved) => listen(db, moved),
    close: () => db.end(),
  }
}

/** One statement sees one moment. A name may still lead to the old primary after a failover, where nothing can be written. */
function readHead(db: Database, write: boolean): Promise<StoreHead> {
  const sql = `SELECT revision, ${HASH} AS hash, pg_is_in_recovery() AS standby, ${FILLS} AS filling, schema.version,
      schema."from" FROM ${S}.head CROSS JOIN (${SCHEMA}) AS schema`
  return db.look(sql, (row?: Schema & HeadRow) => {
    if (!row) throw new StoreError('the database is damaged: it has no head; restore it from a backup')
    refuseNewer(row)
    if (write && row.standby)
      throw new StoreError('the database takes no writes: it is a standby', { isTransient: true })
    const { revision, hash, filling } = row
    return { revision, hash: hash ?? NO_HASH, ...(filling && { importInProgress: filling }) }
  })
}

interface HeadRow {
  readonly revision: number
  readonly hash: string | null
  readonly standby: boolean
  readonly filling: boolean
}

const FILLS = `(revision > 0 AND EXISTS (
  SELECT 1 FROM ${S}.leases WHERE name = '${FILLING}' AND expires > clock_timestamp()))`

const HASH = `coalesce(
  (SELECT r.hash FROM ${S}.revisions AS r WHERE r.revision = head.revision),
  (SELECT a.hash FROM ${S}.anchor AS a WHERE a.revision = head.revision))`

async function readHash(db: Database, revision: number): Promise<string | undefined> {
  if (revision === 0) return NO_HASH
  return (await readLast(db, revision))?.hash
}

/** What the next revision follows. */
async function readLast(db: Database, revision: number): Promise<{ hash: string; time: string } | undefined> {
  const [row] = await db.query<{ hash: string; time: string }>(
    `SELECT hash, time FROM ${S}.revisions WHERE revision = $1 AND ${IN_LOG}
    UNION ALL SELECT hash, time FROM ${S}.anchor WHERE revision = $1`,
    [revision],
    LOOK_MS,
  )
  return row
}

/** Of one moment, a page at a time; the next one is on its way while one is taken in. */
async function loadDocuments(
  db: Database,
  take: (revision: number, document: Applied) => void,
): Promise<Head> {
  return db.transact('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', async (query) => {
    const timeSlice = new TimeSlice()
    const read = (type: string, id: string): Promise<DocumentRow[]> =>
      query<DocumentRow>(
        `SELECT type, id, revision, deleted, document FROM ${S}.documents
        WHERE (type, id) > ($1, $2) ORDER BY type, id LIMIT ${PAGE}`,
        [type, id],
      )
    for (let reading = read('', ''); ; ) {
      const rows = await reading
      const last = rows.length === PAGE ? rows.at(-1) : undefined
      if (last) reading = read(last.type, last.id)
      // Whatever stops the loop, nobody is to be told of a page that nobody waits for.
      reading.catch(() => {})
      for (const { type, id, revision, deleted, document } of rows) {
        take(revision, { type, id, after: parseApplied(type, id, document, deleted) })
        if (timeSlice.expired) await timeSlice.yield()
      }
      if (!last) break
    }
    const [head] = await query<Head>(`SELECT revision, ${HASH} AS hash FROM ${S}.head`)
    return { revision: head?.revision ?? 0, hash: head?.hash ?? NO_HASH }
  })
}

interface DocumentRow {
  readonly type: string
  readonly id: string
  readonly revision: number
  readonly deleted: boolean
  readonly document: string
}

/**
 * A connection that breaks leaves open whether the database has committed. The revision's hash tells: no other one has
 * it, so the same can be tried again until it is known.
 */
async function commit(db: Database, base: number, revisions: readonly NewRevision[]): Promise<CommitResult> {
  const sealed = await seal(db, base, revisions)
  if (!sealed) return refusal(db, revisions)
  const { hash } = sealed
  const end = performance.now() + MAX_TRYING_MS
  for (let tries = 1; ; tries++) {
    try {
      if (await write(db, base, sealed, revisions)) return { ok: true, hash }
      // What stands in the way of a second try may be what the first one has left.
      const isThere = tries > 1 && (await readHash(db, base + revisions.length)) === hash
      return isThere ? { ok: true, hash } : await refusal(db, revisions)
    } catch (error) {
      const isWorthIt = error instanceof StoreError && (error.isTransient || isCollision(error.cause))
      if (!isWorthIt || tries === MAX_TRIES || performance.now() > end) throw error
    }
    await sleep(RETRY_MS * tries * (0.5 + Math.random()))
  }
}

/** The lock goes with its transaction, so that nobody keeps it by accident; whatever becomes of that, the run counts. */
async function withWriteLock<T>(db: Database, run: () => Promise<T>): Promise<T> {
  let running: Promise<T> | undefined
  try {
    await db.transact(READ_COMMITTED, async (query) => {
      await query(
        `SELECT set_config('lock_timeout', '${TURN_MS}', true),
          set_config('idle_in_transaction_session_timeout', '${TURN_MS}', true), pg_advisory_xact_lock($1)`,
        [TURN_LOCK],
      )
      running = run()
      await running
    })
  } catch {
    // Told by the run itself.
  }
  return running ?? run()
}

async function refusal(db: Database, revisions: readonly NewRevision[]): Promise<CommitResult> {
  const { revision: head } = await readHead(db, true)
  const leases = revisions.flatMap(({ lease }) => lease ?? [])
  const held = leases.length > 0 ? await db.query<Lease>(`SELECT name, term FROM ${S}.leases`) : []
  const isFenced = leases.some(
    ({ name, term }) => !held.some((row) => row.name === name && row.term === term),
  )
  return { ok: false, head, ...(isFenced && { isFenced }) }
}

interface Sealed {
  readonly hash: string
  readonly revisions: readonly object[]
  readonly changes: readonly (LoggedChange & {
    readonly revision: number
    readonly position: number
    readonly final: boolean
  })[]
}

/**
 * Works out what is to be written. What it reads is of no one moment, which does no harm: if anything of it has changed,
 * the store is not at base any more, and nothing is written.
 */
async function seal(
  db: Database,
  base: number,
  revisions: readonly NewRevision[],
): Promise<Sealed | undefined> {
  const [last, documents] = await Promise.all([
    base === 0 ? { hash: NO_HASH, time: '' } : readLast(db, base),
    readBefore(db, revisions),
  ])
  if (!last) return undefined
  const timeSlice = new TimeSlice()
  const rows: object[] = []
  const changes: (Sealed['changes'][number] & { final: boolean })[] = []
  const latest = new Map<string, { final: boolean }>()
  let { hash: previous, time } = last
  for (const [i, { changes: made, hash: wanted, remember: _, lease: __, ...given }] of revisions.entries()) {
    const revision = base + 1 + i
    if (given.time > time) time = given.time
    const meta = { ...given, time }
    const hash = new RevisionHash(previous, revision, meta)
    for (const [position, { type, id, after }] of made.entries()) {
      const key = `${type}/${id}`
      const before = documents.get(key)
      const change = {
        revision,
        position,
        type,
        id,
        before: before?.document ?? null,
        before_deleted: before?.deleted ?? false,
        before_revision: before?.revision ?? 0,
        after: after?.json ?? null,
        after_deleted: after?.deleted ?? false,
        final: true,
      }
      hash.add(change)
      const earlier = latest.get(key)
      if (earlier) earlier.final = false
      latest.set(key, change)
      changes.push(change)
      if (after) documents.set(key, { type, id, revision, deleted: after.deleted, document: after.json })
      else documents.delete(key)
      if (timeSlice.expired) await timeSlice.yield()
    }
    previous = checkHash(revision, hash.digest(), wanted)
    const types = [...new Set(made.map(({ type }) => type))]
    rows.push({ ...meta, revision, types, hash: previous, change_count: made.length })
  }
  return { hash: previous, revisions: rows, changes }
}

async function readBefore(
  db: Database,
  revisions: readonly NewRevision[],
): Promise<Map<string, DocumentRow>> {
  const keys = new Map(
    revisions.flatMap(({ changes }) => changes.map(({ type, id }) => [`${type}/${id}`, { type, id }])),
  )
  const wanted = [...keys.values()]
  const found = new Map<string, DocumentRow>()
  for (let at = 0; at < wanted.length; at += CHUNK) {
    const rows = await db.query<DocumentRow>(
      `SELECT type, id, revision, deleted, document FROM ${S}.documents
      JOIN json_to_recordset($1) AS k(type text, id text) USING (type, id)`,
      [JSON.stringify(wanted.slice(at, at + CHUNK))],
      COMMIT_MS,
    )
    for (const row of rows) found.set(`${row.type}/${row.id}`, row)
  }
  return found
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

const KEEP = `
  INSERT INTO ${S}.answers AS known (key, fingerprint, time, answer)
  SELECT key, fingerprint, time, answer FROM json_to_recordset($1)
  AS a(key text, fingerprint text, time text, answer text)
  ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint, time = excluded.time, answer = excluded.answer
  WHERE known.time < $2`

/**
 * All of a commit in one statement, and so in one transaction and one round trip: where the head is not at base any more,
 * `moved` is empty, and so is everything that follows from it. A server that would not wait for its disk has to.
 * What was remembered under the key since the statement began to look, it does not see: its answer would become NULL,
 * which the table refuses, and with it all of the commit (`isCollision`). Leases cannot change hands while it runs.
 */
const COMMIT = `
  WITH held AS MATERIALIZED (
    SELECT leases.name FROM json_to_recordset($6) AS h(name text, term bigint)
    JOIN ${S}.leases ON leases.name = h.name AND leases.term = h.term FOR SHARE OF leases
  ), moved AS (
    UPDATE ${S}.head SET revision = $3 WHERE revision = $2
      AND NOT EXISTS (
        SELECT 1 FROM json_to_recordset($5) AS kept(key text, forgotten text)
        JOIN ${S}.answers USING (key) WHERE answers.time >= kept.forgotten)
      AND (SELECT count(*) FROM held) = json_array_length($6)
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
        SELECT forgotten FROM json_to_recordset($5) AS f(key text, forgotten text) WHERE f.key = known.key
      ) THEN excluded.answer END
  ), ${CHANGED}
  SELECT pg_notify('${CHANNEL}', moved.revision::text),
    CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END
  FROM moved`
const MORE = `WITH made AS MATERIALIZED (SELECT c.* FROM ${MADE}), ${CHANGED} SELECT 1`

/** Answers whether the store was at base, and nothing else was in the way. */
async function write(
  db: Database,
  base: number,
  { changes, revisions: rows }: Sealed,
  revisions: readonly NewRevision[],
): Promise<boolean> {
  const answers = revisions.flatMap(({ remember }) =>
    remember ? [{ ...remember, forgotten: forgottenBefore(remember.time) }] : [],
  )
  const leases = revisions.flatMap(({ lease }) => lease ?? [])
  const values = (some: Sealed['changes']): unknown[] => [
    JSON.stringify(some),
    base,
    base + revisions.length,
    JSON.stringify(rows),
    JSON.stringify(answers),
    JSON.stringify(leases),
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

/** Not too many at once, and not too much. */
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

/** Once the anchor stands, nobody reads what is before it; the rest is tidying up. */
async function prune(db: Database, anchor: Anchor): Promise<void> {
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

/** A process that only reads leaves a note of the tokens it saw all the same, where it may. */
async function recordUses(db: Database, write: boolean, uses: readonly TokenUse[]): Promise<void> {
  const newest = new Map<string, TokenUse>()
  for (const use of uses) if ((newest.get(use.id)?.time ?? '') <= use.time) newest.set(use.id, use)
  // In one order everywhere, so that two processes do not wait for each other.
  const sorted = [...newest.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  try {
    for (let at = 0; at < sorted.length; at += CHUNK) {
      await db.query(
        `INSERT INTO ${S}.token_uses AS known (id, time, address)
        SELECT id, time, address FROM json_to_recordset($1) AS u(id text, time text, address text)
        ON CONFLICT (id) DO UPDATE SET time = excluded.time, address = excluded.address
        WHERE excluded.time >= known.time`,
        [JSON.stringify(sorted.slice(at, at + CHUNK))],
      )
    }
  } catch (error) {
    const { code } = ((error as StoreError).cause ?? {}) as { code?: string }
    if (write || (code !== '42501' && code !== '25006')) throw error
  }
}

/** Whether the lease is over is asked once: a holder that changes without the term would not be fenced off. */
const ACQUIRE = `
  INSERT INTO ${S}.leases AS known (name, holder, term, expires)
  VALUES ($1, $2, 1, clock_timestamp() + $3 * interval '1 millisecond')
  ON CONFLICT (name) DO UPDATE SET (term, holder, expires) = (
    SELECT CASE WHEN is_over THEN known.term + 1 ELSE known.term END,
      CASE WHEN is_over THEN excluded.holder ELSE known.holder END,
      CASE WHEN is_over OR known.holder = excluded.holder THEN excluded.expires ELSE known.expires END
    FROM (SELECT known.expires <= clock_timestamp() AS is_over) AS asked)
  RETURNING name, holder, term`

/** Only a hint: whoever looks at the head once in a while misses nothing where there is no such connection. */
function listen(db: Database, moved: () => void): () => void {
  const stopped = new AbortController()
  const { signal } = stopped

  async function once(): Promise<void> {
    const client = db.connect()
    const ended = new Promise<void>((resolve) => {
      client.once('end', resolve)
      // It may break more than once, and nobody else listens.
      client.on('error', () => resolve())
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    try {
      await client.connect()
      client.on('notification', moved)
      await client.query(`LISTEN ${CHANNEL}`)
      // What came before cannot have been heard.
      moved()
      await ended
    } finally {
      // Waiting for a connection that is gone can take for ever.
      // It is missing from the types.
      ;(client as unknown as { unref(): void }).unref()
      void client.end().catch(() => {})
    }
  }

  async function again(): Promise<void> {
    for (let pause = LISTEN_AGAIN_MS; !signal.aborted; pause = Math.min(pause * 2, MAX_LISTEN_AGAIN_MS)) {
      const begun = performance.now()
      await once().catch(() => {})
      if (performance.now() - begun > MAX_LISTEN_AGAIN_MS) pause = LISTEN_AGAIN_MS
      await sleep(pause * (0.5 + Math.random()), undefined, { signal, ref: false }).catch(() => {})
    }
  }
  void again()
  return () => stopped.abort()
}

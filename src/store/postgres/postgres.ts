// The store for several machines: one PostgreSQL database, for any number of processes.
import type { Applied } from '../../domain/documents/state.ts'
import { NO_HASH } from '../hash-chain.ts'
import { parseApplied } from '../log-rows.ts'
import { type DocumentVersion, type Head, type LogReader, type Store, StoreError } from '../store.ts'
import type { PostgresOptions } from './postgres-client.ts'
import { Database, DEFAULT_POOL_SIZE } from './postgres-database.ts'
import { HASH, readHash, readHead } from './postgres-head.ts'
import { readHistory } from './postgres-history.ts'
import { deleteExpired, findRecord, listRecords, saveRecord } from './postgres-idempotency.ts'
import { acquireLease, releaseLease, setImportInProgress } from './postgres-leases.ts'
import { listen } from './postgres-listen.ts'
import {
  changedAfter,
  changesSince,
  readAnchor,
  readDocuments,
  readLog,
  readRevisionAt,
} from './postgres-log.ts'
import { readNotes, readNotesSince, recordNotes, removeNotes } from './postgres-notes.ts'
import { S } from './postgres-query.ts'
import { commit, initFromSnapshot, prune, withWriteLock } from './postgres-writer.ts'

/** Documents to load at once. */
const PAGE = 1000
/** The write lock keeps a connection while others are needed. */
const MIN_POOL_FOR_LOCK = 4
/** Expired idempotency records are deleted every so many. */
const DELETE_EVERY = 100

/** Does not connect before the first use: the database may be unavailable. */
export function openPostgresStore(options: PostgresOptions): Store {
  const db = new Database(options)
  const { poolSize = DEFAULT_POOL_SIZE } = options
  let saved = 0

  const writing = (): Database => {
    if (!options.write) throw new StoreError('the database is opened for reading only')
    return db
  }

  async function clearRecords(now: string): Promise<void> {
    if (saved++ % DELETE_EVERY === 0) await deleteExpired(db, now).catch(() => {})
  }

  return {
    load: (take) => loadDocuments(db, take),
    head: () => readHead(db, options.write),
    hashOf: (revision) => readHash(db, revision),
    changesSince: (revision) => changesSince(db, revision),
    watch: (moved) => listen(db, moved),
    async commit(base, ...revisions) {
      const result = await commit(writing(), base, revisions)
      const record = revisions.find(({ idempotency }) => idempotency)?.idempotency
      if (record) void clearRecords(record.time)
      return result
    },
    withWriteLock: (run) => (poolSize < MIN_POOL_FOR_LOCK ? run() : withWriteLock(db, run)),
    ...readerOf(db),
    initFromSnapshot: async (anchor, documents) => initFromSnapshot(writing(), anchor, documents),
    prune: async (anchor) => prune(writing(), anchor),
    setImportInProgress: async (inProgress) => setImportInProgress(writing(), inProgress),
    notes: {
      record: (kind, notes) => recordNotes({ db, write: options.write, kind }, notes),
      read: (kind, keys) => readNotes(db, kind, keys),
      readSince: (kind, since) => readNotesSince(db, kind, since),
      remove: (kind, keys) => removeNotes({ db, write: options.write, kind }, keys),
    },
    idempotency: {
      find: (key, now) => findRecord(db, key, now),
      async save(record) {
        await saveRecord(writing(), record)
        await clearRecords(record.time)
      },
      list: (now) => listRecords(db, now),
    },
    leases: {
      acquire: async (...given) => acquireLease(writing(), ...given),
      release: async (lease) => releaseLease(writing(), lease),
    },
    close: () => db.end(),
  }
}

function readerOf(db: Database): LogReader {
  return {
    documents: () => readDocuments(db),
    log: (since, until) => readLog(db, since, until),
    history: (query) => readHistory(db, query),
    changedAfter: (revision, only) => changedAfter(db, revision, only),
    revisionAt: (time) => readRevisionAt(db, time),
    anchor: () => readAnchor(db),
  }
}

/** Reads all documents of one consistent moment, a page at a time; the next page is read while one is processed. */
async function loadDocuments(
  db: Database,
  take: (revision: number, document: Applied) => void,
): Promise<Head> {
  return db.transact('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', async (query) => {
    const read = (type: string, id: string): Promise<DocumentVersion[]> =>
      query<DocumentVersion>(
        `SELECT type, id, revision, deleted, document AS json FROM ${S}.documents
        WHERE (type, id) > ($1, $2) ORDER BY type, id LIMIT ${PAGE}`,
        [type, id],
      )
    for (let reading = read('', ''); ; ) {
      const rows = await reading
      const last = rows.length === PAGE ? rows.at(-1) : undefined
      if (last) reading = read(last.type, last.id)
      // If the loop ends early, the failure of a page that is not awaited must not be an unhandled rejection.
      reading.catch(() => {})
      // Without time slices: nothing is served before all is read.
      for (const { type, id, revision, deleted, json } of rows)
        take(revision, { type, id, after: parseApplied(type, id, json, deleted) })
      if (!last) break
    }
    const [head] = await query<Head>(`SELECT revision, ${HASH} AS hash FROM ${S}.head`)
    return { revision: head?.revision ?? 0, hash: head?.hash ?? NO_HASH }
  })
}

// The default store: one SQLite file, for any number of processes on one host.
import { accessSync, constants, existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { Applied } from '../../domain/documents/state.ts'
import { NO_HASH } from '../hash-chain.ts'
import { parseApplied } from '../log-rows.ts'
import { batchesOf, keyBatchesOf } from '../note-batches.ts'
import type { Notes } from '../notes.ts'
import { type Head, type LogReader, type Store, StoreError, type StoreHead } from '../store.ts'
import { guard, isCurrent, migrate, openDatabase, prepared, type WriterOptions } from './sqlite-database.ts'
import { addSearch, readHistory } from './sqlite-history.ts'
import { findRecord, listRecords } from './sqlite-idempotency.ts'
import { isImportInProgress } from './sqlite-leases.ts'
import {
  changedAfter,
  changesSince,
  readAnchor,
  readDocuments,
  readLog,
  readRevisionAt,
} from './sqlite-log.ts'
import { readNotes, readNotesSince } from './sqlite-notes.ts'
import { SqliteWriter } from './sqlite-writer-client.ts'

const WATCH_INTERVAL_MS = 50

type SqliteMode = 'rwc' | 'rw' | 'ro'

export interface SqliteOptions extends WriterOptions {
  /** `rwc`, the default, creates the file when there is none; `ro` does not even migrate an older one. */
  readonly mode?: SqliteMode
  /** When false, the file is only read, after it was created and migrated where `mode` allows it. */
  readonly write: boolean
}

export function openSqliteStore({ write, mode = 'rwc', ...options }: SqliteOptions): Store {
  prepareFile(options.path, mode)
  const db = openDatabase(options.path, { readOnly: true, timeout: 1_000 })
  addSearch(db)
  const writer = write ? new SqliteWriter(options) : undefined
  const writing = (): SqliteWriter => {
    if (!writer) throw new StoreError('the database is opened for reading only')
    return writer
  }
  const notes = openNotes(db, options, mode, writer)
  return {
    load: (take) => guard(() => loadDocuments(db, take)),
    head: () => guard(() => inOneView(db, () => readStoreHead(db))),
    hashOf: (revision) => guard(() => readHash(db, revision)),
    changesSince: (revision) => changesSince(db, revision),
    watch: (moved) => watchFile(db, moved),
    commit: async (base, ...revisions) => writing().commit(base, revisions),
    // SQLite's own lock already makes writers wait for each other.
    withWriteLock: (run) => run(),
    ...readerOf(db),
    initFromSnapshot: async (...given) => writing().call('initFromSnapshot', ...given),
    prune: async (anchor) => writing().call('prune', anchor),
    setImportInProgress: async (inProgress) => writing().call('setImportInProgress', inProgress),
    notes,
    idempotency: {
      find: (key, now) => findRecord(db, key, now),
      save: async (record) => writing().call('saveRecord', record),
      list: (now) => listRecords(db, now),
    },
    leases: {
      acquire: async (...given) => writing().call('acquireLease', ...given),
      release: async (lease) => writing().call('releaseLease', lease),
    },
    async close() {
      await writer?.close()
      await notes.close()
      db.close()
    },
  }
}

/** Creates or migrates the file, where `mode` allows it. */
function prepareFile(path: string, mode: SqliteMode): void {
  if (mode !== 'rwc' && !existsSync(path)) throw new StoreError(`${path}: there is no such file`)
  if (isCurrent(path)) return
  if (mode === 'ro')
    throw new StoreError(`${path}: has to be brought up to date first: start a process that may write to it`)
  migrate(path)
}

function readerOf(db: DatabaseSync): LogReader {
  return {
    documents: () => readDocuments(db),
    log: (since, until) => readLog(db, since, until),
    history: (query) => readHistory(db, query),
    changedAfter: (revision, only) => changedAfter(db, revision, only),
    revisionAt: (time) => readRevisionAt(db, time),
    anchor: () => readAnchor(db),
  }
}

/**
 * A read-only process records notes too, with a thread of its own, unless the mode is `ro` or it may not write to the
 * file. The next batch is posted when one is written, so that commits pass in between.
 */
function openNotes(
  db: DatabaseSync,
  options: WriterOptions,
  mode: SqliteMode,
  writer: SqliteWriter | undefined,
): Notes & { close(): Promise<void> } {
  let own: SqliteWriter | undefined
  const writing = (): SqliteWriter | undefined => {
    if (writer || mode === 'ro' || !isWritable(options.path)) return writer
    // A thread that has failed to start earlier may start now.
    if (!own || own.hasEnded) own = new SqliteWriter(options)
    return own
  }
  let seen: { readonly by: SqliteWriter | undefined; readonly version: number } | undefined
  return {
    async record(kind, notes) {
      const thread = writing()
      for await (const batch of batchesOf(notes)) await thread?.call('recordNotes', kind, batch)
    },
    read: (kind, keys) => readNotes(db, kind, keys),
    readSince: (kind, since) => readNotesSince(db, kind, since),
    async remove(kind, keys) {
      const thread = writing()
      for await (const batch of keyBatchesOf(keys)) await thread?.call('removeNotes', kind, batch)
    },
    async othersWrote() {
      const before = seen
      const by = writing()
      seen = { by, version: (await by?.call('dataVersion')) ?? Number.NaN }
      return seen.by !== before?.by || seen.version !== before?.version
    },
    close: async () => own?.close(),
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

function loadDocuments(db: DatabaseSync, take: (revision: number, document: Applied) => void): Head {
  return inOneView(db, () => {
    const rows = db.prepare('SELECT type, id, revision, deleted, document FROM documents')
    rows.setReturnArrays(true)
    for (const row of rows.iterate() as Iterable<unknown>) {
      const [type, id, revision, deleted, json] = row as [string, string, number, number, string]
      take(revision, { type, id, after: parseApplied(type, id, json, deleted === 1) })
    }
    return readHead(db)
  })
}

function readHead(db: DatabaseSync): Head {
  const revision = Number(prepared(db, 'SELECT revision FROM head').get()?.revision)
  return { revision, hash: readHash(db, revision) ?? '' }
}

function readStoreHead(db: DatabaseSync): StoreHead {
  const head = readHead(db)
  return { ...head, ...(head.revision > 0 && isImportInProgress(db) && { importInProgress: true }) }
}

function readHash(db: DatabaseSync, revision: number): string | undefined {
  if (revision === 0) return NO_HASH
  const read = prepared(
    db,
    'SELECT hash FROM revisions WHERE revision = ? UNION ALL SELECT hash FROM anchor WHERE revision = ?',
  )
  return read.get(revision, revision)?.hash as string | undefined
}

/** Runs reads in one transaction, so that they see one consistent moment. */
function inOneView<T>(db: DatabaseSync, read: () => T): T {
  db.exec('BEGIN')
  try {
    return read()
  } finally {
    db.exec('COMMIT')
  }
}

function watchFile(db: DatabaseSync, moved: () => void): () => void {
  const version = prepared(db, 'PRAGMA data_version')
  /** Changes with every commit of another connection; undefined when the file cannot be read, which a read will report. */
  const readVersion = (): unknown => {
    try {
      return version.get()?.data_version
    } catch {
      return undefined
    }
  }
  let seen: unknown
  const timer = setInterval(() => {
    const now = readVersion()
    if (now === undefined || now !== seen) moved()
    seen = now
  }, WATCH_INTERVAL_MS)
  return () => clearInterval(timer)
}

// The default store: one SQLite file, for any number of processes on one host.
import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import type { Applied } from '../../domain/documents/state.ts'
import { TimeSlice } from '../../runtime/time-slice.ts'
import { NO_HASH } from '../hash-chain.ts'
import { parseApplied } from '../log-rows.ts'
import {
  type Anchor,
  type CommitResult,
  FILLING,
  forgottenBefore,
  type Head,
  type Lease,
  type NewRevision,
  type Remembered,
  type Store,
  type StoredDocument,
  StoreError,
  type StoreHead,
  type TokenUse,
} from '../store.ts'
import { guard, isCurrent, migrate, openDatabase, prepared, type WriterOptions } from './sqlite-database.ts'
import { addSearch, readHistory } from './sqlite-history.ts'
import {
  changedAfter,
  changesSince,
  readAnchor,
  readAnswers,
  readDocuments,
  readLog,
  readRevisionAt,
} from './sqlite-log.ts'
import type { WriterReply, WriterRequest } from './sqlite-writer.ts'

const WATCH_INTERVAL_MS = 50
/** Changes to hand over to the writing thread at once. */
const SLICE = 20
/** Commits get their turn in between. */
const USES_AT_ONCE = 500

type SqliteMode = 'rwc' | 'rw' | 'ro'

export interface SqliteOptions extends WriterOptions {
  /** `rwc`, the default, makes the file when there is none; `ro` does not even bring an older one up to date. */
  readonly mode?: SqliteMode
  /** Without it the file is only read, once it exists and is current. */
  readonly write: boolean
}

export function openSqliteStore({ write, mode = 'rwc', ...options }: SqliteOptions): Store {
  const { path } = options
  if (mode !== 'rwc' && !existsSync(path)) throw new StoreError(`${path}: there is no such file`)
  const current = isCurrent(path)
  if (!current && mode === 'ro') {
    throw new StoreError(`${path}: has to be brought up to date first: start a process that may write to it`)
  }
  if (!current) migrate(path)
  const db = openDatabase(path, { readOnly: true, timeout: 1_000 })
  const writer = write ? startWriter(options) : undefined
  // A process that only reads leaves a note of the tokens it saw all the same, where it may.
  let notes: Writer | undefined
  const version = db.prepare('PRAGMA data_version')
  const readHead = db.prepare('SELECT revision FROM head')
  const readFilling = db.prepare('SELECT 1 FROM leases WHERE name = ? AND expires > ?')
  const readHash = db.prepare(
    'SELECT hash FROM revisions WHERE revision = ? UNION ALL SELECT hash FROM anchor WHERE revision = ?',
  )
  const readAnswer = db.prepare(
    'SELECT key, fingerprint, time, answer FROM answers WHERE key = ? AND time >= ?',
  )
  addSearch(db)

  const writing = (): Writer => {
    if (!writer) throw new StoreError('the database is opened for reading only')
    return writer
  }

  /** Changes with every commit of another connection; none when the file cannot be read, which reading on will tell. */
  const dataVersion = (): unknown => {
    try {
      return version.get()?.data_version
    } catch {
      return undefined
    }
  }
  const hashOf = (revision: number): string | undefined =>
    revision === 0 ? NO_HASH : (readHash.get(revision, revision)?.hash as string | undefined)
  const head = (): Head => {
    const revision = Number(readHead.get()?.revision)
    return { revision, hash: hashOf(revision) ?? '' }
  }
  const storeHead = (): StoreHead => {
    const at = head()
    const importInProgress = at.revision > 0 && readFilling.get(FILLING, Date.now()) !== undefined
    return { ...at, ...(importInProgress && { importInProgress }) }
  }

  return {
    load: (take) => guard(() => loadDocuments(db, head, take)),
    documents: () => readDocuments(db),
    head: () => guard(() => inOneView(db, storeHead)),
    hashOf: (revision) => guard(() => hashOf(revision)),
    commit: async (base, ...revisions) => writing().commit(base, revisions),
    // Whoever waits for the file waits for its turn.
    withWriteLock: (run) => run(),
    initFromSnapshot: async (anchor, documents) => writing().initFromSnapshot(anchor, documents),
    changesSince: (revision) => changesSince(db, revision),
    history: (query) => readHistory(db, query),
    log: (since, until) => readLog(db, since, until),
    changedAfter: (revision, only) => changedAfter(db, revision, only),
    revisionAt: (time) => readRevisionAt(db, time),
    anchor: () => readAnchor(db),
    prune: async (anchor) => writing().prune(anchor),
    recall: (key, now) => guard(() => readAnswer.get(key, forgottenBefore(now)) as Remembered | undefined),
    remember: async (remembered) => writing().remember(remembered),
    answers: (now) => readAnswers(db, now),
    usesOf: (ids) =>
      guard(() => {
        const rows = prepared(
          db,
          'SELECT id, time, address FROM token_uses WHERE id IN (SELECT value FROM json_each(?))',
        ).all(JSON.stringify(ids))
        return rows as unknown as TokenUse[]
      }),
    async recordUses(uses) {
      if (mode === 'ro') return
      // A thread that could not start once may start now.
      if (!notes || notes.hasEnded()) notes = writer ?? startWriter(options)
      for (let at = 0; at < uses.length; at += USES_AT_ONCE)
        await notes.recordUses(uses.slice(at, at + USES_AT_ONCE))
    },
    acquire: async (name, holder, ms) => writing().acquire(name, holder, ms),
    release: async (lease) => writing().release(lease),
    watch(moved) {
      let seen: unknown
      const timer = setInterval(() => {
        const now = dataVersion()
        if (now === undefined || now !== seen) moved()
        seen = now
      }, WATCH_INTERVAL_MS)
      return () => clearInterval(timer)
    },
    async close() {
      await writer?.close()
      if (notes !== writer) await notes?.close()
      db.close()
    },
  }
}

function loadDocuments(
  db: DatabaseSync,
  head: () => Head,
  take: (revision: number, document: Applied) => void,
): Head {
  return inOneView(db, () => {
    const rows = db.prepare('SELECT type, id, revision, deleted, document FROM documents')
    rows.setReturnArrays(true)
    for (const row of rows.iterate() as Iterable<unknown>) {
      const [type, id, revision, deleted, json] = row as [string, string, number, number, string]
      take(revision, { type, id, after: parseApplied(type, id, json, deleted === 1) })
    }
    return head()
  })
}

/** What is read together is of one moment. */
function inOneView<T>(db: DatabaseSync, read: () => T): T {
  db.exec('BEGIN')
  try {
    return read()
  } finally {
    db.exec('COMMIT')
  }
}

interface Writer {
  hasEnded(): boolean
  commit(base: number, revisions: readonly NewRevision[]): Promise<CommitResult>
  initFromSnapshot(anchor: Anchor, documents: readonly StoredDocument[]): Promise<void>
  acquire(name: string, holder: string, ms: number): Promise<Lease>
  release(lease: Lease): Promise<void>
  prune(anchor: Anchor): Promise<void>
  remember(remembered: Remembered): Promise<void>
  recordUses(uses: readonly TokenUse[]): Promise<void>
  close(): Promise<void>
}

/** Speaks to the writing thread, which answers in the order it is asked. */
function startWriter(options: WriterOptions): Writer {
  const worker = new Worker(new URL(import.meta.url.replace(/sqlite(\.\w+)$/, 'sqlite-writer$1')), {
    workerData: options,
  })
  let failure: StoreError | undefined
  let sending: Promise<unknown> = Promise.resolve()
  const waiting: { resolve: (result: never) => void; reject: (error: Error) => void }[] = []
  const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
  worker.on('message', (reply: WriterReply) => {
    const request = waiting.shift()
    if ('result' in reply) request?.resolve(reply.result as never)
    else request?.reject(new StoreError(reply.error))
  })
  worker.on('error', (cause) => {
    failure = new StoreError('the writing thread of the database failed', { cause })
  })
  worker.on('exit', () => {
    failure ??= new StoreError('the database is closed')
    for (const request of waiting.splice(0)) request.reject(failure)
  })

  function ask<T>(request: WriterRequest): Promise<T> {
    return new Promise((resolve, reject) => {
      if (failure) return reject(failure)
      waiting.push({ resolve, reject })
      worker.postMessage(request)
    })
  }

  /** Many changes go over in parts, so that copying them holds nobody up; one revision at a time. */
  function commit(base: number, revisions: readonly NewRevision[]): Promise<CommitResult> {
    const answer = sending.then(async () => {
      const timeSlice = new TimeSlice()
      const rest: NewRevision[] = []
      for (const [at, { changes, ...revision }] of revisions.entries()) {
        let sent = 0
        for (; changes.length - sent > SLICE; sent += SLICE) {
          worker.postMessage({ at, changes: changes.slice(sent, sent + SLICE) })
          if (timeSlice.expired) await timeSlice.yield()
        }
        rest.push({ ...revision, changes: changes.slice(sent) })
      }
      return { result: ask<CommitResult>({ base, revisions: rest }) }
    })
    sending = answer.catch(() => {})
    return answer.then(({ result }) => result)
  }

  return {
    hasEnded: () => failure !== undefined,
    commit,
    initFromSnapshot: (from, documents) => ask({ from, documents }),
    acquire: (name, holder, ms) => ask({ acquire: { name, holder, ms } }),
    release: (release) => ask({ release }),
    prune: (anchor) => ask({ anchor }),
    remember: (remember) => ask({ remember }),
    recordUses: (uses) => ask({ uses }),
    async close() {
      await sending
      worker.postMessage('close')
      await exited
    },
  }
}

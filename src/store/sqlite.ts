// The default store: one SQLite file, for any number of processes on one host.
import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as breathe } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { Document } from '../domain/resource-type.ts'
import type { Applied } from '../domain/state.ts'
import { isCurrent, migrate, openDatabase, sqliteProblem, type WriterOptions } from './sqlite-database.ts'
import type { CommitReply, CommitRequest } from './sqlite-writer.ts'
import {
  type CommitResult,
  type HistoryQuery,
  type RecordedChange,
  type RecordedRevision,
  type Store,
  StoreError,
} from './store.ts'

const WATCH_INTERVAL_MS = 50
/** Documents to parse before other work gets its turn. */
const SLICE = 200

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
  const version = db.prepare('PRAGMA data_version')
  const readHead = db.prepare('SELECT revision FROM head')

  /** Changes with every commit of another connection; none when the file cannot be read, which reading on will tell. */
  const dataVersion = (): unknown => {
    try {
      return version.get()?.data_version
    } catch {
      return undefined
    }
  }
  const head = (): number => Number(readHead.get()?.revision)

  return {
    load: (take) => guard(() => loadDocuments(db, head, take)),
    head: () => guard(head),
    commit: async (base, revision) => {
      if (!writer) throw new StoreError('the database is opened for reading only')
      return writer.commit({ base, revision })
    },
    changesSince: (revision) => changesSince(db, revision),
    history: (query) => guard(() => readHistory(db, query)),
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
      db.close()
    },
  }
}

async function guard<T>(read: () => T): Promise<T> {
  try {
    return read()
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw new StoreError(sqliteProblem(error), { cause: error })
  }
}

function loadDocuments(
  db: DatabaseSync,
  head: () => number,
  take: (revision: number, document: Applied) => void,
): number {
  db.exec('BEGIN')
  try {
    const rows = db.prepare('SELECT type, id, revision, deleted, document FROM documents')
    rows.setReturnArrays(true)
    for (const row of rows.iterate() as Iterable<unknown>) {
      const [type, id, revision, deleted, json] = row as [string, string, number, number, string]
      take(revision, { type, id, after: parseApplied(type, id, json, deleted) })
    }
    return head()
  } finally {
    db.exec('COMMIT')
  }
}

function parseApplied(
  type: string,
  id: string,
  json: string,
  deleted: number,
): NonNullable<Applied['after']> {
  try {
    return { document: JSON.parse(json) as Document, deleted: deleted === 1, size: json.length }
  } catch (cause) {
    throw new StoreError(`${type} "${id}" is not readable in the database: restore it from a backup`, {
      cause,
    })
  }
}

async function* changesSince(db: DatabaseSync, since: number): ReturnType<Store['changesSince']> {
  const next = db.prepare('SELECT revision FROM revisions WHERE revision > ? ORDER BY revision LIMIT 1')
  const slice = db.prepare(
    'SELECT type, id, after, after_deleted FROM changes WHERE revision = ? AND position >= ? ORDER BY position LIMIT ?',
  )
  for (let last = since; ; ) {
    const revision = (await guard(() => next.get(last)?.revision)) as number | undefined
    if (revision === undefined) return
    const changes: Applied[] = []
    for (let done = false; !done; ) {
      const rows = (await guard(() => slice.all(revision, changes.length, SLICE))) as unknown as ChangeRow[]
      changes.push(...rows.map(toApplied))
      done = rows.length < SLICE
      if (!done) await breathe()
    }
    yield { revision, changes }
    last = revision
  }
}

interface ChangeRow {
  readonly type: string
  readonly id: string
  readonly before: string | null
  readonly before_deleted: number
  readonly after: string | null
  readonly after_deleted: number
}

function toApplied({ type, id, after, after_deleted }: ChangeRow): Applied {
  return { type, id, after: after === null ? undefined : parseApplied(type, id, after, after_deleted) }
}

function toRecorded({ type, id, before, before_deleted, after, after_deleted }: ChangeRow): RecordedChange {
  return {
    type,
    id,
    before: before === null ? null : JSON.parse(before),
    after: after === null ? null : JSON.parse(after),
    before_deleted: before_deleted === 1,
    after_deleted: after_deleted === 1,
  }
}

function readHistory(db: DatabaseSync, query: HistoryQuery): RecordedRevision[] {
  const { revision, before = Number.MAX_SAFE_INTEGER, document, limit, changeOffset = 0, changeLimit } = query
  const range = revision === undefined ? [0, before] : [revision, Math.min(revision + 1, before)]
  const columns = 'revision, time, actor, message, request_id, change_count'
  const revisions = document
    ? db
        .prepare(`SELECT ${columns} FROM revisions WHERE revision IN
        (SELECT revision FROM changes WHERE type = ? AND id = ? AND revision >= ? AND revision < ?
         ORDER BY revision DESC LIMIT ?) ORDER BY revision DESC`)
        .all(document.type, document.id, ...range, limit)
    : db
        .prepare(`SELECT ${columns} FROM revisions WHERE revision >= ? AND revision < ?
        ORDER BY revision DESC LIMIT ?`)
        .all(...range, limit)
  const only = document ? 'AND type = ? AND id = ?' : ''
  const changes = db.prepare(`SELECT type, id, before, before_deleted, after, after_deleted FROM changes
    WHERE revision = ? ${only} ORDER BY position LIMIT ? OFFSET ?`)
  const filter = document ? [document.type, document.id] : []
  return (revisions as unknown as Omit<RecordedRevision, 'changes'>[]).map((row) => ({
    ...row,
    changes: (changes.all(row.revision, ...filter, changeLimit, changeOffset) as unknown as ChangeRow[]).map(
      toRecorded,
    ),
  }))
}

interface Writer {
  commit(request: CommitRequest): Promise<CommitResult>
  close(): Promise<void>
}

/** Speaks to the writing thread, which answers in the order it is asked. */
function startWriter(options: WriterOptions): Writer {
  const worker = new Worker(new URL(import.meta.url.replace(/sqlite(\.\w+)$/, 'sqlite-writer$1')), {
    workerData: options,
  })
  let failure: StoreError | undefined
  const waiting: { resolve: (result: CommitResult) => void; reject: (error: Error) => void }[] = []
  const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
  worker.on('message', (reply: CommitReply) => {
    const commit = waiting.shift()
    if ('result' in reply) commit?.resolve(reply.result)
    else commit?.reject(new StoreError(reply.error))
  })
  worker.on('error', (cause) => {
    failure = new StoreError('the writing thread of the database failed', { cause })
  })
  worker.on('exit', () => {
    failure ??= new StoreError('the database is closed')
    for (const commit of waiting.splice(0)) commit.reject(failure)
  })
  return {
    commit(request) {
      return new Promise((resolve, reject) => {
        if (failure) return reject(failure)
        waiting.push({ resolve, reject })
        worker.postMessage(request)
      })
    },
    async close() {
      worker.postMessage('close')
      await exited
    },
  }
}

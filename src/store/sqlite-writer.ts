// The thread that writes to a SQLite file, so that waiting for the disk never holds up a poll.
import { parentPort, workerData } from 'node:worker_threads'
import { LOCK_TIMEOUT_MS, openDatabase, sqliteProblem, type WriterOptions } from './sqlite-database.ts'
import type { CommitResult, NewRevision } from './store.ts'

export interface CommitRequest {
  readonly base: number
  readonly revision: NewRevision
}
export type CommitReply = { readonly result: CommitResult } | { readonly error: string }

const { path, maxPages } = workerData as WriterOptions
const db = openDatabase(path, { readOnly: false, timeout: LOCK_TIMEOUT_MS })
db.exec('PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864')
if (maxPages !== undefined) db.exec(`PRAGMA max_page_count = ${maxPages}`)

const readHead = db.prepare('SELECT revision FROM head')
const advance = db.prepare('UPDATE head SET revision = ?')
const insertRevision = db.prepare(
  'INSERT INTO revisions (revision, time, actor, message, request_id, change_count) VALUES (?, ?, ?, ?, ?, ?)',
)
const insertChange = db.prepare(`
  INSERT INTO changes (revision, position, type, id, before, before_deleted, after, after_deleted)
  SELECT ?, ?, ?, ?, documents.document, coalesce(documents.deleted, 0), ?, ?
  FROM (SELECT 1) LEFT JOIN documents ON type = ? AND id = ?`)
const upsert = db.prepare(`
  INSERT INTO documents (type, id, revision, deleted, document) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (type, id) DO UPDATE SET revision = excluded.revision, deleted = excluded.deleted, document = excluded.document`)
const remove = db.prepare('DELETE FROM documents WHERE type = ? AND id = ?')

function commit({ base, revision: { changes, ...meta } }: CommitRequest): CommitResult {
  db.exec('BEGIN IMMEDIATE')
  try {
    const head = Number(readHead.get()?.revision)
    if (head !== base) {
      db.exec('ROLLBACK')
      return { ok: false, head }
    }
    const next = base + 1
    insertRevision.run(next, meta.time, meta.actor, meta.message, meta.request_id, changes.length)
    changes.forEach(({ type, id, after }, position) => {
      const deleted = Number(after?.deleted ?? false)
      insertChange.run(next, position, type, id, after?.json ?? null, deleted, type, id)
      if (after) upsert.run(type, id, next, deleted, after.json)
      else remove.run(type, id)
    })
    advance.run(next)
    db.exec('COMMIT')
    return { ok: true }
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

parentPort?.on('message', (request: CommitRequest | 'close') => {
  if (request === 'close') {
    // Leaves the log short for the next writer, and in place for readers that may not make it anew.
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    parentPort?.close()
    return
  }
  let reply: CommitReply
  try {
    reply = { result: commit(request) }
  } catch (error) {
    reply = { error: sqliteProblem(error) }
  }
  parentPort?.postMessage(reply)
})

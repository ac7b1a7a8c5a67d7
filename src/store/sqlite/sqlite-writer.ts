// The thread that writes to a SQLite file, so that waiting for the disk never holds up a poll.
import { parentPort, workerData } from 'node:worker_threads'
import { getOrSet } from '../../base/get-or-set.ts'
import { checkHash, NO_HASH, RevisionHash } from '../hash-chain.ts'
import type { IdempotencyRecord } from '../idempotency.ts'
import type { Lease } from '../leases.ts'
import type { Note } from '../notes.ts'
import {
  type Anchor,
  type CommitResult,
  type DocumentVersion,
  type NewChange,
  type NewRevision,
  notEmptyError,
} from '../store.ts'
import { LOCK_TIMEOUT_MS, openDatabase, sqliteProblem, type WriterOptions } from './sqlite-database.ts'
import { hasRecord, saveRecord } from './sqlite-idempotency.ts'
import { acquireLease, releaseLease, setImportInProgress } from './sqlite-leases.ts'
import { recordNotes, removeNotes } from './sqlite-notes.ts'

/** The first changes of a revision of the next commit; this message gets no reply. */
export interface FirstChanges {
  readonly at: number
  readonly changes: readonly NewChange[]
}
/** A call of the thread; replies come in the order of the calls. */
export type WriterCall = {
  [K in keyof WriterOperations]: { readonly call: K; readonly args: Parameters<WriterOperations[K]> }
}[keyof WriterOperations]
export type WriterReply = { readonly result: unknown } | { readonly error: string }

const { path, maxPages } = workerData as WriterOptions
const db = openDatabase(path, { readOnly: false, timeout: LOCK_TIMEOUT_MS })
db.exec('PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864')
if (maxPages !== undefined) db.exec(`PRAGMA max_page_count = ${maxPages}`)

const readHead = db.prepare('SELECT revision FROM head')
const advance = db.prepare('UPDATE head SET revision = ?')
const readLast = db.prepare(
  'SELECT hash, time FROM revisions WHERE revision = ? UNION ALL SELECT hash, time FROM anchor WHERE revision = ?',
)
const insertRevision = db.prepare(`INSERT INTO revisions
  (revision, time, actor, message, request_id, client_address, operation, types, hash, change_count)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', ?)`)
const seal = db.prepare('UPDATE revisions SET hash = ? WHERE revision = ?')
const readDocument = db.prepare('SELECT document, deleted, revision FROM documents WHERE type = ? AND id = ?')
const insertChange = db.prepare(`INSERT INTO changes
  (revision, position, type, id, before, before_deleted, before_revision, after, after_deleted)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
const upsert = db.prepare(`
  INSERT INTO documents (type, id, revision, deleted, document) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (type, id) DO UPDATE SET revision = excluded.revision, deleted = excluded.deleted, document = excluded.document`)
const remove = db.prepare('DELETE FROM documents WHERE type = ? AND id = ?')
const insertAnchor = db.prepare('INSERT INTO anchor (revision, time, hash, state) VALUES (?, ?, ?, ?)')

const firstChanges = new Map<number, NewChange[]>()

/** Runs inside a transaction: all of it or nothing. */
function transact<T>(run: () => T): T {
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = run()
    db.exec('COMMIT')
    return result
  } finally {
    if (db.isTransaction) db.exec('ROLLBACK')
  }
}

function commit(base: number, lastChanges: readonly NewRevision[]): CommitResult {
  const revisions = lastChanges.map(({ changes, ...revision }, i) => ({
    ...revision,
    changes: [...(firstChanges.get(i) ?? []), ...changes],
  }))
  firstChanges.clear()
  return transact(() => {
    const head = Number(readHead.get()?.revision)
    const isRepeated = revisions.some(({ idempotency }) => idempotency && hasRecord(db, idempotency))
    if (head !== base || isRepeated) return { ok: false, head }
    let hash = ''
    for (const [i, revision] of revisions.entries()) hash = write(base + i, revision)
    advance.run(base + revisions.length)
    return { ok: true, hash }
  })
}

/** Returns the revision's hash. */
function write(base: number, { changes, idempotency, hash: expected, ...given }: NewRevision): string {
  const last = readLast.get(base, base) as { hash: string; time: string } | undefined
  const meta = { ...given, time: last && given.time < last.time ? last.time : given.time }
  const next = base + 1
  const types = `,${[...new Set(changes.map(({ type }) => type))].join(',')},`
  const { time, actor, message, request_id, client_address, operation } = meta
  insertRevision.run(next, time, actor, message, request_id, client_address, operation, types, changes.length)
  const hash = new RevisionHash(last?.hash ?? NO_HASH, next, meta)
  for (const [position, change] of changes.entries()) writeChange(next, position, change, hash)
  const sealed = checkHash(next, hash.digest(), expected)
  seal.run(sealed, next)
  if (idempotency) saveRecord(db, idempotency)
  return sealed
}

function writeChange(
  revision: number,
  position: number,
  { type, id, after }: NewChange,
  hash: RevisionHash,
): void {
  const row = readDocument.get(type, id) as
    | { document: string; deleted: number; revision: number }
    | undefined
  const before = row?.document ?? null
  const beforeDeleted = row?.deleted ?? 0
  const json = after?.json ?? null
  const deleted = Number(after?.deleted ?? false)
  insertChange.run(revision, position, type, id, before, beforeDeleted, row?.revision ?? 0, json, deleted)
  hash.add({
    type,
    id,
    before,
    before_deleted: beforeDeleted === 1,
    after: json,
    after_deleted: deleted === 1,
  })
  if (after) upsert.run(type, id, revision, deleted, after.json)
  else remove.run(type, id)
}

function initFromSnapshot(
  { revision, time, hash, state }: Anchor,
  documents: readonly DocumentVersion[],
): void {
  transact(() => {
    if (Number(readHead.get()?.revision) > 0) throw notEmptyError()
    insertAnchor.run(revision, time, hash, state)
    for (const { type, id, revision, deleted, json } of documents)
      upsert.run(type, id, revision, Number(deleted), json)
    advance.run(revision)
  })
}

/** Changes to delete before other writers get the lock. */
const PRUNED_AT_ONCE = 2000

/** Once the anchor is written, no reader reads what is before it; the rest is tidying up. */
function prune({ revision, time, hash, state }: Anchor): void {
  const known = transact(() => {
    const current = Number(db.prepare('SELECT revision FROM anchor').get()?.revision ?? 0)
    if (current > revision) return true
    db.exec('DELETE FROM anchor')
    insertAnchor.run(revision, time, hash, state)
    return false
  })
  if (known) return
  const some = 'SELECT rowid FROM changes WHERE revision <= ? LIMIT ?'
  const changes = db.prepare(`DELETE FROM changes WHERE rowid IN (${some})`)
  while (Number(transact(() => changes.run(revision, PRUNED_AT_ONCE)).changes) > 0);
  const revisions = db.prepare(
    'DELETE FROM revisions WHERE revision IN (SELECT revision FROM revisions WHERE revision <= ? LIMIT ?)',
  )
  while (Number(transact(() => revisions.run(revision, PRUNED_AT_ONCE)).changes) > 0);
}

const readDataVersion = db.prepare('PRAGMA data_version')

const OPERATIONS = {
  commit,
  initFromSnapshot,
  prune,
  setImportInProgress: (inProgress: boolean) => transact(() => setImportInProgress(db, inProgress)),
  saveRecord: (record: IdempotencyRecord) => transact(() => saveRecord(db, record)),
  recordNotes: (kind: string, notes: readonly Note[]) => transact(() => recordNotes(db, kind, notes)),
  removeNotes: (kind: string, keys: readonly string[]) => transact(() => removeNotes(db, kind, keys)),
  /** Changes with every commit of others, and not with those of this thread. */
  dataVersion: () => Number(readDataVersion.get()?.data_version),
  acquireLease: (name: string, holder: string, ms: number) =>
    transact(() => acquireLease(db, name, holder, ms)),
  releaseLease: (lease: Lease) => transact(() => releaseLease(db, lease)),
}
export type WriterOperations = typeof OPERATIONS

function run({ call, args }: WriterCall): WriterReply {
  try {
    return { result: (OPERATIONS[call] as (...given: unknown[]) => unknown)(...args) }
  } catch (error) {
    return { error: sqliteProblem(error) }
  }
}

parentPort?.on('message', (message: WriterCall | FirstChanges | 'close') => {
  if (message === 'close') {
    // Leaves the write-ahead log short for the next writer, and in place for read-only processes, which cannot create it.
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    parentPort?.close()
  } else if ('changes' in message) {
    getOrSet(firstChanges, message.at, () => []).push(...message.changes)
  } else {
    parentPort?.postMessage(run(message))
  }
})

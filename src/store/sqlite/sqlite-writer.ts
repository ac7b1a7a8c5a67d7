// The thread that writes to a SQLite file, so that waiting for the disk never holds up a poll.
import { parentPort, workerData } from 'node:worker_threads'
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

/** Some changes of a revision of the next commit, in their order; this message gets no reply. */
export interface PartOfCommit {
  readonly base: number
  /** Which of the commit's revisions it is. */
  readonly at: number
  readonly revision: Omit<NewRevision, 'changes'>
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
  VALUES (?, ?, ?, ?, ?, ?, ?, '', '', 0)`)
const seal = db.prepare('UPDATE revisions SET hash = ?, types = ?, change_count = ? WHERE revision = ?')
const readDocument = db.prepare('SELECT document, deleted, revision FROM documents WHERE type = ? AND id = ?')
const insertChange = db.prepare(`INSERT INTO changes
  (revision, position, type, id, before, before_deleted, before_revision, after, after_deleted)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
const upsert = db.prepare(`
  INSERT INTO documents (type, id, revision, deleted, document) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (type, id) DO UPDATE SET revision = excluded.revision, deleted = excluded.deleted, document = excluded.document`)
const remove = db.prepare('DELETE FROM documents WHERE type = ? AND id = ?')
const insertAnchor = db.prepare('INSERT INTO anchor (revision, time, hash, state) VALUES (?, ?, ?, ?)')

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

/** The changes of a commit that leaves much to checkpoint. */
const MANY_CHANGES = 1000
/** Whether the last commit was so large that copying its pages from the write-ahead log into the file takes long. */
let leftMuch = false

/** Commits. SQLite mostly takes the checkpoint as a part of it; that of a large commit waits until it is acknowledged. */
function endTransaction(changes: number): void {
  leftMuch = changes >= MANY_CHANGES
  db.exec(leftMuch ? `PRAGMA wal_autocheckpoint = 0; COMMIT` : 'COMMIT')
}

/** Without it the write-ahead log is only longer: a failure is no one's concern, as of SQLite's own checkpoints. */
function checkpointLargeCommit(): void {
  if (!leftMuch) return
  leftMuch = false
  try {
    db.exec('PRAGMA wal_autocheckpoint = 1000; PRAGMA wal_checkpoint(PASSIVE)')
  } catch {}
}

/** A revision that is being written. */
interface OpenRevision {
  readonly at: number
  readonly number: number
  readonly given: PartOfCommit['revision']
  readonly hash: RevisionHash
  readonly types: Set<string>
  changes: number
}

/** The transaction of a commit whose parts are arriving; with an `outcome` it is over already. */
interface OpenCommit {
  revision: OpenRevision | undefined
  outcome?: { readonly result: CommitResult } | { readonly error: unknown }
}

let open: OpenCommit | undefined

/** Writes a part as it arrives, so that a large commit is written while the rest of it is still on its way. */
function takePart(part: PartOfCommit): void {
  open ??= { revision: undefined }
  if (open.outcome) return
  try {
    writePart(open, part)
  } catch (error) {
    open.outcome = { error }
  }
  if (open.outcome && db.isTransaction) db.exec('ROLLBACK')
}

function writePart(commit: OpenCommit, { base, at, revision: given, changes }: PartOfCommit): void {
  if (!commit.revision) db.exec('BEGIN IMMEDIATE')
  if (commit.revision?.at !== at) {
    const head = commit.revision ? base : Number(readHead.get()?.revision)
    if (head !== base || (given.idempotency && hasRecord(db, given.idempotency))) {
      commit.outcome = { result: { ok: false, head } }
      return
    }
    if (commit.revision) endRevision(commit.revision)
    commit.revision = beginRevision(base, at, given)
  }
  for (const change of changes) writeChange(commit.revision, change)
}

/** Ends the commit whose parts have arrived, after the given ones, which are the last. */
function commit(parts: readonly PartOfCommit[]): CommitResult {
  for (const part of parts) takePart(part)
  const { revision, outcome } = open ?? {}
  open = undefined
  try {
    if (outcome && 'error' in outcome) throw outcome.error
    if (outcome) return outcome.result
    if (!revision) throw new Error('a commit without revisions')
    const hash = endRevision(revision)
    advance.run(revision.number)
    endTransaction(revision.changes)
    return { ok: true, hash }
  } finally {
    if (db.isTransaction) db.exec('ROLLBACK')
  }
}

/** Forgets the parts that have arrived: the rest of them will not come. */
function abandon(): void {
  open = undefined
  if (db.isTransaction) db.exec('ROLLBACK')
}

function beginRevision(base: number, at: number, given: OpenRevision['given']): OpenRevision {
  const before = base + at
  const last = readLast.get(before, before) as { hash: string; time: string } | undefined
  const meta = { ...given, time: last && given.time < last.time ? last.time : given.time }
  const number = before + 1
  const { time, actor, message, request_id, client_address, operation } = meta
  insertRevision.run(number, time, actor, message, request_id, client_address, operation)
  const hash = new RevisionHash(last?.hash ?? NO_HASH, number, meta)
  return { at, number, given, hash, types: new Set(), changes: 0 }
}

/** Returns the revision's hash. */
function endRevision({ number, given, hash, types, changes }: OpenRevision): string {
  const sealed = checkHash(number, hash.digest(), given.hash)
  seal.run(sealed, `,${[...types].join(',')},`, changes, number)
  if (given.idempotency) saveRecord(db, given.idempotency)
  return sealed
}

function writeChange(revision: OpenRevision, { type, id, after }: NewChange): void {
  const { number, hash, types } = revision
  const row = readDocument.get(type, id) as
    | { document: string; deleted: number; revision: number }
    | undefined
  const before = row?.document ?? null
  const beforeDeleted = row?.deleted ?? 0
  const json = after?.json ?? null
  const deleted = Number(after?.deleted ?? false)
  const position = revision.changes++
  types.add(type)
  insertChange.run(number, position, type, id, before, beforeDeleted, row?.revision ?? 0, json, deleted)
  hash.add({
    type,
    id,
    before,
    before_deleted: beforeDeleted === 1,
    after: json,
    after_deleted: deleted === 1,
  })
  if (after) upsert.run(type, id, number, deleted, after.json)
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
  abandon,
  /** Replies when the parts before it are written. */
  keepUp: () => {},
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

parentPort?.on('message', (message: WriterCall | PartOfCommit | 'close') => {
  if (message === 'close') {
    // Leaves the write-ahead log short for the next writer, and in place for read-only processes, which cannot create it.
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    parentPort?.close()
  } else if ('changes' in message) {
    takePart(message)
  } else {
    parentPort?.postMessage(run(message))
    checkpointLargeCommit()
  }
})

// The thread that writes to a SQLite file, so that waiting for the disk never holds up a poll.
import { parentPort, workerData } from 'node:worker_threads'
import { getOrSet } from '../../base/get-or-set.ts'
import { checkHash, NO_HASH, RevisionHash } from '../hash-chain.ts'
import {
  type Anchor,
  type CommitResult,
  forgottenBefore,
  type Lease,
  type NewChange,
  type NewRevision,
  notEmptyError,
  type Remembered,
  type StoredDocument,
  type TokenUse,
} from '../store.ts'
import { LOCK_TIMEOUT_MS, openDatabase, sqliteProblem, type WriterOptions } from './sqlite-database.ts'

export type WriterRequest =
  | { readonly base: number; readonly revisions: readonly NewRevision[] }
  | { readonly from: Anchor; readonly documents: readonly StoredDocument[] }
  | { readonly acquire: { readonly name: string; readonly holder: string; readonly ms: number } }
  | { readonly release: Lease }
  | { readonly anchor: Anchor }
  | { readonly remember: Remembered }
  | { readonly uses: readonly TokenUse[] }
/** The first changes of a revision of the commit that comes next; not answered. */
interface FirstChanges {
  readonly at: number
  readonly changes: readonly NewChange[]
}
export type WriterReply = { readonly result: CommitResult | Lease | undefined } | { readonly error: string }

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
const recall = db.prepare('SELECT 1 FROM answers WHERE key = ? AND time >= ?')
const forget = db.prepare('DELETE FROM answers WHERE time < ?')
const keep = db.prepare('INSERT OR IGNORE INTO answers (key, fingerprint, time, answer) VALUES (?, ?, ?, ?)')

const recordUse = db.prepare(`
  INSERT INTO token_uses (id, time, address) VALUES (?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET time = excluded.time, address = excluded.address WHERE excluded.time >= time`)

const readLease = db.prepare('SELECT name, holder, term, expires FROM leases WHERE name = ?')
const writeLease = db.prepare(`
  INSERT INTO leases (name, holder, term, expires) VALUES (?, ?, ?, ?)
  ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, term = excluded.term, expires = excluded.expires`)
const endLease = db.prepare('UPDATE leases SET expires = 0 WHERE name = ? AND term = ?')

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

function commit(base: number, revisions: readonly NewRevision[]): CommitResult {
  const head = Number(readHead.get()?.revision)
  const isFenced = revisions.some(({ lease }) => lease && readLease.get(lease.name)?.term !== lease.term)
  if (head !== base || isFenced || revisions.some(({ remember }) => remember && isKnown(remember))) {
    return { ok: false, head, ...(isFenced && { isFenced }) }
  }
  let hash = ''
  for (const [i, revision] of revisions.entries()) hash = write(base + i, revision)
  advance.run(base + revisions.length)
  return { ok: true, hash }
}

/** Answers its hash. */
function write(base: number, { changes, remember: remembered, hash: wanted, ...given }: NewRevision): string {
  const last = readLast.get(base, base) as { hash: string; time: string } | undefined
  const meta = { ...given, time: last && given.time < last.time ? last.time : given.time }
  const next = base + 1
  const types = `,${[...new Set(changes.map(({ type }) => type))].join(',')},`
  const { time, actor, message, request_id, client_address, operation } = meta
  insertRevision.run(next, time, actor, message, request_id, client_address, operation, types, changes.length)
  const hash = new RevisionHash(last?.hash ?? NO_HASH, next, meta)
  changes.forEach(({ type, id, after }, position) => {
    const row = readDocument.get(type, id) as
      | { document: string; deleted: number; revision: number }
      | undefined
    const before = row?.document ?? null
    const beforeDeleted = row?.deleted ?? 0
    const json = after?.json ?? null
    const deleted = Number(after?.deleted ?? false)
    insertChange.run(next, position, type, id, before, beforeDeleted, row?.revision ?? 0, json, deleted)
    hash.add({
      type,
      id,
      before,
      before_deleted: beforeDeleted === 1,
      after: json,
      after_deleted: deleted === 1,
    })
    if (after) upsert.run(type, id, next, deleted, after.json)
    else remove.run(type, id)
  })
  const sealed = checkHash(next, hash.digest(), wanted)
  seal.run(sealed, next)
  if (remembered) remember(remembered)
  return sealed
}

function initFromSnapshot(
  { revision, time, hash, state }: Anchor,
  documents: readonly StoredDocument[],
): void {
  if (Number(readHead.get()?.revision) > 0) throw notEmptyError()
  insertAnchor.run(revision, time, hash, state)
  for (const { type, id, revision, deleted, json } of documents)
    upsert.run(type, id, revision, Number(deleted), json)
  advance.run(revision)
}

function acquire(name: string, holder: string, ms: number): Lease {
  const known = readLease.get(name) as (Lease & { expires: number }) | undefined
  const now = Date.now()
  const isFree = !known || known.expires <= now
  if (!isFree && known.holder !== holder) return { name, holder: known.holder, term: known.term }
  const term = isFree ? (known?.term ?? 0) + 1 : known.term
  writeLease.run(name, holder, term, now + ms)
  return { name, holder, term }
}

function isKnown({ key, time }: Remembered): boolean {
  return recall.get(key, forgottenBefore(time)) !== undefined
}

function remember({ key, fingerprint, time, answer }: Remembered): void {
  forget.run(forgottenBefore(time))
  keep.run(key, fingerprint, time, answer)
}

/** Changes to delete before other writers get their turn. */
const PRUNED_AT_ONCE = 2000

/** Once the anchor stands, nobody reads what is before it; the rest is tidying up. */
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

function answer(request: WriterRequest): CommitResult | Lease | undefined {
  if ('acquire' in request) {
    const { name, holder, ms } = request.acquire
    return transact(() => acquire(name, holder, ms))
  }
  if ('base' in request) {
    const revisions = request.revisions.map(({ changes, ...revision }, i) => ({
      ...revision,
      changes: [...(firstChanges.get(i) ?? []), ...changes],
    }))
    firstChanges.clear()
    return transact(() => commit(request.base, revisions))
  }
  if ('anchor' in request) prune(request.anchor)
  else if ('from' in request) transact(() => initFromSnapshot(request.from, request.documents))
  else if ('release' in request) endLease.run(request.release.name, request.release.term)
  else if ('remember' in request) transact(() => remember(request.remember))
  else
    transact(() => {
      for (const { id, time, address } of request.uses) recordUse.run(id, time, address)
    })
  return undefined
}

parentPort?.on('message', (request: WriterRequest | FirstChanges | 'close') => {
  if (request === 'close') {
    // Leaves the log short for the next writer, and in place for readers that may not make it anew.
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    parentPort?.close()
    return
  }
  if ('changes' in request) {
    getOrSet(firstChanges, request.at, () => []).push(...request.changes)
    return
  }
  let reply: WriterReply
  try {
    reply = { result: answer(request) }
  } catch (error) {
    reply = { error: sqliteProblem(error) }
  }
  parentPort?.postMessage(reply)
})

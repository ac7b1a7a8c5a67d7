// What the contract suites of stores share: documents and revisions to commit, and ways to read all of a store.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Applied } from '../domain/documents/state.ts'
import { noteOfUse, TOKEN_USES, type TokenUse, useOfNote } from './notes.ts'
import type { Anchor, LoggedChange, NewChange, NewRevision, PastDocument, Store } from './store.ts'

/** Opens an empty store; what it needs is cleaned up after the test. */
export type OpenStore = (context: TestContext) => Store | Promise<Store>

/** A document of a size and content that only matter to the test. */
export function put(id: string, fields: object = {}, deleted = false): NewChange {
  return { type: 'things', id, after: { json: JSON.stringify({ id, ...fields }), deleted } }
}

export function remove(id: string): NewChange {
  return { type: 'things', id, after: undefined }
}

/** The same of another type. */
export function other(change: NewChange): NewChange {
  return { ...change, type: 'others' }
}

export const META = {
  time: '2026-01-31T12:00:00.000Z',
  actor: 'writer',
  message: null,
  request_id: 'r',
  client_address: null,
  operation: 'put things',
}

export function revisionOf(...changes: NewChange[]): NewRevision {
  return { ...META, changes }
}

/** So many minutes after noon. */
export function minute(n: number): string {
  return new Date(Date.parse(META.time) + n * 60_000).toISOString()
}

/** Everything that a store hands over, by type and id. */
export async function loadAll(store: Store): Promise<{ revision: number; documents: object }> {
  const documents: Record<string, { revision: number; after: Applied['after'] }> = {}
  const { revision } = await store.load((made, { type, id, after }) => {
    assert.ok(!(`${type}/${id}` in documents), `${type}/${id} is handed over once`)
    documents[`${type}/${id}`] = { revision: made, after }
  })
  return { revision, documents }
}

export function stored<T extends { id: string }>(fields: T, deleted = false) {
  return { document: fields, deleted, size: JSON.stringify(fields).length }
}

export async function committed(store: Store, ...revisions: NewRevision[]): Promise<Store> {
  let base = (await store.head()).revision
  for (const revision of revisions) assert.equal((await store.commit(base++, revision)).ok, true)
  return store
}

export async function revisionsSince(store: Store, revision: number) {
  const found: { revision: number; changes: readonly Applied[] }[] = []
  for await (const { hash, ...next } of store.changesSince(revision)) {
    assert.equal(hash, await store.hashOf(next.revision))
    found.push(next)
  }
  return found
}

/** The whole log after a revision, its parts put together; checks that only the last part of each says so. */
export async function logOf(store: Store, since: number, until?: number) {
  const found: { revision: number; meta: object; hash: string; changes: LoggedChange[] }[] = []
  let open = false
  for await (const { revision, meta, hash, changes, last } of store.log(since, until)) {
    if (!open) found.push({ revision, meta, hash, changes: [] })
    const entry = found.at(-1)
    assert.deepEqual(
      { revision, meta, hash },
      { revision: entry?.revision, meta: entry?.meta, hash: entry?.hash },
      'the parts of a revision come one after the other',
    )
    entry?.changes.push(...changes.map((change) => ({ ...change })))
    open = !last
  }
  assert.ok(!open, 'the last part of a revision says so')
  return found
}

export async function changedAfter(store: Store, ...asked: Parameters<Store['changedAfter']>) {
  const found: Record<string, PastDocument['was']> = {}
  for await (const { type, id, was } of store.changedAfter(...asked)) {
    assert.ok(!(`${type}/${id}` in found), `${type}/${id} comes once`)
    found[`${type}/${id}`] = was
  }
  return found
}

export async function listed<T extends object>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push({ ...item })
  return found
}

/** All documents as they are stored, by type and id. */
export async function documentsOf(store: Store) {
  const found: Record<string, { revision: number; deleted: boolean; json: string }> = {}
  for await (const { type, id, revision, deleted, json } of store.documents()) {
    assert.ok(!(`${type}/${id}` in found), `${type}/${id} comes once`)
    found[`${type}/${id}`] = { revision, deleted, json }
  }
  return found
}

/** Prunes the log up to a revision; the digest of the state is no concern of a store. */
export async function pruneTo(store: Store, revision: number): Promise<Anchor> {
  const [entry] = await store.history({ ...ALL, revision })
  assert.ok(entry)
  const anchor = { revision, time: entry.time, hash: entry.hash, state: `state of ${revision}` }
  await store.prune(anchor)
  return anchor
}

export async function hashesOf(store: Store): Promise<string[]> {
  return (await store.history(ALL)).map(({ hash }) => hash).reverse()
}

export function numbers(found: readonly { revision: number }[]): number[] {
  return found.map(({ revision }) => revision)
}

export const ALL = { limit: 1000, changeLimit: 1000 }

export async function recordUses(store: Store, uses: readonly TokenUse[]): Promise<void> {
  await store.notes.record(TOKEN_USES, uses.map(noteOfUse))
}

export async function usesOf(store: Store, ...ids: readonly string[]): Promise<TokenUse[]> {
  return (await listed(store.notes.read(TOKEN_USES, ids))).map(useOfNote)
}

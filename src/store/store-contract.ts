// The promises of the Store interface as one suite: every store runs it.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Applied } from '../domain/documents/state.ts'
import { verifyLog } from '../transfer/verify-log.ts'
import {
  type Anchor,
  type HistoryQuery,
  type LoggedChange,
  type NewChange,
  type NewRevision,
  type PastDocument,
  type Remembered,
  type Store,
  StoreError,
} from './store.ts'

/** Opens an empty store; what it needs is cleaned up after the test. */
type OpenStore = (context: TestContext) => Store | Promise<Store>

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

const META = {
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

function stored<T extends { id: string }>(fields: T, deleted = false) {
  return { document: fields, deleted, size: JSON.stringify(fields).length }
}

export async function committed(store: Store, ...revisions: NewRevision[]): Promise<Store> {
  let base = (await store.head()).revision
  for (const revision of revisions) assert.equal((await store.commit(base++, revision)).ok, true)
  return store
}

async function revisionsSince(store: Store, revision: number) {
  const found: { revision: number; changes: readonly Applied[] }[] = []
  for await (const { hash, ...next } of store.changesSince(revision)) {
    assert.equal(hash, await store.hashOf(next.revision))
    found.push(next)
  }
  return found
}

/** The whole log after a revision, its parts put together; checks that only the last part of each says so. */
async function logOf(store: Store, since: number, until?: number) {
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

async function listed<T extends object>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push({ ...item })
  return found
}

/** All documents as they are stored, by type and id. */
async function documentsOf(store: Store) {
  const found: Record<string, { revision: number; deleted: boolean; json: string }> = {}
  for await (const { type, id, revision, deleted, json } of store.documents()) {
    assert.ok(!(`${type}/${id}` in found), `${type}/${id} comes once`)
    found[`${type}/${id}`] = { revision, deleted, json }
  }
  return found
}

/** Gives up the log up to a revision; the digest of the state is no concern of a store. */
async function pruneTo(store: Store, revision: number): Promise<Anchor> {
  const [entry] = await store.history({ ...ALL, revision })
  assert.ok(entry)
  const anchor = { revision, time: entry.time, hash: entry.hash, state: `state of ${revision}` }
  await store.prune(anchor)
  return anchor
}

async function hashesOf(store: Store): Promise<string[]> {
  return (await store.history(ALL)).map(({ hash }) => hash).reverse()
}

function numbers(found: readonly { revision: number }[]): number[] {
  return found.map(({ revision }) => revision)
}

const ALL = { limit: 1000, changeLimit: 1000 }

export function storeContract(name: string, open: OpenStore): void {
  describe(`the ${name} store`, () => {
    describe('documents', () => documentPromises(open))
    describe('compare-and-swap', () => swapPromises(open))
    describe('following', () => followPromises(open))
    describe('history', () => historyPromises(open))
    describe('searching the history', () => searchPromises(open))
    describe('a long history', () => longHistoryPromises(open))
    describe('the log', () => logPromises(open))
    describe('going back in time', () => pastPromises(open))
    describe('hashes', () => hashPromises(open))
    describe('giving up a part of the log', () => prunePromises(open))
    describe('answers', () => answerPromises(open))
    describe('uses of tokens', () => usePromises(open))
    describe('moving a log from store to store', () => movePromises(open))
    describe('leases', () => leasePromises(open))
  })
}

function documentPromises(open: OpenStore): void {
  test('an empty store is at revision 0 and holds nothing', async (t) => {
    const store = await open(t)
    assert.equal((await store.head()).revision, 0)
    assert.deepEqual(await loadAll(store), { revision: 0, documents: {} })
    assert.deepEqual(await revisionsSince(store, 0), [])
    assert.deepEqual(await store.history(ALL), [])
  })

  test('what is committed is loaded with the revision that made it so and the size of its JSON', async (t) => {
    const store = await committed(
      await open(t),
      revisionOf(put('a', { n: 1 }), put('b', { list: [1, { deep: true }] })),
      revisionOf(put('a', { n: 22 })),
    )
    assert.equal((await store.head()).revision, 2)
    assert.deepEqual(await loadAll(store), {
      revision: 2,
      documents: {
        'things/a': { revision: 2, after: stored({ id: 'a', n: 22 }) },
        'things/b': { revision: 1, after: stored({ id: 'b', list: [1, { deep: true }] }) },
      },
    })
  })

  test('one id under two types is two documents', async (t) => {
    const other = { type: 'others', id: 'a', after: { json: '{"id":"a","other":true}', deleted: false } }
    const store = await committed(
      await open(t),
      revisionOf(put('a'), other),
      revisionOf({ ...other, after: undefined }),
    )
    const { documents } = await loadAll(store)
    assert.deepEqual(documents, { 'things/a': { revision: 1, after: stored({ id: 'a' }) } })
  })

  test('a removed document is not loaded any more', async (t) => {
    const store = await committed(await open(t), revisionOf(put('a'), put('b')), revisionOf(remove('a')))
    const { revision, documents } = await loadAll(store)
    assert.equal(revision, 2)
    assert.deepEqual(documents, { 'things/b': { revision: 1, after: stored({ id: 'b' }) } })
  })

  test('a tombstone is loaded as deleted, with all that the document held', async (t) => {
    const store = await committed(
      await open(t),
      revisionOf(put('a', { n: 1 })),
      revisionOf(put('a', { n: 1 }, true)),
    )
    const { documents } = await loadAll(store)
    const after = stored({ id: 'a', n: 1 }, true)
    assert.deepEqual(documents, { 'things/a': { revision: 2, after } })
  })

  test('text of every script, long text and numbers come back as they went in', async (t) => {
    const fields = {
      text: 'ü ß 漢字 🚀 \u2028 \u0001 " \\ \' ; -- %00',
      long: 'λ'.repeat(1_000_000),
      numbers: [0, -1, 1.5, 1e-7, Number.MAX_SAFE_INTEGER],
      'key of "quotes" 🗝': null,
    }
    const store = await committed(await open(t), revisionOf(put('a', fields)))
    const { documents } = await loadAll(store)
    const after = stored({ id: 'a', ...fields })
    assert.deepEqual(documents, { 'things/a': { revision: 1, after } })
    assert.deepEqual(await revisionsSince(store, 0), [
      { revision: 1, changes: [{ type: 'things', id: 'a', after }] },
    ])
    const [entry] = await store.history(ALL)
    assert.deepEqual(entry?.changes[0]?.after, { id: 'a', ...fields })
  })

  test('what is loaded belongs to the caller: changing it changes nothing in the store', async (t) => {
    const store = await committed(await open(t), revisionOf(put('a', { list: ['kept'] })))
    await store.load((_revision, { after }) => {
      if (after) (after.document.list as string[]).push('added by the reader')
    })
    const { documents } = await loadAll(store)
    const after = stored({ id: 'a', list: ['kept'] })
    assert.deepEqual(documents, { 'things/a': { revision: 1, after } })
    assert.deepEqual((await store.history(ALL))[0]?.changes[0]?.after, { id: 'a', list: ['kept'] })
  })

  test('documents are handed out as they are stored, tombstones included and removed ones not', async (t) => {
    const spaced = { type: 'things', id: 'c', after: { json: '{ "id": "c", "n": 1.0 }', deleted: false } }
    const store = await open(t)
    assert.deepEqual(await documentsOf(store), {})
    await committed(
      store,
      revisionOf(put('a', { n: 1 }), put('b'), spaced, other(put('a', { other: true })), put('gone')),
      revisionOf(put('a', { n: 1 }, true), remove('gone')),
    )
    assert.deepEqual(await documentsOf(store), {
      'things/a': { revision: 2, deleted: true, json: '{"id":"a","n":1}' },
      'things/b': { revision: 1, deleted: false, json: '{"id":"b"}' },
      'things/c': { revision: 1, deleted: false, json: '{ "id": "c", "n": 1.0 }' },
      'others/a': { revision: 1, deleted: false, json: '{"id":"a","other":true}' },
    })
  })

  for (const count of [199, 200, 201, 600]) {
    test(`each of ${count} documents of two types is handed out once`, async (t) => {
      const changes = Array.from({ length: count }, (_, i) => {
        const change = put(`${(i * 7919) % count}-ü`, { i })
        return i % 2 ? change : other(change)
      })
      const store = await committed(await open(t), revisionOf(...changes))
      const found = await documentsOf(store)
      assert.deepEqual(Object.keys(found).sort(), changes.map(({ type, id }) => `${type}/${id}`).sort())
      for (const { type, id, after } of changes) {
        assert.deepEqual(found[`${type}/${id}`], { revision: 1, ...after })
      }
    })
  }
}

function swapPromises(open: OpenStore): void {
  test('of two commits on one base, the second is refused and leaves nothing behind', async (t) => {
    const store = await committed(await open(t), revisionOf(put('a', { n: 1 })))
    assert.equal((await store.commit(1, revisionOf(put('a', { n: 2 })))).ok, true)
    const late = revisionOf(put('a', { n: 3 }), put('new'))
    assert.deepEqual(await store.commit(1, late), { ok: false, head: 2 })
    assert.equal((await store.head()).revision, 2)
    const { revision, documents } = await loadAll(store)
    assert.equal(revision, 2)
    assert.deepEqual(documents, {
      'things/a': { revision: 2, after: stored({ id: 'a', n: 2 }) },
    })
    assert.equal((await store.history(ALL)).length, 2)
    assert.equal((await revisionsSince(store, 0)).length, 2)
  })

  test('of one that is refused nothing is left, however many changes it has', async (t) => {
    const store = await committed(await open(t), revisionOf(put('a')))
    const many = Array.from({ length: 1000 }, (_, i) => put(`late-${i}`))
    assert.deepEqual(await store.commit(0, revisionOf(...many)), { ok: false, head: 1 })
    assert.deepEqual(Object.keys((await loadAll(store)).documents), ['things/a'])
    assert.deepEqual(await changedAfter(store, 0), { 'things/a': undefined })
    assert.equal((await store.commit(1, revisionOf(...many))).ok, true)
    assert.equal(Object.keys((await loadAll(store)).documents).length, 1001)
  })

  test('a commit on a base that the store has not reached is refused', async (t) => {
    const store = await open(t)
    assert.deepEqual(await store.commit(1, revisionOf(put('a'))), { ok: false, head: 0 })
    assert.deepEqual(await loadAll(store), { revision: 0, documents: {} })
  })

  test('a refused commit can be made again on the head it was told', async (t) => {
    const store = await committed(await open(t), revisionOf(put('a')))
    const refused = await store.commit(0, revisionOf(put('b')))
    assert.ok(!refused.ok)
    assert.equal((await store.commit(refused.head, revisionOf(put('b')))).ok, true)
    assert.deepEqual(Object.keys((await loadAll(store)).documents).sort(), ['things/a', 'things/b'])
  })

  test('of many commits at once on one base, exactly one wins', { timeout: 5_000 }, async (t) => {
    const store = await open(t)
    for (let base = 0; base < 5; base++) {
      const ids = Array.from({ length: 8 }, (_, i) => `b${base}-${i}`)
      const results = await Promise.all(ids.map((id) => store.commit(base, revisionOf(put(id)))))
      const winners = ids.filter((_, i) => results[i]?.ok)
      assert.equal(winners.length, 1, `winners on base ${base}: ${winners}`)
      const refused = results.filter((result) => !result.ok)
      assert.ok(refused.every(({ head }) => head === base + 1))
      const [entry] = await store.history({ ...ALL, revision: base + 1 })
      assert.deepEqual(
        entry?.changes.map(({ id }) => id),
        winners,
      )
    }
    const { revision, documents } = await loadAll(store)
    assert.equal(revision, 5)
    assert.equal(Object.keys(documents).length, 5)
  })
}

function followPromises(open: OpenStore): void {
  test('the changes since a revision come oldest first and without gaps', async (t) => {
    const store = await committed(
      await open(t),
      revisionOf(put('a', { n: 1 }), put('b')),
      revisionOf(put('a', { n: 2 }, true)),
      revisionOf(remove('b')),
      revisionOf(put('a', { n: 3 })),
    )
    const all = await revisionsSince(store, 0)
    assert.deepEqual(all, [
      {
        revision: 1,
        changes: [
          { type: 'things', id: 'a', after: stored({ id: 'a', n: 1 }) },
          { type: 'things', id: 'b', after: stored({ id: 'b' }) },
        ],
      },
      {
        revision: 2,
        changes: [{ type: 'things', id: 'a', after: stored({ id: 'a', n: 2 }, true) }],
      },
      { revision: 3, changes: [{ type: 'things', id: 'b', after: undefined }] },
      { revision: 4, changes: [{ type: 'things', id: 'a', after: stored({ id: 'a', n: 3 }) }] },
    ])
    assert.deepEqual(await revisionsSince(store, 2), all.slice(2))
    assert.deepEqual(await revisionsSince(store, 4), [])
  })

  test('a revision of thousands of changes is followed whole and in order', async (t) => {
    const ids = Array.from({ length: 3210 }, (_, i) => `n${(i * 7919) % 3210}`)
    const store = await committed(
      await open(t),
      revisionOf(put('before')),
      revisionOf(...ids.map((id) => put(id))),
      revisionOf(put('after')),
    )
    const [large, last, ...more] = await revisionsSince(store, 1)
    assert.equal(large?.revision, 2)
    assert.deepEqual(
      large?.changes.map(({ id }) => id),
      ids,
    )
    assert.equal(last?.revision, 3)
    assert.deepEqual(more, [])
    assert.equal(Object.keys((await loadAll(store)).documents).length, ids.length + 2)
  })

  test('many small revisions are followed without gaps', async (t) => {
    const revisions = Array.from({ length: 300 }, (_, i) => revisionOf(put('a', { i })))
    const store = await committed(await open(t), ...revisions)
    const numbers = (await revisionsSince(store, 0)).map(({ revision }) => revision)
    assert.deepEqual(
      numbers,
      revisions.map((_, i) => i + 1),
    )
  })
}

function historyPromises(open: OpenStore): void {
  const five = Array.from({ length: 5 }, (_, i) => revisionOf(put('a', { n: i + 1 }), put(`only-${i + 1}`)))

  test('a revision records who, when, why and what was there before and after', async (t) => {
    const store = await committed(
      await open(t),
      revisionOf(put('a', { n: 1 }), put('gone')),
      revisionOf(put('a', { n: 1 }, true), remove('gone'), put('new')),
      { ...revisionOf(put('a', { n: 2 })), actor: 'ops', message: 'Zurück ↩', request_id: 'req-3' },
    )
    const recorded = await store.history(ALL)
    const [third, second, first] = recorded.map(({ hash, ...rest }) => {
      assert.match(hash, /^[0-9a-f]{64}$/)
      return rest
    })
    const live = { before_deleted: false, after_deleted: false }
    const a1 = { id: 'a', n: 1 }
    assert.deepEqual(first, {
      revision: 1,
      ...META,
      change_count: 2,
      changes: [
        { type: 'things', id: 'a', before: null, after: a1, ...live },
        { type: 'things', id: 'gone', before: null, after: { id: 'gone' }, ...live },
      ],
    })
    assert.deepEqual(second, {
      revision: 2,
      ...META,
      change_count: 3,
      changes: [
        { type: 'things', id: 'a', before: a1, after: a1, before_deleted: false, after_deleted: true },
        { type: 'things', id: 'gone', before: { id: 'gone' }, after: null, ...live },
        { type: 'things', id: 'new', before: null, after: { id: 'new' }, ...live },
      ],
    })
    assert.deepEqual(third, {
      revision: 3,
      ...META,
      actor: 'ops',
      message: 'Zurück ↩',
      request_id: 'req-3',
      change_count: 1,
      changes: [
        {
          type: 'things',
          id: 'a',
          before: a1,
          after: { id: 'a', n: 2 },
          before_deleted: true,
          after_deleted: false,
        },
      ],
    })
  })

  test('revisions come newest first, in pages', async (t) => {
    const store = await committed(await open(t), ...five)
    assert.deepEqual(numbers(await store.history(ALL)), [5, 4, 3, 2, 1])
    assert.deepEqual(numbers(await store.history({ ...ALL, limit: 2 })), [5, 4])
    assert.deepEqual(numbers(await store.history({ ...ALL, limit: 2, before: 4 })), [3, 2])
    assert.deepEqual(numbers(await store.history({ ...ALL, before: 1 })), [])
    assert.deepEqual(numbers(await store.history({ ...ALL, before: 99 })), [5, 4, 3, 2, 1])
  })

  test('one revision is found by its number, and no other', async (t) => {
    const store = await committed(await open(t), ...five)
    const found = await store.history({ ...ALL, revision: 3 })
    assert.deepEqual(numbers(found), [3])
    assert.deepEqual(
      found[0]?.changes.map(({ id }) => id),
      ['a', 'only-3'],
    )
    assert.deepEqual(await store.history({ ...ALL, revision: 6 }), [])
    assert.deepEqual(await store.history({ ...ALL, revision: 0 }), [])
  })

  test('a part of a revision’s changes can be asked for, and the count says how many there are', async (t) => {
    const ids = Array.from({ length: 25 }, (_, i) => `n${i}`)
    const store = await committed(await open(t), revisionOf(...ids.map((id) => put(id))))
    const part = async (changeOffset: number, changeLimit: number) => {
      const [entry] = await store.history({ limit: 1, changeOffset, changeLimit })
      assert.equal(entry?.change_count, 25)
      return entry?.changes.map(({ id }) => id)
    }
    assert.deepEqual(await part(0, 10), ids.slice(0, 10))
    assert.deepEqual(await part(10, 10), ids.slice(10, 20))
    assert.deepEqual(await part(20, 10), ids.slice(20))
    assert.deepEqual(await part(25, 10), [])
  })

  test('one document’s history holds only the revisions that changed it, with only its change', async (t) => {
    const store = await committed(await open(t), ...five, revisionOf(remove('only-2')))
    const document = { type: 'things', id: 'only-2' }
    const found = await store.history({ ...ALL, documents: [document] })
    assert.deepEqual(numbers(found), [6, 2])
    assert.deepEqual(
      found.map(({ changes }) => changes.map(({ id }) => id)),
      [['only-2'], ['only-2']],
    )
    assert.deepEqual(
      found.map(({ change_count }) => change_count),
      [1, 2],
    )
    assert.deepEqual(numbers(await store.history({ ...ALL, documents: [document], before: 6 })), [2])
    assert.deepEqual(numbers(await store.history({ ...ALL, documents: [document], limit: 1 })), [6])
    assert.deepEqual(numbers(await store.history({ ...ALL, documents: [document], revision: 2 })), [2])
    assert.deepEqual(await store.history({ ...ALL, documents: [document], revision: 3 }), [])
    assert.deepEqual(await store.history({ ...ALL, documents: [{ type: 'others', id: 'only-2' }] }), [])
  })

  test('the log alone gives the documents as they are', async (t) => {
    const store = await committed(
      await open(t),
      ...five,
      revisionOf(put('a', { n: 9 }, true), remove('only-1'), put('only-2', { again: true })),
      revisionOf(remove('a'), put('only-1')),
    )
    const rebuilt: Record<string, { revision: number; after: Applied['after'] }> = {}
    for await (const { revision, changes } of store.changesSince(0)) {
      for (const { type, id, after } of changes) {
        if (after) rebuilt[`${type}/${id}`] = { revision, after }
        else delete rebuilt[`${type}/${id}`]
      }
    }
    assert.deepEqual((await loadAll(store)).documents, rebuilt)
  })
}

/** Five revisions that differ in everything that can be searched for. */
const SEARCHED: readonly NewRevision[] = [
  {
    ...revisionOf(put('a')),
    time: minute(0),
    actor: 'ada',
    message: 'Größe ÄNDERN',
    request_id: 'Req-AA-1',
    operation: 'create things/a',
  },
  {
    ...revisionOf(other(put('b'))),
    time: minute(1),
    actor: 'bob',
    message: null,
    request_id: 'req-bb-2',
    operation: 'patch others/ÉTÉ',
  },
  {
    ...revisionOf(put('a', { n: 1 }), other(put('a'))),
    time: minute(2),
    actor: 'Ørsted',
    message: 'ada asked: 50% of_all',
    request_id: 'x-3',
    operation: 'batch of 2',
  },
  {
    ...revisionOf(remove('a')),
    time: minute(2),
    actor: 'bob',
    message: 'undo',
    request_id: 'x-4',
    operation: 'delete things/a',
  },
  {
    ...revisionOf(),
    time: minute(4),
    actor: 'ada',
    message: null,
    request_id: 'x-5',
    operation: 'nothing',
  },
]

function searchPromises(open: OpenStore): void {
  type Filters = Omit<HistoryQuery, 'limit' | 'changeLimit'>
  const search = async (store: Store, filters: Filters) =>
    numbers(await store.history({ ...ALL, ...filters }))

  async function check(t: TestContext, cases: readonly (readonly [Filters, readonly number[]])[]) {
    const store = await committed(await open(t), ...SEARCHED)
    for (const [filters, expected] of cases) {
      assert.deepEqual(await search(store, filters), expected, JSON.stringify(filters))
    }
  }

  test('an actor’s revisions are found by exactly that name', (t) =>
    check(t, [
      [{ actor: 'ada' }, [5, 1]],
      [{ actor: 'Ørsted' }, [3]],
      [{ actor: 'Ada' }, []],
      [{ actor: 'ad' }, []],
      [{ actor: 'a%' }, []],
    ]))

  test('a type’s revisions are those that changed a document of it, with only those changes', async (t) => {
    await check(t, [
      [{ type: 'things' }, [4, 3, 1]],
      [{ type: 'others' }, [3, 2]],
      [{ type: 'thing' }, []],
      [{ type: 'hings' }, []],
    ])
    const store = await committed(await open(t), ...SEARCHED)
    const found = await store.history({ ...ALL, type: 'others' })
    assert.deepEqual(
      found.map(({ changes }) => changes.map(({ type, id }) => `${type}/${id}`)),
      [['others/a'], ['others/b']],
    )
  })

  test('a time span holds both of its ends', (t) =>
    check(t, [
      [{ since: minute(2) }, [5, 4, 3]],
      [{ since: '2026-01-31T12:02:00.001Z' }, [5]],
      [{ until: minute(2) }, [4, 3, 2, 1]],
      [{ until: '2026-01-31T12:01:59.999Z' }, [2, 1]],
      [{ since: minute(1), until: minute(2) }, [4, 3, 2]],
      [{ since: minute(3), until: minute(3) }, []],
      [{ since: minute(2), until: minute(1) }, []],
    ]))

  test('text is found in the message, the operation, the actor and the request id', (t) =>
    check(t, [
      [{ text: 'undo' }, [4]],
      [{ text: 'batch of' }, [3]],
      [{ text: 'ada' }, [5, 3, 1]],
      [{ text: 'bb-2' }, [2]],
      [{ text: 'things/a' }, [4, 1]],
      [{ text: 'nowhere' }, []],
      [{ text: '' }, [5, 4, 3, 2, 1]],
    ]))

  test('text is found in either case, in every script', (t) =>
    check(t, [
      [{ text: 'UNDO' }, [4]],
      [{ text: 'req-aa' }, [1]],
      [{ text: 'REQ-' }, [2, 1]],
      [{ text: 'grÖße ändern' }, [1]],
      [{ text: 'été' }, [2]],
      [{ text: 'øRSTED' }, [3]],
    ]))

  test('text means itself: it is no pattern and does not reach from one field into the next', (t) =>
    check(t, [
      [{ text: '%' }, [3]],
      [{ text: '50% of_all' }, [3]],
      [{ text: 'asked%all' }, []],
      [{ text: '_all' }, [3]],
      [{ text: 'a.a' }, []],
      [{ text: "'" }, []],
      [{ text: 'undodelete' }, []],
      [{ text: 'bobx-4' }, []],
    ]))

  test('filters narrow each other down', (t) =>
    check(t, [
      [{ actor: 'bob', type: 'things' }, [4]],
      [{ actor: 'ada', text: 'ada', since: minute(1) }, [5]],
      [{ type: 'others', until: minute(1), text: 'patch' }, [2]],
      [{ type: 'others', actor: 'ada' }, []],
      [{ actor: 'bob', before: 4 }, [2]],
      [{ actor: 'bob', revision: 4 }, [4]],
      [{ actor: 'ada', revision: 4 }, []],
      [{ documents: [{ type: 'things', id: 'a' }], actor: 'bob' }, [4]],
      [{ documents: [{ type: 'things', id: 'a' }], type: 'others', text: 'ASKED', since: minute(2) }, []],
      [{ documents: [{ type: 'things', id: 'a' }], type: 'things', text: 'ASKED', since: minute(2) }, [3]],
      [{ documents: [{ type: 'others', id: 'b' }], until: minute(0) }, []],
    ]))

  const spanned = [
    revisionOf(put('a'), put('b'), put('c')),
    revisionOf(put('a', { n: 2 })),
    revisionOf(put('b', { n: 3 })),
    revisionOf(put('c', { n: 4 }), put('b', { n: 4 }), put('a', { n: 4 })),
    revisionOf(put('a', { n: 5 })),
    revisionOf(other(put('a'))),
  ]
  const idsOf = async (store: Store, query: HistoryQuery) =>
    (await store.history(query)).map(({ revision, changes }) => [revision, ...changes.map(({ id }) => id)])

  test('several documents are found together, each in its own span of revisions', async (t) => {
    const store = await committed(await open(t), ...spanned)
    const a = { type: 'things', id: 'a' }
    const b = { type: 'things', id: 'b' }
    const found = (documents: HistoryQuery['documents']) =>
      idsOf(store, { ...ALL, ...(documents && { documents }) })
    assert.deepEqual(await found([{ ...a, from: 2, until: 5 }]), [
      [4, 'a'],
      [2, 'a'],
    ])
    assert.deepEqual(
      await found([
        { ...a, from: 2, until: 5 },
        { ...b, until: 4 },
      ]),
      [
        [4, 'a'],
        [3, 'b'],
        [2, 'a'],
        [1, 'b'],
      ],
    )
    assert.deepEqual(await found([{ ...a, from: 4 }, b]), [
      [5, 'a'],
      [4, 'b', 'a'],
      [3, 'b'],
      [1, 'b'],
    ])
    assert.deepEqual(
      await found([
        { ...a, until: 2 },
        { ...a, from: 5 },
      ]),
      [
        [5, 'a'],
        [1, 'a'],
      ],
    )
    assert.deepEqual(await found([{ ...a, from: 3, until: 3 }]), [])
    assert.deepEqual(await found([]), [])
  })

  test('a document in two spans that overlap is there once', async (t) => {
    const store = await committed(await open(t), ...spanned)
    const a = { type: 'things', id: 'a' }
    const documents = [a, { ...a, from: 1, until: 5 }]
    assert.deepEqual(await idsOf(store, { ...ALL, documents }), [
      [5, 'a'],
      [4, 'a'],
      [2, 'a'],
      [1, 'a'],
    ])
  })

  test('a part of the changes that were asked for is counted among those alone', async (t) => {
    const store = await committed(await open(t), ...spanned)
    const documents = ['a', 'b'].map((id) => ({ type: 'things', id }))
    const query = { documents, revision: 4, limit: 1 }
    assert.deepEqual(await idsOf(store, { ...query, changeLimit: 1 }), [[4, 'b']])
    assert.deepEqual(await idsOf(store, { ...query, changeOffset: 1, changeLimit: 5 }), [[4, 'a']])
    assert.deepEqual(await idsOf(store, { ...query, changeOffset: 2, changeLimit: 5 }), [[4]])
    const [entry] = await store.history({ ...query, changeLimit: 1 })
    assert.equal(entry?.change_count, 3)
  })

  test('what is found can be read in pages', async (t) => {
    const store = await committed(await open(t), ...SEARCHED)
    const queries: Filters[] = [
      { actor: 'bob' },
      { type: 'things' },
      { text: 'ada' },
      { documents: [{ type: 'things', id: 'a' }] },
    ]
    for (const filters of queries) {
      const paged: number[] = []
      for (let before = 99; ; ) {
        const [next, ...more] = await store.history({ ...filters, before, limit: 1, changeLimit: 1 })
        assert.deepEqual(more, [])
        if (!next) break
        paged.push(next.revision)
        before = next.revision
      }
      assert.ok(paged.length > 1)
      assert.deepEqual(paged, await search(store, filters), JSON.stringify(filters))
    }
  })
}

/** One store for all: making it is what takes time. */
function longHistoryPromises(open: OpenStore): void {
  test('of more revisions than are looked at at once', async (t) => {
    const COUNT = 2050
    const rare = [2049, 2001, 2000, 1999, 51, 50, 49, 1]
    const store = await open(t)
    const revisions = Array.from({ length: COUNT }, (_, base) => ({
      ...revisionOf(rare.includes(base + 1) ? other(put('rare', { base })) : put('a', { base })),
      actor: rare.includes(base + 1) ? 'rare' : 'often',
      time: minute(base + 1),
    }))
    assert.ok((await store.commit(0, ...revisions)).ok)

    await t.test('is searched to its end', async () => {
      const filters = [{ actor: 'rare' }, { type: 'others' }, { text: 'RARE' }]
      for (const filter of [...filters, { documents: [{ type: 'others', id: 'rare' }] }]) {
        assert.deepEqual(numbers(await store.history({ ...ALL, ...filter })), rare, JSON.stringify(filter))
      }
      const query = { ...ALL, actor: 'rare', since: minute(49), until: minute(2000) }
      assert.deepEqual(numbers(await store.history(query)), [2000, 1999, 51, 50, 49])
      assert.deepEqual(await store.history({ ...ALL, actor: 'nobody' }), [])
    })

    await t.test('gives pages that reach over what is looked at at once', async () => {
      const page = async (before: number) =>
        numbers(await store.history({ actor: 'rare', before, limit: 3, changeLimit: 1 }))
      assert.deepEqual(await page(9999), rare.slice(0, 3))
      assert.deepEqual(await page(2000), rare.slice(3, 6))
      assert.deepEqual(await page(50), rare.slice(6))
      assert.deepEqual(await page(1), [])
      const plain = await store.history({ before: 53, limit: 5, changeLimit: 1 })
      assert.deepEqual(numbers(plain), [52, 51, 50, 49, 48])
    })

    await t.test('is given whole when all of it is asked for', async () => {
      const all = numbers(await store.history({ limit: 5000, changeLimit: 1 }))
      assert.deepEqual(
        all,
        Array.from({ length: COUNT }, (_, i) => COUNT - i),
      )
    })

    await t.test('is given up whole', async () => {
      await pruneTo(store, 2045)
      assert.deepEqual(numbers(await store.history(ALL)), [2050, 2049, 2048, 2047, 2046])
      assert.deepEqual(numbers(await store.history({ ...ALL, actor: 'rare' })), [2049])
    })
  })
}

function logPromises(open: OpenStore): void {
  test('an anchor never goes back, and nothing from before it can be read', async (t) => {
    const at = (n: number) => ({ ...revisionOf(put('a', { n })), time: minute(n) })
    const store = await committed(await open(t), at(1), at(2), at(3))
    await store.prune({ revision: 2, time: minute(2), hash: 'two', state: '' })
    await store.prune({ revision: 1, time: minute(1), hash: 'one', state: '' })
    assert.equal((await store.anchor())?.revision, 2)
    for (const only of [undefined, { type: 'things' }, { type: 'things', id: 'a' }]) {
      await assert.rejects(changedAfter(store, 1, only), {
        name: 'StoreError',
        message: /reaches back to revision 2/,
      })
      assert.equal(Object.keys(await changedAfter(store, 2, only)).length, 1)
    }
  })

  test('a key that is remembered already lets no commit pass', async (t) => {
    const store = await committed(await open(t), revisionOf(put('a')))
    const remember = { key: 'k', fingerprint: 'f', time: minute(1), answer: 'first' }
    await store.remember(remember)
    await store.remember({ ...remember, answer: 'second' })
    const late = { ...revisionOf(put('b')), remember: { ...remember, answer: 'third' } }
    assert.deepEqual(await store.commit(1, late), { ok: false, head: 1 })
    assert.equal((await store.recall('k', minute(2)))?.answer, 'first')
  })

  test('it holds everything that was recorded, oldest first, with documents as they were stored', async (t) => {
    const meta = { ...META, actor: 'ops', message: 'Zurück ↩', client_address: '::1', operation: 'undo' }
    const store = await committed(
      await open(t),
      revisionOf(put('a', { n: 1 }), put('gone')),
      { ...meta, changes: [put('a', { n: 1 }, true), remove('gone'), other(put('new'))] },
      revisionOf(put('a', { n: 2 })),
    )
    const [one, two, three] = await hashesOf(store)
    const live = { before_deleted: false, before_revision: 0, after_deleted: false }
    const a1 = '{"id":"a","n":1}'
    const gone = '{"id":"gone"}'
    const whole = [
      {
        revision: 1,
        meta: META,
        hash: one,
        changes: [
          { type: 'things', id: 'a', before: null, after: a1, ...live },
          { type: 'things', id: 'gone', before: null, after: gone, ...live },
        ],
      },
      {
        revision: 2,
        meta,
        hash: two,
        changes: [
          {
            type: 'things',
            id: 'a',
            before: a1,
            after: a1,
            ...live,
            before_revision: 1,
            after_deleted: true,
          },
          { type: 'things', id: 'gone', before: gone, after: null, ...live, before_revision: 1 },
          { type: 'others', id: 'new', before: null, after: '{"id":"new"}', ...live },
        ],
      },
      {
        revision: 3,
        meta: META,
        hash: three,
        changes: [
          {
            type: 'things',
            id: 'a',
            before: a1,
            after: '{"id":"a","n":2}',
            before_deleted: true,
            before_revision: 2,
            after_deleted: false,
          },
        ],
      },
    ]
    assert.deepEqual(await logOf(store, 0), whole)
    assert.deepEqual(await logOf(store, 1), whole.slice(1))
    assert.deepEqual(await logOf(store, 0, 2), whole.slice(0, 2))
    assert.deepEqual(await logOf(store, 1, 2), whole.slice(1, 2))
    assert.deepEqual(await logOf(store, 2, 99), whole.slice(2))
    assert.deepEqual(await logOf(store, 3), [])
    assert.deepEqual(await logOf(store, 2, 2), [])
    assert.deepEqual(await logOf(store, 2, 1), [])
  })

  test('an empty store has none', async (t) => {
    assert.deepEqual(await logOf(await open(t), 0), [])
  })

  test('revisions of any number of changes are whole and in order, none included', async (t) => {
    const counts = [0, 1, 199, 200, 201, 0, 399, 400, 401, 1]
    const idsOf = (count: number, n: number) => Array.from({ length: count }, (_, i) => `${n}-${count - i}`)
    const revisions = counts.map((count, n) => revisionOf(...idsOf(count, n).map((id) => put(id))))
    const store = await committed(await open(t), ...revisions)
    const found = await logOf(store, 0)
    assert.deepEqual(
      found.map(({ revision, changes }) => [revision, ...changes.map(({ id }) => id)]),
      counts.map((count, n) => [n + 1, ...idsOf(count, n)]),
    )
    assert.deepEqual(
      (await store.history(ALL)).map(({ change_count }) => change_count),
      [...counts].reverse(),
    )
    for (const [n, count] of counts.entries()) {
      const [only, ...more] = await logOf(store, n, n + 1)
      assert.deepEqual([only?.revision, only?.changes.length, more.length], [n + 1, count, 0])
    }
  })

  test('a reader that stops half-way leaves the store as usable as before', async (t) => {
    const many = Array.from({ length: 450 }, (_, i) => put(`n${i}`))
    const store = await committed(await open(t), revisionOf(...many), revisionOf(put('a')))
    for await (const { revision } of store.log(0)) {
      assert.equal(revision, 1)
      break
    }
    await committed(store, revisionOf(put('b')))
    assert.deepEqual(numbers(await logOf(store, 0)), [1, 2, 3])
  })
}

function pastPromises(open: OpenStore): void {
  test('a document that was changed since stands as it stood, whatever happened after that', async (t) => {
    const store = await committed(
      await open(t),
      revisionOf(put('a', { n: 1 }), put('b')),
      revisionOf(put('a', { n: 22 })),
      revisionOf(put('a', { n: 3 })),
      revisionOf(remove('a')),
    )
    const a1 = { ...stored({ id: 'a', n: 1 }), revision: 1 }
    const a2 = { ...stored({ id: 'a', n: 22 }), revision: 2 }
    const a3 = { ...stored({ id: 'a', n: 3 }), revision: 3 }
    assert.deepEqual(await changedAfter(store, 1), { 'things/a': a1 })
    assert.deepEqual(await changedAfter(store, 2), { 'things/a': a2 })
    assert.deepEqual(await changedAfter(store, 3), { 'things/a': a3 })
  })

  test('a document that was made since was not there', async (t) => {
    const store = await committed(
      await open(t),
      revisionOf(put('a')),
      revisionOf(put('b')),
      revisionOf(put('b', { n: 2 })),
      revisionOf(remove('a')),
      revisionOf(put('a', { again: true })),
    )
    assert.deepEqual(await changedAfter(store, 0), { 'things/a': undefined, 'things/b': undefined })
    assert.deepEqual(await changedAfter(store, 1), {
      'things/a': { ...stored({ id: 'a' }), revision: 1 },
      'things/b': undefined,
    })
    assert.deepEqual(await changedAfter(store, 4), { 'things/a': undefined })
  })

  test('a tombstone was a tombstone', async (t) => {
    const store = await committed(
      await open(t),
      revisionOf(put('a', { n: 1 })),
      revisionOf(put('a', { n: 1 }, true)),
      revisionOf(put('a', { n: 2 })),
    )
    assert.deepEqual(await changedAfter(store, 2), {
      'things/a': { ...stored({ id: 'a', n: 1 }, true), revision: 2 },
    })
    assert.deepEqual(await changedAfter(store, 1), {
      'things/a': { ...stored({ id: 'a', n: 1 }), revision: 1 },
    })
  })

  test('only documents of one type, or only one document, can be asked for', async (t) => {
    const store = await committed(
      await open(t),
      revisionOf(put('a'), put('b'), other(put('a', { other: true }))),
      revisionOf(put('a', { n: 2 }), other(put('a', { n: 2 }))),
      revisionOf(put('a', { n: 3 }), put('b', { n: 3 }), put('c')),
    )
    const was = <T extends { id: string }>(fields: T) => ({ ...stored(fields), revision: 1 })
    const things = { 'things/a': was({ id: 'a' }), 'things/b': was({ id: 'b' }), 'things/c': undefined }
    const others = { 'others/a': was({ id: 'a', other: true }) }
    assert.deepEqual(await changedAfter(store, 1), { ...things, ...others })
    assert.deepEqual(await changedAfter(store, 1, { type: 'things' }), things)
    assert.deepEqual(await changedAfter(store, 1, { type: 'others' }), others)
    assert.deepEqual(await changedAfter(store, 1, { type: 'thing' }), {})
    assert.deepEqual(await changedAfter(store, 1, { type: 'things', id: 'a' }), {
      'things/a': was({ id: 'a' }),
    })
    assert.deepEqual(await changedAfter(store, 1, { type: 'things', id: 'b' }), {
      'things/b': was({ id: 'b' }),
    })
    assert.deepEqual(await changedAfter(store, 1, { type: 'others', id: 'a' }), others)
    assert.deepEqual(await changedAfter(store, 1, { type: 'things', id: 'c' }), { 'things/c': undefined })
    assert.deepEqual(await changedAfter(store, 1, { type: 'others', id: 'b' }), {})
    assert.deepEqual(await changedAfter(store, 2, { type: 'others', id: 'a' }), {})
  })

  test('nothing comes where nothing has changed since', async (t) => {
    const store = await open(t)
    assert.deepEqual(await changedAfter(store, 0), {})
    await committed(store, revisionOf(put('a')), revisionOf())
    assert.deepEqual(await changedAfter(store, 1), {})
    assert.deepEqual(await changedAfter(store, 2), {})
    assert.deepEqual(await changedAfter(store, 99), {})
    assert.deepEqual(await changedAfter(store, 2, { type: 'things' }), {})
    assert.deepEqual(await changedAfter(store, 2, { type: 'things', id: 'a' }), {})
  })

  test('thousands of documents come once each, as they stood', async (t) => {
    const ids = Array.from({ length: 4100 }, (_, i) => `n${i}`)
    const store = await committed(
      await open(t),
      revisionOf(...ids.map((id) => put(id)), other(put('rare'))),
      revisionOf(...ids.map((id) => put(id, { second: true }))),
      revisionOf(...ids.slice(1000).map((id) => remove(id)), other(put('rare', { n: 2 })), put('new')),
    )
    const found = await changedAfter(store, 1)
    assert.equal(Object.keys(found).length, ids.length + 2)
    for (const id of ids)
      assert.deepEqual(found[`things/${id}`], { ...stored({ id }), revision: 1 }, `things/${id}`)
    const rare = { 'others/rare': { ...stored({ id: 'rare' }), revision: 1 } }
    assert.deepEqual(await changedAfter(store, 1, { type: 'others' }), rare)
    assert.deepEqual(await changedAfter(store, 2, { type: 'others' }), rare)
    const later = await changedAfter(store, 2)
    assert.equal(Object.keys(later).length, ids.length - 1000 + 2)
    assert.equal(later['things/n1000']?.revision, 2)
    assert.deepEqual(later['things/new'], undefined)
  })

  test('what is now and what was changed since give every earlier state', async (t) => {
    const store = await open(t)
    const states = [await loadAll(store)]
    const revisions = [
      revisionOf(put('a', { n: 1 }), put('b'), other(put('a'))),
      revisionOf(put('b', {}, true), put('c')),
      revisionOf(remove('a'), remove('b')),
      revisionOf(put('a', { n: 4 }), other(put('a', {}, true))),
      revisionOf(put('c', { n: 5 }), other(put('a', { n: 5 })), put('d', {}, true)),
      revisionOf(remove('d')),
    ]
    for (const revision of revisions) states.push(await loadAll(await committed(store, revision)))
    const { documents: now } = states.at(-1) as { documents: object }
    for (const { revision, documents } of states) {
      const rebuilt: Record<string, unknown> = { ...now }
      for (const [key, was] of Object.entries(await changedAfter(store, revision))) {
        if (was) {
          const { revision: made, ...after } = was
          rebuilt[key] = { revision: made, after }
        } else delete rebuilt[key]
      }
      assert.deepEqual(rebuilt, documents, `revision ${revision}`)
    }
  })

  test('a moment belongs to the last revision that was made by then', async (t) => {
    const store = await open(t)
    assert.equal(await store.revisionAt(minute(0)), undefined)
    const times = [minute(1), minute(2), minute(2), minute(5)]
    await committed(store, ...times.map((time) => ({ ...revisionOf(put('a')), time })))
    const moments = {
      [minute(0)]: undefined,
      '2026-01-31T12:00:59.999Z': undefined,
      [minute(1)]: 1,
      '2026-01-31T12:01:59.999Z': 1,
      [minute(2)]: 3,
      [minute(3)]: 3,
      '2026-01-31T12:04:59.999Z': 3,
      [minute(5)]: 4,
      '2027-01-01T00:00:00.000Z': 4,
    }
    for (const [time, revision] of Object.entries(moments)) {
      assert.equal(await store.revisionAt(time), revision, time)
    }
  })
}

/** The documented seal, made by other means: lines of JSON, and the documents as they are stored. */
function sealOf(previous: string, revision: number, meta: NewRevision, changes: readonly LoggedChange[]) {
  const { time, actor, message, request_id, client_address, operation } = meta
  const head = JSON.stringify([
    previous,
    revision,
    time,
    actor,
    message,
    request_id,
    client_address,
    operation,
  ])
  const rest = changes.map(({ type, id, before, before_deleted, after, after_deleted }) => {
    const flags = JSON.stringify([type, id, before === null, before_deleted, after === null, after_deleted])
    return `${flags}\n${before ?? ''}\n${after ?? ''}\n`
  })
  return createHash('sha256')
    .update(`${head}\n${rest.join('')}`)
    .digest('hex')
}

function hashPromises(open: OpenStore): void {
  const base: NewRevision[] = [
    revisionOf(put('a', { text: 'ü 漢字 🚀' }), put('b')),
    {
      ...revisionOf(put('a', { n: 2 }, true), remove('b'), other(put('c'))),
      time: minute(1),
      message: 'Zurück "↩"\n',
      client_address: '10.0.0.1',
    },
    { ...revisionOf(), time: minute(1) },
  ]
  /** The same wherever it is stored: whoever keeps a hash can still check it after a move to another store. */
  const LAST = 'b303a45406e5cd98d91bc815f72ed04179dfe8eeb8e5b694a48a610b788a2b10'

  test('each is that of the revision’s content and of the hash before it', async (t) => {
    const store = await committed(await open(t), ...base)
    let previous = ''
    for (const { revision, changes, hash } of await logOf(store, 0)) {
      assert.equal(hash, sealOf(previous, revision, base[revision - 1] as NewRevision, changes))
      previous = hash
    }
    assert.equal(previous, LAST)
  })

  test('a revision of hundreds of changes is sealed as one', async (t) => {
    const many = revisionOf(...Array.from({ length: 650 }, (_, i) => put(`n${i}`)))
    const store = await committed(await open(t), many, many)
    const [one, two] = await logOf(store, 0)
    assert.equal(one?.hash, sealOf('', 1, many, one?.changes ?? []))
    assert.equal(two?.hash, sealOf(one?.hash ?? '', 2, many, two?.changes ?? []))
  })

  test('a time is never before the last one, even if the clock was set back', async (t) => {
    const at = (time: string) => ({ ...revisionOf(put('a', { time })), time })
    const store = await committed(await open(t), at(minute(9)), at(minute(3)), at(minute(12)))
    const times = (await store.history(ALL)).map(({ time }) => time)
    assert.deepEqual(times, [minute(12), minute(9), minute(9)])
    assert.equal(await store.revisionAt(minute(10)), 2)
    assert.equal(await store.revisionAt(minute(4)), undefined)
  })

  test('equal revisions have equal hashes', async (t) => {
    const [one, two] = [await committed(await open(t), ...base), await committed(await open(t), ...base)]
    assert.deepEqual(await hashesOf(one), await hashesOf(two))
  })

  test('a refused commit and an answer that is kept leave no trace in them', async (t) => {
    const store = await open(t)
    for (const [i, revision] of base.entries()) {
      assert.ok(!(await store.commit(i + 5, revisionOf(put('late')))).ok)
      const remember = { key: `k${i}`, fingerprint: 'f', time: minute(i), answer: '{}' }
      await committed(store, { ...revision, remember })
    }
    assert.equal((await hashesOf(store)).at(-1), LAST)
  })

  test('a difference in anything gives another hash, and so does it to every later one', async (t) => {
    const [first, ...rest] = base as [NewRevision, ...NewRevision[]]
    const differences: Record<string, Partial<NewRevision>> = {
      time: { time: minute(9) },
      actor: { actor: 'other' },
      message: { message: '' },
      request_id: { request_id: 's' },
      client_address: { client_address: '' },
      operation: { operation: 'put thing' },
      document: { changes: [put('a', { text: 'u 漢字 🚀' }), put('b')] },
      tombstone: { changes: [put('a', { text: 'ü 漢字 🚀' }), put('b', {}, true)] },
      order: { changes: [...first.changes].reverse() },
      type: { changes: [put('a', { text: 'ü 漢字 🚀' }), other(put('b'))] },
      fewer: { changes: first.changes.slice(0, 1) },
    }
    const seen = new Map<string, string>()
    const all = { nothing: {}, ...differences }
    for (const [name, difference] of Object.entries(all)) {
      const store = await committed(await open(t), { ...first, ...difference }, ...rest)
      for (const [i, hash] of (await hashesOf(store)).entries()) {
        assert.equal(seen.get(hash), undefined, `hash ${i + 1} with another ${name}`)
        seen.set(hash, name)
      }
    }
  })

  test('equal content under another number has another hash', async (t) => {
    const store = await committed(await open(t), revisionOf(), revisionOf(), revisionOf())
    assert.equal(new Set(await hashesOf(store)).size, 3)
  })
}

function prunePromises(open: OpenStore): void {
  const six = [
    revisionOf(put('a', { n: 1 }), put('b'), other(put('a'))),
    revisionOf(put('a', { n: 2 })),
    revisionOf(put('b', {}, true)),
    revisionOf(put('a', { n: 4 }), remove('b')),
    revisionOf(put('c')),
    revisionOf(put('a', { n: 6 })),
  ].map((revision, i) => ({ ...revision, time: minute(i + 1) }))

  test('nothing is given up until it is asked for', async (t) => {
    const store = await open(t)
    assert.equal(await store.anchor(), undefined)
    await committed(store, ...six)
    assert.equal(await store.anchor(), undefined)
  })

  test('what is given up is not in the log any more, and the rest is as it was', async (t) => {
    const store = await committed(await open(t), ...six)
    const [log, history] = [await logOf(store, 0), await store.history(ALL)]
    const anchor = await pruneTo(store, 3)
    assert.deepEqual({ ...(await store.anchor()) }, anchor)
    assert.deepEqual(await logOf(store, 0), log.slice(3))
    assert.deepEqual(await logOf(store, 4), log.slice(4))
    assert.deepEqual(await logOf(store, 0, 3), [])
    assert.deepEqual(await store.history(ALL), history.slice(0, 3))
    assert.deepEqual(await store.history({ ...ALL, revision: 3 }), [])
    assert.deepEqual(numbers(await store.history({ ...ALL, revision: 4 })), [4])
    assert.deepEqual(await store.history({ ...ALL, before: 4 }), [])
    const document = { type: 'things', id: 'a' }
    assert.deepEqual(numbers(await store.history({ ...ALL, documents: [document] })), [6, 4])
    assert.deepEqual(await store.history({ ...ALL, documents: [{ ...document, until: 3 }] }), [])
    assert.deepEqual(await store.history({ ...ALL, type: 'others' }), [])
    assert.deepEqual(numbers(await revisionsSince(store, 3)), [4, 5, 6])
  })

  test('documents stay, also those that were last changed by what is given up', async (t) => {
    const store = await committed(await open(t), ...six)
    const [loaded, documents] = [await loadAll(store), await documentsOf(store)]
    await pruneTo(store, 5)
    assert.deepEqual(await loadAll(store), loaded)
    assert.deepEqual(await documentsOf(store), documents)
    assert.equal((await store.head()).revision, 6)
  })

  test('from the anchor on one can still go back in time', async (t) => {
    const store = await committed(await open(t), ...six)
    const before = await Promise.all([3, 4, 5, 6].map((revision) => changedAfter(store, revision)))
    await pruneTo(store, 3)
    const after = await Promise.all([3, 4, 5, 6].map((revision) => changedAfter(store, revision)))
    assert.deepEqual(after, before)
    assert.equal(await store.revisionAt(minute(3)), undefined)
    assert.equal(await store.revisionAt(minute(4)), 4)
    assert.equal(await store.revisionAt(minute(9)), 6)
  })

  test('commits go on with the next number and the next hash, also when nothing is left of the log', async (t) => {
    const unpruned = await committed(await open(t), ...six, ...six)
    const expected = await hashesOf(unpruned)
    for (const revision of [1, 3, 6]) {
      const store = await committed(await open(t), ...six)
      await pruneTo(store, revision)
      assert.equal((await store.head()).revision, 6)
      assert.deepEqual(await store.commit(5, revisionOf(put('late'))), { ok: false, head: 6 })
      await committed(store, ...six)
      assert.equal((await store.head()).revision, 12)
      assert.deepEqual(await hashesOf(store), expected.slice(revision))
    }
  })

  test('more can be given up later', async (t) => {
    const store = await committed(await open(t), ...six)
    await pruneTo(store, 2)
    const anchor = await pruneTo(store, 5)
    assert.deepEqual({ ...(await store.anchor()) }, anchor)
    assert.deepEqual(numbers(await store.history(ALL)), [6])
  })

  test('a revision of thousands of changes is given up whole', async (t) => {
    const many = Array.from({ length: 4100 }, (_, i) => put(`n${i}`))
    const store = await committed(await open(t), revisionOf(...many), revisionOf(put('n0', { n: 2 })))
    await pruneTo(store, 1)
    assert.deepEqual(numbers(await logOf(store, 0)), [2])
    assert.deepEqual(await changedAfter(store, 1), { 'things/n0': { ...stored({ id: 'n0' }), revision: 1 } })
    assert.deepEqual(await store.history({ ...ALL, documents: [{ type: 'things', id: 'n1' }] }), [])
    assert.equal(Object.keys(await documentsOf(store)).length, many.length)
  })

  test('answers stay', async (t) => {
    const remember = { key: 'k', fingerprint: 'f', time: minute(0), answer: '{}' }
    const store = await committed(await open(t), { ...revisionOf(put('a')), remember })
    await pruneTo(store, 1)
    assert.deepEqual({ ...(await store.recall('k', minute(1))) }, remember)
  })
}

function answerPromises(open: OpenStore): void {
  const remembered: Remembered = {
    key: 'key-1',
    fingerprint: 'PUT /things/a ü',
    time: minute(0),
    answer: '{"revision":1,"text":"Größe"}',
  }
  const DAY = 24 * 60
  const recall = async (store: Store, key: string, now: string) => {
    const known = await store.recall(key, now)
    return known && { ...known }
  }

  test('one is kept with the revision that it belongs to', async (t) => {
    const store = await open(t)
    assert.equal(await recall(store, 'key-1', minute(0)), undefined)
    await committed(store, { ...revisionOf(put('a')), remember: remembered })
    assert.deepEqual(await recall(store, 'key-1', minute(0)), remembered)
    assert.equal(await recall(store, 'KEY-1', minute(0)), undefined)
    assert.equal(await recall(store, 'key', minute(0)), undefined)
  })

  test('none is kept when the commit is refused', async (t) => {
    const store = await committed(await open(t), revisionOf(put('a')))
    const late = { ...revisionOf(put('a', { n: 2 })), remember: remembered }
    assert.deepEqual(await store.commit(0, late), { ok: false, head: 1 })
    assert.equal(await recall(store, 'key-1', minute(0)), undefined)
  })

  test('a refused commit leaves the answer that is there', async (t) => {
    const store = await committed(await open(t), { ...revisionOf(put('a')), remember: remembered })
    const late = { ...revisionOf(put('a')), remember: { ...remembered, answer: 'another' } }
    assert.ok(!(await store.commit(0, late)).ok)
    assert.deepEqual(await recall(store, 'key-1', minute(0)), remembered)
  })

  test('one is kept for a write that changed nothing, without a revision', async (t) => {
    const store = await open(t)
    await store.remember(remembered)
    assert.deepEqual(await recall(store, 'key-1', minute(0)), remembered)
    assert.equal((await store.head()).revision, 0)
    assert.deepEqual(await store.history(ALL), [])
  })

  test('one is kept for a day, and no longer', async (t) => {
    const store = await committed(await open(t), { ...revisionOf(put('a')), remember: remembered })
    assert.deepEqual(await recall(store, 'key-1', minute(DAY - 1)), remembered)
    assert.deepEqual(await recall(store, 'key-1', minute(DAY)), remembered)
    assert.equal(await recall(store, 'key-1', '2026-02-01T12:00:00.001Z'), undefined)
    assert.equal(await recall(store, 'key-1', minute(DAY * 30)), undefined)
  })

  test('after a day its key can be used again', async (t) => {
    const store = await open(t)
    await store.remember(remembered)
    const next = { ...remembered, fingerprint: 'another', time: minute(DAY + 1), answer: 'another' }
    await committed(store, { ...revisionOf(put('a')), remember: next })
    assert.deepEqual(await recall(store, 'key-1', minute(DAY + 1)), next)
    assert.deepEqual(await recall(store, 'key-1', minute(2 * DAY + 1)), next)
    assert.equal(await recall(store, 'key-1', minute(2 * DAY + 2)), undefined)
  })

  test('those of the last day outlive the forgetting of older ones', async (t) => {
    const store = await open(t)
    const at = (key: string, time: string) => ({ ...remembered, key, time })
    await store.remember(at('old', minute(0)))
    await store.remember(at('young', minute(10)))
    await store.remember(at('new', minute(DAY + 10)))
    assert.equal(await recall(store, 'old', minute(DAY + 10)), undefined)
    assert.deepEqual(await recall(store, 'young', minute(DAY + 10)), at('young', minute(10)))
    assert.deepEqual(await recall(store, 'new', minute(DAY + 10)), at('new', minute(DAY + 10)))
  })
}

function usePromises(open: OpenStore): void {
  const use = (id: string, time: string, address: string | null = '10.0.0.1') => ({ id, time, address })
  /** In the order of their ids: a store may answer in any. */
  const usesOf = async (store: Store, ...ids: string[]) =>
    (await store.usesOf(ids)).map((found) => ({ ...found })).sort((a, b) => (a.id < b.id ? -1 : 1))

  test('of those that were never used are left out', async (t) => {
    const store = await open(t)
    assert.deepEqual(await usesOf(store, 'a', 'b'), [])
    await store.recordUses([use('a', minute(1))])
    assert.deepEqual(await usesOf(store, 'a', 'b'), [use('a', minute(1))])
    assert.deepEqual(await usesOf(store, 'b'), [])
    assert.deepEqual(await usesOf(store), [])
  })

  test('are those that were recorded last, with the address or without', async (t) => {
    const store = await open(t)
    await store.recordUses([use('a', minute(1)), use('b', minute(1), null)])
    await store.recordUses([use('a', minute(2), null), use('b', minute(3), '2001:db8::1')])
    const newest = [use('a', minute(2), null), use('b', minute(3), '2001:db8::1')]
    assert.deepEqual(await usesOf(store, 'a', 'b'), newest)
  })

  test('are not taken back by older ones, also within one recording', async (t) => {
    const store = await open(t)
    await store.recordUses([use('a', minute(5)), use('a', minute(3), 'older'), use('b', minute(5))])
    await store.recordUses([use('a', minute(4), 'older'), use('b', minute(6), 'newer')])
    assert.deepEqual(await usesOf(store, 'a', 'b'), [use('a', minute(5)), use('b', minute(6), 'newer')])
  })

  test('of the same minute are the ones that came last', async (t) => {
    const store = await open(t)
    await store.recordUses([use('a', minute(1), 'first')])
    await store.recordUses([use('a', minute(1), 'second')])
    assert.deepEqual(await usesOf(store, 'a'), [use('a', minute(1), 'second')])
  })

  test('of none, and of thousands at once, are recorded', async (t) => {
    const store = await open(t)
    await store.recordUses([])
    const many = Array.from({ length: 1203 }, (_, i) => use(`t${i}`, minute(i)))
    await store.recordUses(many)
    const found = await store.usesOf([...many.map(({ id }) => id), 'another'])
    assert.equal(found.length, many.length)
    const byId = new Map(found.map((each) => [each.id, { ...each }]))
    for (const each of many) assert.deepEqual(byId.get(each.id), each)
  })

  test('are kept under any id, and found by exactly that', async (t) => {
    const store = await open(t)
    const ids = ['__proto__', 'constructor', '', 'ü 漢字', `it's "quoted"`, '%', '["a"]', 'x'.repeat(5000)]
    await store.recordUses(ids.map((id, i) => use(id, minute(i))))
    for (const [i, id] of ids.entries()) assert.deepEqual(await usesOf(store, id), [use(id, minute(i))])
    assert.deepEqual(await usesOf(store, '%%', 'Constructor', 'a', 'toString'), [])
  })

  test('make no revision, leave the log and the documents alone, and stay when the log is given up', async (t) => {
    const store = await committed(await open(t), revisionOf(put('a')), revisionOf(put('a', { n: 2 })))
    const before = [await store.head(), await store.history(ALL), await logOf(store, 0), await loadAll(store)]
    await store.recordUses([use('a', minute(9))])
    const after = [await store.head(), await store.history(ALL), await logOf(store, 0), await loadAll(store)]
    assert.deepEqual(after, before)
    assert.equal((await store.commit(2, revisionOf(put('a', { n: 3 })))).ok, true, 'the base is the same')
    await pruneTo(store, 2)
    assert.deepEqual(await usesOf(store, 'a'), [use('a', minute(9))])
  })
}

function movePromises(open: OpenStore): void {
  const first = revisionOf(put('a'), put('b'), other(put('a')))
  const log = [
    first,
    revisionOf(),
    revisionOf(put('a', { n: 2 }), remove('b')),
    revisionOf(put('b'), remove('a')),
  ]

  async function sealed(store: Store): Promise<NewRevision[]> {
    const hashes = await hashesOf(store)
    return log.map((revision, i) => ({ ...revision, hash: hashes[i] as string }))
  }

  test('revisions that are committed together leave what they leave one by one', async (t) => {
    const one = await committed(await open(t), ...log)
    const all = await open(t)
    assert.deepEqual(await all.commit(0, ...log), { ok: true, hash: (await one.head()).hash })
    for (const read of [
      logOf,
      (store: Store) => store.history(ALL),
      loadAll,
      documentsOf,
      (store: Store) => store.head(),
    ])
      assert.deepEqual(await read(all, 0), await read(one, 0))
    assert.equal((await verifyLog(all)).verified, true)
  })

  test('a log that comes to its hashes is taken, in parts too', async (t) => {
    const source = await committed(await open(t), ...log)
    const revisions = await sealed(source)
    const target = await open(t)
    assert.equal((await target.commit(0, ...revisions.slice(0, 3))).ok, true)
    assert.equal((await target.commit(3, ...revisions.slice(3))).ok, true)
    assert.deepEqual(await target.head(), await source.head())
  })

  test('a revision that does not come to its hash is refused, with all that came with it', async (t) => {
    const source = await committed(await open(t), ...log)
    const revisions = await sealed(source)
    const target = await open(t)
    for (const [i, revision] of revisions.entries()) {
      const wrong = [
        { ...revision, actor: 'another' },
        { ...revision, changes: [...revision.changes, put('z')] },
      ]
      for (const tampered of wrong) {
        await assert.rejects(
          target.commit(0, ...revisions.toSpliced(i, 1, tampered)),
          /does not come to its hash/,
        )
        assert.deepEqual(await target.head(), { revision: 0, hash: '' })
        assert.deepEqual(await documentsOf(target), {})
      }
    }
    await target.commit(0, revisionOf(put('other')))
    const late = revisions.slice(1)
    await assert.rejects(target.commit(1, ...late), /does not come to its hash/)
  })

  test('of many revisions on a base that is past, none is written', async (t) => {
    const store = await committed(await open(t), revisionOf(put('x')))
    assert.deepEqual(await store.commit(0, ...log), { ok: false, head: 1 })
    assert.deepEqual(Object.keys(await documentsOf(store)), ['things/x'])
  })

  test('hashes are known of revisions in the log and of its very beginning', async (t) => {
    const store = await committed(await open(t), ...log)
    const hashes = await hashesOf(store)
    assert.equal(await store.hashOf(0), '')
    for (const [i, hash] of hashes.entries()) assert.equal(await store.hashOf(i + 1), hash)
    assert.equal(await store.hashOf(5), undefined)
    await pruneTo(store, 2)
    assert.equal(await store.hashOf(1), undefined)
    assert.equal(await store.hashOf(2), hashes[1])
    assert.deepEqual(await store.head(), { revision: 4, hash: hashes[3] })
    await pruneTo(store, 4)
    assert.deepEqual(await store.head(), { revision: 4, hash: hashes[3] })
  })

  test('a planted store goes on where the other log begins', async (t) => {
    const source = await committed(await open(t), ...log.slice(0, 3))
    const anchor = await pruneTo(source, 3)
    const planted = await open(t)
    await planted.initFromSnapshot(anchor, await listed(source.documents()))
    assert.deepEqual(await planted.head(), await source.head())
    assert.deepEqual({ ...(await planted.anchor()) }, anchor)
    assert.deepEqual(await loadAll(planted), await loadAll(source))
    for (const store of [source, planted])
      assert.equal((await store.commit(3, log[3] as NewRevision)).ok, true)
    assert.deepEqual(await planted.head(), await source.head())
    assert.deepEqual(await logOf(planted, 0), await logOf(source, 0))
  })

  test('only an empty store can be planted', async (t) => {
    const store = await committed(await open(t), revisionOf(put('a')))
    const before = await documentsOf(store)
    const anchor = { revision: 9, time: minute(0), hash: 'h', state: 's' }
    const document = { type: 'things', id: 'z', revision: 3, deleted: false, json: '{"id":"z"}' }
    await assert.rejects(store.initFromSnapshot(anchor, [document]), StoreError)
    assert.deepEqual(await documentsOf(store), before)
    assert.equal(await store.anchor(), undefined)
  })

  test('all answers that are still remembered can be listed', async (t) => {
    const store = await open(t)
    const answer = (key: string, time: string) => ({
      key,
      fingerprint: 'f',
      time,
      answer: `answer of ${key}`,
    })
    const answers = Array.from({ length: 45 }, (_, i) =>
      answer(`key-${String(i).padStart(2, '0')}`, minute(i)),
    )
    for (const item of answers) await store.remember(item)
    const known = async (now: string) =>
      (await listed(store.answers(now))).sort((a, b) => (a.key < b.key ? -1 : 1))
    assert.deepEqual(await known(minute(45)), answers)
    assert.deepEqual(await known(minute(24 * 60 + 40)), answers.slice(40))
  })
}

function leasePromises(open: OpenStore): void {
  const HOUR = 3_600_000

  test('one holder has a lease, and keeps it by asking again', async (t) => {
    const store = await open(t)
    const lease = await store.acquire('work', 'one', HOUR)
    assert.deepEqual(lease, { name: 'work', holder: 'one', term: 1 })
    assert.deepEqual(await store.acquire('work', 'two', HOUR), lease)
    assert.deepEqual(await store.acquire('work', 'one', HOUR), lease)
    assert.equal((await store.acquire('other work', 'two', HOUR)).holder, 'two')
  })

  test('of many that ask at once, one gets it', async (t) => {
    const store = await open(t)
    const asked = Array.from({ length: 20 }, (_, i) => store.acquire('work', `holder-${i}`, HOUR))
    const leases = await Promise.all(asked)
    assert.equal(new Set(leases.map(({ holder }) => holder)).size, 1)
    assert.equal(new Set(leases.map(({ term }) => term)).size, 1)
  })

  test('a lease that is over or given back goes to the next, with a higher term', async (t) => {
    const store = await open(t)
    const first = await store.acquire('work', 'one', 1)
    await sleep(20)
    const second = await store.acquire('work', 'two', HOUR)
    assert.deepEqual(second, { name: 'work', holder: 'two', term: first.term + 1 })
    await store.release(first)
    assert.equal(
      (await store.acquire('work', 'one', HOUR)).holder,
      'two',
      'it was not the first one’s to give',
    )
    await store.release(second)
    const third = await store.acquire('work', 'one', HOUR)
    assert.deepEqual(third, { name: 'work', holder: 'one', term: second.term + 1 })
  })

  test('what was begun under a lease that another one has now is not committed', async (t) => {
    const store = await open(t)
    const old = await store.acquire('work', 'one', 1)
    assert.equal((await store.commit(0, { ...revisionOf(put('a')), lease: old })).ok, true)
    await sleep(20)
    assert.equal(
      (await store.commit(1, { ...revisionOf(put('b')), lease: old })).ok,
      true,
      'nobody took it yet',
    )
    const taken = await store.acquire('work', 'two', HOUR)
    const refused = await store.commit(2, { ...revisionOf(put('c')), lease: old })
    assert.deepEqual(refused, { ok: false, head: 2, isFenced: true })
    assert.deepEqual(Object.keys(await documentsOf(store)), ['things/a', 'things/b'])
    assert.equal((await store.commit(2, { ...revisionOf(put('c')), lease: taken })).ok, true)
    const unknown = { name: 'never taken', term: 1 }
    assert.deepEqual(await store.commit(3, { ...revisionOf(put('d')), lease: unknown }), {
      ok: false,
      head: 3,
      isFenced: true,
    })
  })
}

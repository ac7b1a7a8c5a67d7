// The promises of the Store interface as one suite: every store runs it.
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Applied } from '../domain/state.ts'
import type { NewChange, NewRevision, Store } from './store.ts'

/** Opens an empty store; what it needs is cleaned up after the test. */
type OpenStore = (context: TestContext) => Store | Promise<Store>

/** A document of a size and content that only matter to the test. */
export function put(id: string, fields: object = {}, deleted = false): NewChange {
  return { type: 'things', id, after: { json: JSON.stringify({ id, ...fields }), deleted } }
}

export function remove(id: string): NewChange {
  return { type: 'things', id, after: undefined }
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

/** Everything that a store hands over, by type and id. */
export async function loadAll(store: Store): Promise<{ revision: number; documents: object }> {
  const documents: Record<string, { revision: number; after: Applied['after'] }> = {}
  const revision = await store.load((made, { type, id, after }) => {
    assert.ok(!(`${type}/${id}` in documents), `${type}/${id} is handed over once`)
    documents[`${type}/${id}`] = { revision: made, after }
  })
  return { revision, documents }
}

function stored<T extends { id: string }>(fields: T, deleted = false) {
  return { document: fields, deleted, size: JSON.stringify(fields).length }
}

async function committed(store: Store, ...revisions: NewRevision[]): Promise<Store> {
  let base = await store.head()
  for (const revision of revisions) assert.deepEqual(await store.commit(base++, revision), { ok: true })
  return store
}

async function revisionsSince(store: Store, revision: number) {
  const found: { revision: number; changes: readonly Applied[] }[] = []
  for await (const next of store.changesSince(revision)) found.push(next)
  return found
}

const ALL = { limit: 1000, changeLimit: 1000 }

export function storeContract(name: string, open: OpenStore): void {
  describe(`the ${name} store`, () => {
    describe('documents', () => documentPromises(open))
    describe('compare-and-swap', () => swapPromises(open))
    describe('following', () => followPromises(open))
    describe('history', () => historyPromises(open))
  })
}

function documentPromises(open: OpenStore): void {
  test('an empty store is at revision 0 and holds nothing', async (t) => {
    const store = await open(t)
    assert.equal(await store.head(), 0)
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
    assert.equal(await store.head(), 2)
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
}

function swapPromises(open: OpenStore): void {
  test('of two commits on one base, the second is refused and leaves nothing behind', async (t) => {
    const store = await committed(await open(t), revisionOf(put('a', { n: 1 })))
    assert.deepEqual(await store.commit(1, revisionOf(put('a', { n: 2 }))), { ok: true })
    const late = revisionOf(put('a', { n: 3 }), put('new'))
    assert.deepEqual(await store.commit(1, late), { ok: false, head: 2 })
    assert.equal(await store.head(), 2)
    const { revision, documents } = await loadAll(store)
    assert.equal(revision, 2)
    assert.deepEqual(documents, {
      'things/a': { revision: 2, after: stored({ id: 'a', n: 2 }) },
    })
    assert.equal((await store.history(ALL)).length, 2)
    assert.equal((await revisionsSince(store, 0)).length, 2)
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
    assert.deepEqual(await store.commit(refused.head, revisionOf(put('b'))), { ok: true })
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
  const numbers = (found: readonly { revision: number }[]) => found.map(({ revision }) => revision)

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

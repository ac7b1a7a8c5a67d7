// The promises of the Log interface as one suite.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { verifyLog } from '../transfer/verify-log.ts'
import {
  ALL,
  changedAfter,
  committed,
  documentsOf,
  hashesOf,
  loadAll,
  logOf,
  minute,
  type OpenStore,
  other,
  pruneTo,
  put,
  remove,
  revisionOf,
  revisionsSince,
  stored,
} from './fixtures-for-contract.ts'
import type { LoggedChange, NewRevision, Store } from './store.ts'

export function logContract(open: OpenStore): void {
  describe('documents', () => documentPromises(open))
  describe('compare-and-swap', () => swapPromises(open))
  describe('following', () => followPromises(open))
  describe('hashes', () => hashPromises(open))
  describe('moving a log from store to store', () => movePromises(open))
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

  test('a refused commit and an idempotency record leave no trace in them', async (t) => {
    const store = await open(t)
    for (const [i, revision] of base.entries()) {
      assert.ok(!(await store.commit(i + 5, revisionOf(put('late')))).ok)
      const idempotency = { key: `k${i}`, fingerprint: 'f', time: minute(i), answer: '{}' }
      await committed(store, { ...revision, idempotency })
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
}

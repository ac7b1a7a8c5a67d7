// The promises of the LogMaintenance interface as one suite.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  ALL,
  changedAfter,
  committed,
  documentsOf,
  hashesOf,
  listed,
  loadAll,
  logOf,
  minute,
  numbers,
  type OpenStore,
  other,
  pruneTo,
  put,
  remove,
  revisionOf,
  revisionsSince,
  stored,
} from './fixtures-for-contract.ts'
import { type NewRevision, StoreError } from './store.ts'

export function logMaintenanceContract(open: OpenStore): void {
  describe('pruning the log', () => prunePromises(open))
  describe('beginning with a snapshot of another log', () => snapshotPromises(open))
  describe('the marker of an import', () => importPromises(open))
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
}

function snapshotPromises(open: OpenStore): void {
  const log = [
    revisionOf(put('a'), put('b'), other(put('a'))),
    revisionOf(),
    revisionOf(put('a', { n: 2 }), remove('b')),
    revisionOf(put('b'), remove('a')),
  ]

  test('the store goes on where the other log begins', async (t) => {
    const source = await committed(await open(t), ...log.slice(0, 3))
    const anchor = await pruneTo(source, 3)
    const initialised = await open(t)
    await initialised.initFromSnapshot(anchor, await listed(source.documents()))
    assert.deepEqual(await initialised.head(), await source.head())
    assert.deepEqual({ ...(await initialised.anchor()) }, anchor)
    assert.deepEqual(await loadAll(initialised), await loadAll(source))
    for (const store of [source, initialised])
      assert.equal((await store.commit(3, log[3] as NewRevision)).ok, true)
    assert.deepEqual(await initialised.head(), await source.head())
    assert.deepEqual(await logOf(initialised, 0), await logOf(source, 0))
  })

  test('only an empty store takes one', async (t) => {
    const store = await committed(await open(t), revisionOf(put('a')))
    const before = await documentsOf(store)
    const anchor = { revision: 9, time: minute(0), hash: 'h', state: 's' }
    const document = { type: 'things', id: 'z', revision: 3, deleted: false, json: '{"id":"z"}' }
    await assert.rejects(store.initFromSnapshot(anchor, [document]), StoreError)
    assert.deepEqual(await documentsOf(store), before)
    assert.equal(await store.anchor(), undefined)
  })
}

function importPromises(open: OpenStore): void {
  test('stands beside the head from the first revision on, until it is removed', async (t) => {
    const store = await open(t)
    await store.setImportInProgress(true)
    assert.deepEqual(
      await store.head(),
      { revision: 0, hash: '' },
      'an empty store holds no part of anything',
    )
    await committed(store, revisionOf(put('a')))
    assert.equal((await store.head()).importInProgress, true)
    await store.setImportInProgress(true)
    await committed(store, revisionOf(put('b')))
    assert.equal((await store.head()).importInProgress, true, 'setting it twice is setting it')
    await store.setImportInProgress(false)
    assert.equal((await store.head()).importInProgress, undefined)
    await store.setImportInProgress(false)
    assert.deepEqual(await store.head(), { revision: 2, hash: await store.hashOf(2) })
  })

  test('can be set again, and is no lease', async (t) => {
    const store = await committed(await open(t), revisionOf(put('a')))
    await store.setImportInProgress(true)
    await store.setImportInProgress(false)
    await store.setImportInProgress(true)
    assert.equal((await store.head()).importInProgress, true)
    assert.equal((await store.leases.acquire('work', 'one', 60_000)).term, 1)
    assert.equal((await store.head()).importInProgress, true)
  })
}

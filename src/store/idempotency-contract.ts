// The promises of the IdempotencyRecords interface as one suite.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ALL,
  committed,
  listed,
  minute,
  type OpenStore,
  pruneTo,
  put,
  revisionOf,
} from './fixtures-for-contract.ts'
import type { IdempotencyRecord } from './idempotency.ts'
import type { Store } from './store.ts'

export function idempotencyContract(open: OpenStore): void {
  const record: IdempotencyRecord = {
    key: 'key-1',
    fingerprint: 'PUT /things/a ü',
    time: minute(0),
    answer: '{"revision":1,"text":"Größe"}',
  }
  const DAY = 24 * 60
  const find = async (store: Store, key: string, now: string) => {
    const known = await store.idempotency.find(key, now)
    return known && { ...known }
  }

  test('a record is saved with the revision that it belongs to', async (t) => {
    const store = await open(t)
    assert.equal(await find(store, 'key-1', minute(0)), undefined)
    await committed(store, { ...revisionOf(put('a')), idempotency: record })
    assert.deepEqual(await find(store, 'key-1', minute(0)), record)
    assert.equal(await find(store, 'KEY-1', minute(0)), undefined)
    assert.equal(await find(store, 'key', minute(0)), undefined)
  })

  test('none is saved when the commit is refused', async (t) => {
    const store = await committed(await open(t), revisionOf(put('a')))
    const late = { ...revisionOf(put('a', { n: 2 })), idempotency: record }
    assert.deepEqual(await store.commit(0, late), { ok: false, head: 1 })
    assert.equal(await find(store, 'key-1', minute(0)), undefined)
  })

  test('a refused commit leaves the record that is there', async (t) => {
    const store = await committed(await open(t), { ...revisionOf(put('a')), idempotency: record })
    const late = { ...revisionOf(put('a')), idempotency: { ...record, answer: 'another' } }
    assert.ok(!(await store.commit(0, late)).ok)
    assert.deepEqual(await find(store, 'key-1', minute(0)), record)
  })

  test('a record is saved for a write that changed nothing, without a revision', async (t) => {
    const store = await open(t)
    await store.idempotency.save(record)
    assert.deepEqual(await find(store, 'key-1', minute(0)), record)
    assert.equal((await store.head()).revision, 0)
    assert.deepEqual(await store.history(ALL), [])
  })

  test('a record is valid for a day, and no longer', async (t) => {
    const store = await committed(await open(t), { ...revisionOf(put('a')), idempotency: record })
    assert.deepEqual(await find(store, 'key-1', minute(DAY - 1)), record)
    assert.deepEqual(await find(store, 'key-1', minute(DAY)), record)
    assert.equal(await find(store, 'key-1', '2026-02-01T12:00:00.001Z'), undefined)
    assert.equal(await find(store, 'key-1', minute(DAY * 30)), undefined)
  })

  test('after a day its key can be used again', async (t) => {
    const store = await open(t)
    await store.idempotency.save(record)
    const next = { ...record, fingerprint: 'another', time: minute(DAY + 1), answer: 'another' }
    await committed(store, { ...revisionOf(put('a')), idempotency: next })
    assert.deepEqual(await find(store, 'key-1', minute(DAY + 1)), next)
    assert.deepEqual(await find(store, 'key-1', minute(2 * DAY + 1)), next)
    assert.equal(await find(store, 'key-1', minute(2 * DAY + 2)), undefined)
  })

  test('those of the last day outlive the deletion of expired ones', async (t) => {
    const store = await open(t)
    const at = (key: string, time: string) => ({ ...record, key, time })
    await store.idempotency.save(at('old', minute(0)))
    await store.idempotency.save(at('young', minute(10)))
    await store.idempotency.save(at('new', minute(DAY + 10)))
    assert.equal(await find(store, 'old', minute(DAY + 10)), undefined)
    assert.deepEqual(await find(store, 'young', minute(DAY + 10)), at('young', minute(10)))
    assert.deepEqual(await find(store, 'new', minute(DAY + 10)), at('new', minute(DAY + 10)))
  })

  test('a commit with a key that has a valid record is refused', async (t) => {
    const store = await committed(await open(t), revisionOf(put('a')))
    const remember = { key: 'k', fingerprint: 'f', time: minute(1), answer: 'first' }
    await store.idempotency.save(remember)
    await store.idempotency.save({ ...remember, answer: 'second' })
    const late = { ...revisionOf(put('b')), idempotency: { ...remember, answer: 'third' } }
    assert.deepEqual(await store.commit(1, late), { ok: false, head: 1 })
    assert.equal((await store.idempotency.find('k', minute(2)))?.answer, 'first')
  })

  test('records stay when the log is pruned', async (t) => {
    const record = { key: 'k', fingerprint: 'f', time: minute(0), answer: '{}' }
    const store = await committed(await open(t), { ...revisionOf(put('a')), idempotency: record })
    await pruneTo(store, 1)
    assert.deepEqual({ ...(await store.idempotency.find('k', minute(1))) }, record)
  })

  test('all records that are valid can be listed', async (t) => {
    const store = await open(t)
    const answer = (key: string, time: string) => ({
      key,
      fingerprint: 'f',
      time,
      answer: `answer of ${key}`,
    })
    const records = Array.from({ length: 45 }, (_, i) =>
      answer(`key-${String(i).padStart(2, '0')}`, minute(i)),
    )
    for (const item of records) await store.idempotency.save(item)
    const known = async (now: string) =>
      (await listed(store.idempotency.list(now))).sort((a, b) => (a.key < b.key ? -1 : 1))
    assert.deepEqual(await known(minute(45)), records)
    assert.deepEqual(await known(minute(24 * 60 + 40)), records.slice(40))
  })
}

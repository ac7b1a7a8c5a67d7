// The promises of the Leases interface as one suite.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OpenStore } from './fixtures-for-contract.ts'

export function leasesContract(open: OpenStore): void {
  const HOUR = 3_600_000

  test('one holder has a lease, and keeps it by asking again', async (t) => {
    const store = await open(t)
    const lease = await store.leases.acquire('work', 'one', HOUR)
    assert.deepEqual(lease, { name: 'work', holder: 'one', term: 1 })
    assert.deepEqual(await store.leases.acquire('work', 'two', HOUR), lease)
    assert.deepEqual(await store.leases.acquire('work', 'one', HOUR), lease)
    assert.equal((await store.leases.acquire('other work', 'two', HOUR)).holder, 'two')
  })

  test('of many that ask at once, one gets it', async (t) => {
    const store = await open(t)
    const asked = Array.from({ length: 20 }, (_, i) => store.leases.acquire('work', `holder-${i}`, HOUR))
    const leases = await Promise.all(asked)
    assert.equal(new Set(leases.map(({ holder }) => holder)).size, 1)
    assert.equal(new Set(leases.map(({ term }) => term)).size, 1)
  })

  test('a lease that is over or given back goes to the next, with a higher term', async (t) => {
    const store = await open(t)
    const first = await store.leases.acquire('work', 'one', 1)
    await sleep(20)
    const second = await store.leases.acquire('work', 'two', HOUR)
    assert.deepEqual(second, { name: 'work', holder: 'two', term: first.term + 1 })
    await store.leases.release(first)
    assert.equal(
      (await store.leases.acquire('work', 'one', HOUR)).holder,
      'two',
      'it was not the first one’s to give',
    )
    await store.leases.release(second)
    const third = await store.leases.acquire('work', 'one', HOUR)
    assert.deepEqual(third, { name: 'work', holder: 'one', term: second.term + 1 })
  })
}

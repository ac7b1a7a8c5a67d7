import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as breathe, setTimeout as sleep } from 'node:timers/promises'
import { STORES } from '../../test/every-store.ts'
import { builtInTypes, waitFor } from '../../test/service.ts'
import { openMemoryStore } from '../store/memory.ts'
import { type Lease, type Store, StoreError } from '../store/store.ts'
import { startEngine } from './engine.ts'
import { holdLease } from './hold-lease.ts'

const AUTHOR = { actor: 'test', message: null, request_id: 'r', client_address: null }

/** Work that notes who is at it, until it is told to stop. */
function shift(at: Set<string>, seen: Lease[] = []) {
  return async (lease: Lease, lost: AbortSignal): Promise<void> => {
    seen.push(lease)
    at.add(lease.holder)
    await new Promise((resolve) => lost.addEventListener('abort', resolve, { once: true }))
    at.delete(lease.holder)
  }
}

for (const [name, open] of Object.entries(STORES)) {
  test(`one process does the work, and another one takes over when it stops (${name})`, async (t) => {
    const store = await open(t)
    const at = new Set<string>()
    const seen: Lease[] = []
    const stops = ['one', 'two', 'three'].map((holder) => ({
      holder,
      stop: holdLease(store, { name: 'work', holder, ttlMs: 300 }, shift(at, seen)),
    }))
    for (let left = stops.length; left > 0; left--) {
      await waitFor('somebody is at it', () => at.size > 0)
      assert.equal(at.size, 1)
      const [holder] = at
      await stops.find((each) => each.holder === holder)?.stop()
      assert.ok(!at.has(holder as string))
    }
    assert.deepEqual(
      seen.map(({ term }) => term),
      [1, 2, 3],
    )
    await store.close()
  })
}

for (const [how, ms] of [
  ['is refused by', 0],
  ['gets no answer of', 1000],
] as const) {
  test(`a holder that ${how} the store stops before another one may begin`, (t) => checkStops(t, ms))
}

async function checkStops(t: TestContext, failsAfterMs: number): Promise<void> {
  const memory = openMemoryStore()
  let isTransient = false
  const cutOff: Pick<Store, 'acquire' | 'release'> = {
    acquire: async (...asked) => {
      if (!isTransient) return memory.acquire(...asked)
      if (failsAfterMs > 0) await sleep(failsAfterMs)
      throw new StoreError('away', { isTransient: true })
    },
    release: async () => {
      throw new StoreError('away', { isTransient: true })
    },
  }
  const at = new Set<string>()
  const stopFirst = holdLease(cutOff, { name: 'work', holder: 'first', ttlMs: 300 }, shift(at))
  await waitFor('the first is at it', () => at.has('first'))
  const stopSecond = holdLease(
    memory,
    { name: 'work', holder: 'second', ttlMs: 300 },
    async (lease, lost) => {
      assert.ok(!at.has('first'), 'two are at it')
      await shift(at)(lease, lost)
    },
  )
  isTransient = true
  await waitFor('the second has taken over', () => at.has('second'))
  assert.deepEqual([...at], ['second'])
  t.after(() => Promise.all([stopFirst(), stopSecond()]))
}

test('a holder whose answers come late counts from when it asked', async (t) => {
  const memory = openMemoryStore()
  const ttlMs = 900
  let asked = 0
  const never = Promise.withResolvers<void>()
  const slow: Pick<Store, 'acquire' | 'release'> = {
    ...memory,
    acquire: async (...asking) => {
      if (++asked > 2) await never.promise
      const lease = await memory.acquire(...asking)
      if (asked === 2) await sleep(ttlMs / 2)
      return lease
    },
  }
  const at = new Set<string>()
  const stop = holdLease(slow, { name: 'work', holder: 'first', ttlMs }, shift(at))
  t.after(() => {
    never.resolve()
    return stop()
  })
  await waitFor('the first is at it', () => at.has('first'))
  await waitFor('its lease is over', async () => {
    return (await memory.acquire('work', 'second', ttlMs)).holder === 'second'
  })
  assert.deepEqual([...at], [])
})

test('a holder that stops gives the lease back', async () => {
  const store = openMemoryStore()
  const at = new Set<string>()
  const stop = holdLease(store, { name: 'work', holder: 'first' }, shift(at))
  await waitFor('it is at it', () => at.has('first'))
  await stop()
  assert.equal((await store.acquire('work', 'second', 1000)).holder, 'second')
})

/** Holds a lease of a store that gives these answers, the last one for ever; answers when work began and ended. */
function holdScripted(t: TestContext, ...answers: (() => Promise<Omit<Lease, 'name'>>)[]): string[] {
  const seen: string[] = []
  let asked = 0
  const store: Pick<Store, 'acquire' | 'release'> = {
    acquire: async (name) =>
      ({ name, ...(await answers[Math.min(asked++, answers.length - 1)]?.()) }) as Lease,
    release: async () => {},
  }
  const stop = holdLease(store, { name: 'work', holder: 'me', ttlMs: 60 }, async ({ term }, lost) => {
    seen.push(`begin ${term}`)
    await new Promise((resolve) => lost.addEventListener('abort', resolve, { once: true }))
    await breathe()
    seen.push(`end ${term}`)
  })
  t.after(stop)
  return seen
}

test('work ends when another one has the lease, and begins again with every other term', async (t) => {
  const given = (holder: string, term: number) => async () => ({ holder, term })
  const seen = holdScripted(t, given('me', 1), given('me', 2), given('other', 3), given('me', 4))
  await waitFor('it is at it for the last time', () => seen.includes('begin 4'))
  assert.deepEqual(seen, ['begin 1', 'end 1', 'begin 2', 'end 2', 'begin 4'])
})

test('work that ended while nobody was sure of the lease begins again when it is still there', async (t) => {
  const mine = async () => ({ holder: 'me', term: 1 })
  const late = Promise.withResolvers<void>()
  t.after(() => late.resolve())
  const seen = holdScripted(t, mine, () => late.promise.then(mine), mine)
  await waitFor('it ends', () => seen.includes('end 1'))
  late.resolve()
  await waitFor('it begins again', () => seen.length > 2)
  assert.deepEqual(seen, ['begin 1', 'end 1', 'begin 1'])
})

test('what a holder writes that was paused for too long is refused, and named', async (t) => {
  const store = openMemoryStore()
  const engine = await startEngine({ store, types: builtInTypes(), now: () => new Date() })
  t.after(() => engine.stop())
  const write = (id: string, lease: Lease) =>
    engine.write([{ op: 'create', type: 'namespaces', document: { id }, path: '' }], AUTHOR, { lease })
  const old = await store.acquire('work', 'one', 0)
  assert.ok((await write('a', old)).ok)
  const fresh = await store.acquire('work', 'two', 60_000)
  const refused = await write('b', old)
  assert.ok(!refused.ok && refused.problem.code === 'conflict', JSON.stringify(refused))
  assert.match(refused.problem.message, /the lease "work" has been taken/)
  assert.equal(engine.state.get('namespaces', 'b'), undefined)
  assert.ok((await write('c', fresh)).ok)
})

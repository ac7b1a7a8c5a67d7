import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openMemoryStore } from '../store/memory.ts'
import { type Store, StoreError } from '../store/store.ts'
import { storeContract } from '../store/store-contract.ts'
import { MirrorStore } from './mirror-store.ts'

/** Of a copy that is there already. */
function mirrorStore(): Store {
  const copy = openMemoryStore()
  return new MirrorStore({ copy: () => copy, opened: Promise.resolve() })
}

storeContract('mirror', mirrorStore)

test('it can be returned by an async function, and awaited', async () => {
  const store = await (async () => mirrorStore())()
  assert.equal((await store.head()).revision, 0)
})

test('until there is a copy, every call fails with the reason', async () => {
  const missing = new StoreError('not copied yet', { isTransient: true })
  const copy = (): Store => {
    throw missing
  }
  const store = new MirrorStore({ copy, opened: Promise.resolve() })
  assert.throws(() => store.hashOf(1), missing)
  assert.throws(() => store.notes, missing)
  await assert.rejects(store.head(), missing)
  await store.close()
})

test('the head is that of a copy that is being opened', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let copy: Store | undefined
  const store = new MirrorStore({ copy: () => copy as Store, opened: promise })
  const head = store.head()
  copy = openMemoryStore()
  resolve()
  assert.equal((await head).revision, 0)
})

test('watchers hear of every move of the copy, until they stop', () => {
  const store = new MirrorStore({ copy: openMemoryStore, opened: Promise.resolve() })
  let moves = 0
  const stop = store.watch(() => moves++)
  store.notifyWatchers()
  store.notifyWatchers()
  stop()
  store.notifyWatchers()
  assert.equal(moves, 2)
})

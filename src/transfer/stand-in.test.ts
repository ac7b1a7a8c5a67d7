import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openMemoryStore } from '../store/memory.ts'
import { type Store, StoreError } from '../store/store.ts'
import { storeContract } from '../store/store-contract.ts'
import { standInFor } from './stand-in.ts'

/** Of a store that is there already. */
function standIn(): Store {
  const store = openMemoryStore()
  return standInFor(() => store, {
    head: () => store.head(),
    watch: (moved) => store.watch(moved),
    close: () => store.close(),
  })
}

storeContract('stand-in', standIn)

test('it can be returned by an async function, and awaited', async () => {
  const store = await (async () => standIn())()
  assert.equal((await store.head()).revision, 0)
})

test('until there is a store, what is asked of it fails with the reason', () => {
  const away = new StoreError('not copied yet', { isTransient: true })
  const store = standInFor(
    () => {
      throw away
    },
    { head: async () => assert.fail(), watch: () => () => {}, close: async () => {} },
  )
  assert.throws(() => store.hashOf(1), away)
})

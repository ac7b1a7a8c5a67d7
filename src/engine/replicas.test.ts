import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openMemoryStore } from '../store/memory.ts'
import { StoreError } from '../store/store.ts'
import { followReplicas } from './replicas.ts'

test('processes on one store know each other, with an age, until they stop or were not there for long', async () => {
  const store = openMemoryStore()
  let time = Date.parse('2026-01-01T00:00:00Z')
  const begin = (name: string, revision: number) =>
    followReplicas({
      store,
      state: { revision },
      about: { name, version: '1.0.0', mode: 'crud', store: 'memory' },
      now: () => new Date(time),
      failed: (error) => assert.fail(error),
    })
  const one = begin('one', 7)
  const killed = begin('killed', 5)
  const two = begin('two', 6)
  await Promise.all([killed.list(), two.list()])
  const namesOf = async () =>
    (await one.list()).map(({ name, isSelf }) => (isSelf ? `${name}, itself` : name))
  assert.deepEqual(await namesOf(), ['one, itself', 'killed', 'two'])
  const [, , other] = await one.list()
  assert.deepEqual([other?.revision, other?.seenAt], [6, '2026-01-01T00:00:00.000Z'])
  await two.stop()
  assert.deepEqual(await namesOf(), ['one, itself', 'killed'])
  time += 2 * 3_600_000
  assert.deepEqual(await namesOf(), ['one, itself'])
  for await (const note of store.notes.read('replicas'))
    assert.ok(JSON.parse(note.value ?? '').name === 'one')
  await Promise.all([one.stop(), killed.stop()])
})

test('a store that is away is reported once', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { notes } = openMemoryStore()
  const away = async () => {
    throw new StoreError('the store is away', { isTransient: true })
  }
  let reports = 0
  const replicas = followReplicas({
    store: { notes: { ...notes, record: away, remove: away, read: notes.read.bind(notes) } },
    state: { revision: 1 },
    about: undefined,
    now: () => new Date(),
    failed: () => {
      reports++
    },
  })
  t.mock.timers.tick(120_000)
  await replicas.stop()
  assert.equal(reports, 1)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openMemoryStore } from '../../store/memory.ts'
import type { Notes } from '../../store/notes.ts'
import { StoreError } from '../../store/store.ts'
import { TransitionLog } from './transition-log.ts'

const RETENTION_MS = 86_400_000
const NOW = Date.parse('2026-03-01T12:00:00Z')

function open(record: (write: () => Promise<void>) => Promise<void>) {
  const { notes } = openMemoryStore()
  const store = {
    notes: {
      ...notes,
      record: (...args: Parameters<Notes['record']>) => record(() => notes.record(...args)),
    },
  }
  const log = new TransitionLog(store, RETENTION_MS, () => NOW)
  const add = (n: number): void => {
    const [from, to] = n % 2 === 0 ? ['late', 'current'] : ['current', 'late']
    log.add({ cluster: 'one', time: NOW - 1000 + n, column: 'contact', from, to })
  }
  return { log, add, stored: () => new TransitionLog({ notes }, RETENTION_MS, () => NOW).of('one') }
}

test('a transition that comes while others are written is written by the next flush', async () => {
  const { log, add, stored } = open(async (write) => {
    await write()
    if ((await stored()).length === 1) add(1)
  })
  add(0)
  await log.flush()
  assert.equal((await stored()).length, 1)
  assert.equal((await log.of('one')).length, 2)
  await log.flush()
  assert.deepEqual(
    (await stored()).map(({ to }) => to),
    ['late', 'current'],
  )
})

test('transitions that could not be written are written later, the newest of them', async () => {
  let isAway = true
  let written = 0
  const { log, add, stored } = open(async (write) => {
    if (isAway) throw new StoreError('away', { isTransient: true })
    written++
    await write()
  })
  for (let n = 0; n < 500; n++) add(n)
  await assert.rejects(log.flush(), StoreError)
  isAway = false
  await log.flush()
  const kept = await stored()
  assert.deepEqual([written, kept.length, kept[0]?.time], [1, 40, NOW - 1000 + 499])
})

test('however often delivery changes, it is known when contact did', async () => {
  const { log, add, stored } = open((write) => write())
  add(0)
  for (let n = 1; n < 500; n++) {
    const [from, to] = n % 2 === 0 ? ['behind', 'applied'] : ['applied', 'behind']
    log.add({ cluster: 'one', time: NOW - 1000 + n, column: 'delivery', from, to })
    if (n % 100 === 0) await log.flush()
  }
  await log.flush()
  const kept = await stored()
  assert.equal(kept.length, 21)
  assert.deepEqual(kept.at(-1), { time: NOW - 1000, column: 'contact', from: 'late', to: 'current' })
})

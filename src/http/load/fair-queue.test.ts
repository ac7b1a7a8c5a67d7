import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { FairQueue } from './fair-queue.ts'

const unasked = (): string => assert.fail('nobody needs to know who it is')

test('while there is time, what comes is done at once, and nobody asks who sent it', () => {
  const queue = new FairQueue()
  const done: number[] = []
  for (let i = 0; i < 5; i++) queue.run(unasked, 0.1, () => done.push(i))
  assert.deepEqual(done, [0, 1, 2, 3, 4])
})

test('when the time of a turn is over callers take turns, and one of few requests is not behind a thousand', async () => {
  const queue = new FairQueue()
  const done: string[] = []
  queue.run(unasked, 100, () => done.push('first'))
  for (let i = 0; i < 1000; i++)
    queue.run(
      () => 'many',
      1,
      () => done.push('many'),
    )
  queue.run(
    () => 'few',
    1,
    () => done.push('few'),
  )
  assert.deepEqual(done, ['first'])
  await turn()
  await turn()
  assert.ok(done.indexOf('few') <= 3, done.slice(0, 5).join())
  assert.ok(done.length < 20)
})

test('everything is done in the end, however much there is', async () => {
  const queue = new FairQueue()
  let done = 0
  for (let i = 0; i < 100; i++)
    queue.run(
      () => `${i % 3}`,
      1,
      () => done++,
    )
  for (let i = 0; i < 1000 && done < 100; i++) await turn()
  assert.equal(done, 100)
})

test('a caller whose name cannot be told waits for its turn like any other', async () => {
  const queue = new FairQueue()
  queue.run(unasked, 100, () => {})
  const { promise, resolve } = Promise.withResolvers<void>()
  queue.run(() => assert.fail('broken'), 0, resolve)
  await promise
})

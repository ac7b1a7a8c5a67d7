import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Lane } from './lane.ts'
import type { Sender } from './write-queue.ts'

function sender(caller: string, how: Partial<Sender> = {}): Sender {
  return { caller, isUrgent: false, ...how }
}

/** A lane, and tasks in it that end when told. */
function stage(limits = { total: 3, reserved: 1, perCaller: 2 }) {
  const lane = new Lane(limits)
  const running = new Map<string, () => void>()
  const run = (name: string, from: Sender): Promise<string> =>
    lane.run(from, async () => {
      await new Promise<void>((resolve) => running.set(name, resolve))
      running.delete(name)
      return name
    })
  const end = async (name: string): Promise<void> => {
    running.get(name)?.()
    await turn()
  }
  return { run, end, names: () => [...running.keys()] }
}

test('a caller has so many tasks at once, all callers together a few more, and the rest wait in turn', async () => {
  const { run, end, names } = stage()
  const all = [
    ...['a1', 'a2', 'a3', 'a4'].map((name) => run(name, sender('a'))),
    ...['b1', 'b2'].map((name) => run(name, sender('b'))),
  ]
  await turn()
  assert.deepEqual(names(), ['a1', 'a2', 'b1'])
  await end('a1')
  assert.deepEqual(names(), ['a2', 'b1', 'a3'])
  await end('b1')
  assert.deepEqual(names(), ['a2', 'a3', 'b2'])
  for (const name of ['a2', 'a3', 'b2', 'a4']) await end(name)
  assert.deepEqual(await Promise.all(all), ['a1', 'a2', 'a3', 'a4', 'b1', 'b2'])
})

test('administrators have room when nobody else has', async () => {
  const { run, end, names } = stage()
  const all = [...'abcd'].map((caller) => run(caller, sender(caller)))
  all.push(run('admin', sender('admin', { isUrgent: true })))
  await turn()
  assert.deepEqual(names(), ['a', 'b', 'c', 'admin'])
  for (const name of ['a', 'admin', 'b', 'c', 'd']) await end(name)
  await Promise.all(all)
})

test('a caller that leaves waits no more, and a task that fails leaves its room', async () => {
  const { run, end, names } = stage({ total: 1, reserved: 0, perCaller: 1 })
  const gone = new AbortController()
  const first = run('first', sender('a'))
  const waiting = run('waiting', sender('b', { signal: gone.signal }))
  gone.abort(new Error('gone'))
  await assert.rejects(waiting, /gone/)
  await assert.rejects(run('late', sender('b', { signal: gone.signal })), /gone/)
  await end('first')
  await first
  const lane = new Lane({ total: 1, reserved: 0, perCaller: 1 })
  await assert.rejects(
    lane.run(sender('a'), () => Promise.reject(new Error('broken'))),
    /broken/,
  )
  assert.equal(await lane.run(sender('a'), async () => 'done'), 'done')
  assert.deepEqual(names(), [])
})

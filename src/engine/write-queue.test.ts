import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type Sender, type Turn, WriteQueue } from './write-queue.ts'

function sender(caller: string, how: Partial<Sender> = {}): Sender {
  return { caller, isUrgent: false, ...how }
}

/** A write that ends when told, and notes that it began and how it ended. */
function stage() {
  const queue = new WriteQueue()
  const seen: string[] = []
  const ends = new Map<string, () => void>()
  const write = (name: string, from: Sender, isHeld = false): Promise<string> =>
    queue.run(from, async ({ signal, hold }: Turn) => {
      seen.push(`${name} begins`)
      if (isHeld) hold()
      await new Promise<void>((resolve, reject) => {
        ends.set(name, resolve)
        signal.addEventListener('abort', () => reject(signal.reason))
      })
      seen.push(`${name} ends`)
      return name
    })
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.()
    await turn()
  }
  return { queue, seen, write, end }
}

test('writes run one at a time, and callers take turns however much one of them sends', async () => {
  const { seen, write, end } = stage()
  const all = [
    write('a1', sender('a')),
    write('a2', sender('a')),
    write('a3', sender('a')),
    write('b1', sender('b')),
  ]
  for (const name of ['a1', 'a2', 'b1', 'a3']) await end(name)
  assert.deepEqual(await Promise.all(all), ['a1', 'a2', 'a3', 'b1'])
  assert.deepEqual(
    seen.filter((line) => line.endsWith('begins')),
    ['a1 begins', 'a2 begins', 'b1 begins', 'a3 begins'],
  )
})

test('an urgent write goes before one that has not begun to commit, which then runs again', async () => {
  const { seen, write, end } = stage()
  const all = [write('slow', sender('a')), write('next', sender('b'))]
  await turn()
  all.push(write('urgent', sender('admin', { isUrgent: true })))
  await turn()
  assert.deepEqual(seen, ['slow begins', 'urgent begins'])
  for (const name of ['urgent', 'slow', 'next']) await end(name)
  await Promise.all(all)
  assert.deepEqual(seen.slice(2), ['urgent ends', 'slow begins', 'slow ends', 'next begins', 'next ends'])
})

test('a write that commits is not overtaken, and neither is an urgent one by another', async () => {
  for (const from of [sender('a'), sender('a', { isUrgent: true })]) {
    const { seen, write, end } = stage()
    const all = [write('first', from, !from.isUrgent), write('urgent', sender('admin', { isUrgent: true }))]
    await end('first')
    await end('urgent')
    await Promise.all(all)
    assert.deepEqual(seen, ['first begins', 'first ends', 'urgent begins', 'urgent ends'])
  }
})

test('a caller that leaves takes along what waits and what has not begun to commit', async () => {
  const { queue, seen, write, end } = stage()
  const gone = new AbortController()
  const running = write('running', sender('a', { signal: gone.signal }))
  const waiting = write('waiting', sender('a', { signal: gone.signal }))
  const other = write('other', sender('b'))
  gone.abort(new Error('gone'))
  await assert.rejects(running, /gone/)
  await assert.rejects(waiting, /gone/)
  await assert.rejects(write('late', sender('a', { signal: gone.signal })), /gone/)
  await end('other')
  await other
  assert.deepEqual(seen, ['running begins', 'other begins', 'other ends'])
  await queue.drained()
  assert.equal(queue.size, 0)
})

test('a caller that leaves while its write commits changes nothing', async () => {
  const { write, end } = stage()
  const gone = new AbortController()
  const held = write('held', sender('a', { signal: gone.signal }), true)
  gone.abort(new Error('gone'))
  await end('held')
  assert.equal(await held, 'held')
})

test('a write that fails leaves the next one its turn', async () => {
  const queue = new WriteQueue()
  await assert.rejects(
    queue.run(sender('a'), () => Promise.reject(new Error('broken'))),
    /broken/,
  )
  assert.equal(await queue.run(sender('a'), async () => 'done'), 'done')
})

test('what has been aborted cannot be held any more', async () => {
  const queue = new WriteQueue()
  const gone = new AbortController()
  let isHeld = false
  const written = queue.run(sender('a', { signal: gone.signal }), async ({ hold }) => {
    gone.abort(new Error('gone'))
    hold()
    isHeld = true
  })
  await assert.rejects(written, /gone/)
  assert.equal(isHeld, false)
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { FairQueue } from './fair-queue.ts'
import { paceReads } from './pace-reads.ts'

const LARGE = 64 * 1024

/** What is left of a connection here: where it comes from, how often it was read, and what came, byte for byte. */
async function connectionOf(address: string, turns: FairQueue, seen: (bytes: Buffer) => void = () => {}) {
  const received: Buffer[] = []
  let reads = 0
  const socket = new Readable({ read: () => reads++ })
  paceReads(Object.assign(socket, { remoteAddress: address }) as unknown as Socket, turns)
  socket.on('data', (bytes: Buffer) => {
    received.push(bytes)
    seen(bytes)
  })
  // From here on what comes is handed on at once.
  await new Promise(setImmediate)
  return { socket, received: () => Buffer.concat(received), reads: () => reads }
}

function numbered(length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, i) => i % 251))
}

/** Longer than a turn of the queue. */
function work(): void {
  for (const end = performance.now() + 1; performance.now() < end; );
}

test('what is read at once comes in slices, whole and in order, and the end comes last', async () => {
  const { socket, received } = await connectionOf('192.0.2.1', new FairQueue(), work)
  const sent = numbered(LARGE)
  socket.push(sent)
  socket.push(null)
  await once(socket, 'end')
  assert.ok(received().equals(sent))
})

test('while slices of a connection wait, others are served, and nothing more is read of it', async () => {
  const turns = new FairQueue()
  const order: string[] = []
  const flood = await connectionOf('192.0.2.1', turns, () => {
    order.push('flood')
    work()
  })
  const other = await connectionOf('192.0.2.2', turns, () => order.push('other'))
  const before = flood.reads()
  assert.equal(flood.socket.push(numbered(LARGE)), false, 'the socket is told to stop')
  other.socket.push(Buffer.from('x'))
  while (other.received().length === 0) {
    assert.equal(flood.reads(), before)
    await new Promise(setImmediate)
  }
  assert.ok(order.indexOf('other') <= 2, order.join())
  flood.socket.push(null)
  await once(flood.socket, 'end')
  assert.equal(flood.received().length, LARGE)
})

test('nothing of a connection that was destroyed is handed on', async () => {
  const { socket, received } = await connectionOf('192.0.2.1', new FairQueue(), () => {
    work()
    socket.destroy()
  })
  socket.push(numbered(LARGE))
  await once(socket, 'close')
  await new Promise(setImmediate)
  assert.ok(received().length < LARGE)
})

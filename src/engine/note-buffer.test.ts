import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { openMemoryStore } from '../store/memory.ts'
import type { Note } from '../store/notes.ts'
import { type Store, StoreError } from '../store/store.ts'
import { NoteBuffer } from './note-buffer.ts'

const FLUSH_MS = 1000
const KIND = 'sightings'

function note(key: string, n: number): Note {
  return { key, time: new Date(Date.UTC(2026, 0, 31, 12, n)).toISOString(), value: String(n) }
}

/** A buffer over a store that can be told to fail or to wait; `calls` are the keys of each call that it got. */
function buffering(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const memory = openMemoryStore()
  const current = new Map<string, Note>()
  const problems: string[] = []
  const calls: string[][] = []
  const state: { failure?: Error | undefined; failsFrom?: number; held?: Promise<void> | undefined } = {}
  const record: Store['notes']['record'] = async (kind, notes) => {
    calls.push(notes.map(({ key }) => key))
    await state.held
    if (state.failure && calls.length >= (state.failsFrom ?? 0)) throw state.failure
    return memory.notes.record(kind, notes)
  }
  const buffer = new NoteBuffer({
    store: { notes: { ...memory.notes, record } },
    kind: KIND,
    noteOf: (key) => current.get(key),
    flushMs: FLUSH_MS,
    failed: ({ message }) => problems.push(message),
  })
  return {
    buffer,
    state,
    calls,
    problems,
    current,
    set(key: string, n: number) {
      current.set(key, note(key, n))
      buffer.touch(key)
    },
    async stored(): Promise<Record<string, string | null>> {
      const found: Record<string, string | null> = {}
      for await (const { key, value } of memory.notes.read(KIND)) found[key] = value
      return found
    },
    /** The interval goes by, and what it starts is done. */
    async pass(): Promise<void> {
      t.mock.timers.tick(FLUSH_MS)
      for (let i = 0; i < 50; i++) await turn()
    },
    /** Calls of the store wait until the function that this returns is called. */
    hold(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>()
      state.held = promise
      return () => {
        state.held = undefined
        resolve()
      }
    },
  }
}

test('notes that changed are flushed at every interval, each once and as it is then', async (t) => {
  const { buffer, calls, set, stored, pass } = buffering(t)
  set('a', 1)
  set('b', 1)
  set('a', 2)
  assert.equal(buffer.pending, 2)
  await pass()
  assert.deepEqual(await stored(), { a: '2', b: '1' })
  assert.equal(buffer.pending, 0)
  await pass()
  assert.deepEqual(calls, [['a', 'b']], 'nothing changed, nothing is written')
  set('b', 3)
  await pass()
  assert.deepEqual(calls, [['a', 'b'], ['b']])
})

test('a key without a note any more is not written, and not pending', async (t) => {
  const { buffer, calls, current, set, stored } = buffering(t)
  set('a', 1)
  set('b', 1)
  current.delete('a')
  await buffer.flush()
  assert.deepEqual(await stored(), { b: '1' })
  set('b', 2)
  current.delete('b')
  await buffer.flush()
  assert.equal(buffer.pending, 0)
  assert.equal(calls.length, 1)
})

test('keys stay pending while the store fails, which is reported once until a flush succeeds', async (t) => {
  const { buffer, state, problems, set, stored, pass } = buffering(t)
  state.failure = new StoreError('the disk is full')
  set('a', 1)
  await pass()
  set('b', 1)
  set('a', 2)
  await pass()
  assert.equal(buffer.pending, 2)
  assert.deepEqual(problems, ['the disk is full'])
  state.failure = undefined
  await pass()
  assert.equal(buffer.pending, 0)
  assert.deepEqual(await stored(), { a: '2', b: '1' })
  state.failure = new StoreError('the disk is full again')
  set('a', 3)
  await pass()
  assert.deepEqual(problems, ['the disk is full', 'the disk is full again'])
})

test('a flush without anything to record is not a success', async (t) => {
  const { buffer, state, problems, current, set } = buffering(t)
  state.failure = new StoreError('the disk is full')
  set('a', 1)
  await buffer.flush()
  current.delete('a')
  await buffer.flush()
  set('b', 1)
  await buffer.flush()
  assert.deepEqual(problems, ['the disk is full'])
})

test('what was recorded before a failure is not recorded again', async (t) => {
  const { buffer, state, calls, set, stored } = buffering(t)
  for (let i = 0; i < 2500; i++) set(`k${i}`, 1)
  Object.assign(state, { failure: new StoreError('the disk is full'), failsFrom: 2 })
  await buffer.flush()
  assert.equal(Object.keys(await stored()).length, 1000)
  assert.equal(buffer.pending, 1500)
  state.failure = undefined
  calls.length = 0
  await buffer.flush()
  assert.equal(calls.flat().length, 1500)
  assert.equal(Object.keys(await stored()).length, 2500)
})

test('there is one flush at a time, and the calls during one share the next', async (t) => {
  const { buffer, calls, set, stored, pass, hold } = buffering(t)
  const release = hold()
  set('a', 1)
  const first = buffer.flush()
  set('b', 1)
  const [second, third] = [buffer.flush(), buffer.flush()]
  await pass()
  assert.deepEqual(calls, [['a']])
  assert.equal(buffer.pending, 2)
  release()
  await first
  await Promise.all([second, third])
  assert.deepEqual(calls, [['a'], ['b']])
  assert.deepEqual(await stored(), { a: '1', b: '1' })
})

test('a key that is touched while its note is being recorded is recorded again', async (t) => {
  const { buffer, calls, set, stored, hold } = buffering(t)
  const release = hold()
  set('a', 1)
  set('b', 1)
  const flushing = buffer.flush()
  set('a', 2)
  assert.equal(buffer.pending, 2, 'distinct keys')
  release()
  await flushing
  assert.equal(buffer.pending, 1)
  await buffer.flush()
  assert.deepEqual(calls, [['a', 'b'], ['a']])
  assert.deepEqual(await stored(), { a: '2', b: '1' })
})

test('stopping flushes what is left, also what came during a flush, and ends the interval', async (t) => {
  const { buffer, calls, set, stored, pass, hold } = buffering(t)
  const release = hold()
  set('a', 1)
  t.mock.timers.tick(FLUSH_MS)
  set('b', 1)
  const stopping = buffer.stop()
  release()
  await stopping
  assert.deepEqual(await stored(), { a: '1', b: '1' })
  set('c', 1)
  await pass()
  assert.deepEqual(calls, [['a'], ['b']])
})

test('an error that is not of the store is thrown, and the keys stay pending', async (t) => {
  const { buffer, state, problems, set, stored } = buffering(t)
  state.failure = new TypeError('a bug')
  set('a', 1)
  await assert.rejects(buffer.flush(), TypeError)
  assert.equal(buffer.pending, 1)
  state.failure = undefined
  await buffer.flush()
  assert.deepEqual(await stored(), { a: '1' })
  assert.deepEqual(problems, [])
})

test('a store that has no notes yet is asked again at the next flush', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const memory = openMemoryStore()
  let copy: Store | undefined
  const store = {
    get notes() {
      if (!copy) throw new StoreError('there is no copy yet')
      return copy.notes
    },
  }
  const problems: string[] = []
  const buffer = new NoteBuffer({
    store,
    kind: KIND,
    noteOf: (key) => note(key, 1),
    flushMs: FLUSH_MS,
    failed: ({ message }) => problems.push(message),
  })
  buffer.touch('a')
  await buffer.flush()
  assert.deepEqual(problems, ['there is no copy yet'])
  copy = memory
  await buffer.flush()
  assert.equal(buffer.pending, 0)
  const found = []
  for await (const { key } of memory.notes.read(KIND)) found.push(key)
  assert.deepEqual(found, ['a'])
})

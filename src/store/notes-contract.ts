// The promises of the Notes interface as one suite, for uses of tokens and for any other kind.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  ALL,
  committed,
  listed,
  loadAll,
  logOf,
  minute,
  type OpenStore,
  pruneTo,
  put,
  revisionOf,
} from './fixtures-for-contract.ts'
import { MAX_NOTE_LENGTH, type Note, TOKEN_USES } from './notes.ts'
import type { Store } from './store.ts'

export function notesContract(open: OpenStore): void {
  for (const kind of [TOKEN_USES, 'sightings']) describe(`of ${kind}`, () => kindPromises(open, kind))

  test('of one kind are not those of another', async (t) => {
    const { notes } = await open(t)
    await notes.record(TOKEN_USES, [note('a', minute(1), 'use')])
    await notes.record('sightings', [note('a', minute(2), 'sighting')])
    await notes.record('cursors', [note('b', minute(3), 'cursor')])
    assert.deepEqual(await all(notes, TOKEN_USES), [note('a', minute(1), 'use')])
    assert.deepEqual(await all(notes, 'sightings'), [note('a', minute(2), 'sighting')])
    assert.deepEqual(await all(notes, 'cursors', ['a', 'b']), [note('b', minute(3), 'cursor')])
    assert.deepEqual(await all(notes, 'unknown'), [])
    assert.deepEqual(await all(notes, 'unknown', ['a']), [])
    assert.deepEqual(await since(notes, 'sightings', minute(1)), [note('a', minute(2), 'sighting')])
    assert.deepEqual(await since(notes, 'unknown', minute(1)), [])
    await notes.remove('sightings', ['a', 'b'])
    await notes.remove('unknown', ['a', 'b'])
    assert.deepEqual(await all(notes, TOKEN_USES), [note('a', minute(1), 'use')])
    assert.deepEqual(await all(notes, 'sightings'), [])
    assert.deepEqual(await all(notes, 'cursors'), [note('b', minute(3), 'cursor')])
  })
}

function note(key: string, time: string, value: string | null = '10.0.0.1'): Note {
  return { key, time, value }
}

/** In the order of their keys: a store may return them in any. */
async function inOrder(notes: AsyncIterable<Note>): Promise<Note[]> {
  return (await listed(notes)).sort((a, b) => (a.key < b.key ? -1 : 1))
}

function all(notes: Store['notes'], kind: string, keys?: readonly string[]): Promise<Note[]> {
  return inOrder(notes.read(kind, keys))
}

function since(notes: Store['notes'], kind: string, time: string): Promise<Note[]> {
  return inOrder(notes.readSince(kind, time))
}

function kindPromises(open: OpenStore, kind: string): void {
  const start = async (t: Parameters<OpenStore>[0]) => {
    const store = await open(t)
    return {
      store,
      record: (...notes: readonly Note[]) => store.notes.record(kind, notes),
      read: (...keys: readonly string[]) => all(store.notes, kind, keys),
      readAll: () => all(store.notes, kind),
      readSince: (time: string) => since(store.notes, kind, time),
      remove: (...keys: readonly string[]) => store.notes.remove(kind, keys),
    }
  }

  test('are found by their keys, and keys without one are left out', async (t) => {
    const { record, read, readAll } = await start(t)
    assert.deepEqual(await read('a', 'b'), [])
    assert.deepEqual(await readAll(), [])
    await record(note('a', minute(1)))
    assert.deepEqual(await read('a', 'b'), [note('a', minute(1))])
    assert.deepEqual(await read('a', 'a'), [note('a', minute(1))], 'once')
    assert.deepEqual(await read('b'), [])
    assert.deepEqual(await read(), [])
    assert.deepEqual(await readAll(), [note('a', minute(1))])
  })

  test('are the newest, with a value or without', async (t) => {
    const { record, read } = await start(t)
    await record(note('a', minute(1)), note('b', minute(1), null))
    await record(note('a', minute(2), null), note('b', minute(3), '2001:db8::1'))
    assert.deepEqual(await read('a', 'b'), [note('a', minute(2), null), note('b', minute(3), '2001:db8::1')])
  })

  test('are not replaced by older ones, also within one call', async (t) => {
    const { record, read } = await start(t)
    await record(note('a', minute(5)), note('a', minute(3), 'older'), note('b', minute(5)))
    await record(note('a', minute(4), 'older'), note('b', minute(6), 'newer'))
    assert.deepEqual(await read('a', 'b'), [note('a', minute(5)), note('b', minute(6), 'newer')])
  })

  test('of one time are the ones with the greatest value, whichever came first', async (t) => {
    const { record, read } = await start(t)
    await record(note('a', minute(1), 'x'), note('b', minute(1), 'y'), note('c', minute(1), null))
    await record(note('a', minute(1), 'y'), note('b', minute(1), 'x'), note('c', minute(1), ''))
    await record(note('c', minute(1), null))
    assert.deepEqual(await read('a', 'b', 'c'), [
      note('a', minute(1), 'y'),
      note('b', minute(1), 'y'),
      note('c', minute(1), ''),
    ])
  })

  test('come to the same in whatever order and however often they are recorded', async (t) => {
    const [one, other] = [await start(t), await start(t)]
    const any = fc.record({
      key: fc.constantFrom('a', 'b', 'c'),
      time: fc.constantFrom(minute(1), minute(2)),
      value: fc.constantFrom(null, '', 'x', 'X', 'y', 'ü', '漢字'),
    })
    const batches = fc.array(fc.array(any, { maxLength: 4 }), { maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(fc.uuid(), batches, async (prefix, given) => {
        // Every run has keys of its own: nothing is ever removed.
        const mine = given.map((batch) => batch.map((each) => ({ ...each, key: `${prefix}/${each.key}` })))
        for (const batch of mine) await one.record(...batch)
        for (const batch of mine) await other.record(...batch)
        for (const batch of mine.toReversed()) await other.record(...batch.toReversed())
        const keys = ['a', 'b', 'c'].map((key) => `${prefix}/${key}`)
        assert.deepEqual(await other.read(...keys), await one.read(...keys))
      }),
      { numRuns: 30 },
    )
  })

  test('are recorded and read in any number, each once', async (t) => {
    const { record, read, readAll } = await start(t)
    await record()
    const many = Array.from({ length: 2345 }, (_, i) => note(`k${String(i).padStart(5, '0')}`, minute(i)))
    await record(...many)
    assert.deepEqual(await readAll(), many)
    assert.deepEqual(await read(...many.map(({ key }) => key), 'another'), many)
    const newer = many.map(({ key }) => note(key, minute(9999), null))
    await record(...newer)
    assert.deepEqual(await readAll(), newer)
  })

  test('are found by their time, that one included', async (t) => {
    const { record, readSince } = await start(t)
    assert.deepEqual(await readSince(minute(0)), [])
    const [a, b, c] = [note('a', minute(2)), note('b', minute(1), null), note('c', minute(3))]
    await record(a, b, c)
    assert.deepEqual(await readSince(minute(0)), [a, b, c])
    assert.deepEqual(await readSince(minute(2)), [a, c])
    assert.deepEqual(await readSince('2026-01-31T12:02:00.001Z'), [c])
    assert.deepEqual(await readSince(minute(4)), [])
    const newer = note('b', minute(4))
    await record(newer)
    assert.deepEqual(await readSince(minute(3)), [newer, c])
  })

  test('are found by their time in any number, each once, also many of one time', async (t) => {
    const { record, readSince } = await start(t)
    const many = Array.from({ length: 4321 }, (_, i) => note(`k${String(i).padStart(5, '0')}`, minute(i % 4)))
    await record(...many)
    for (const from of [0, 1, 3, 4])
      assert.deepEqual(
        await readSince(minute(from)),
        many.filter((_, i) => i % 4 >= from),
      )
  })

  test('that are replaced while they are read by their time are not missed', async (t) => {
    const { store, record } = await start(t)
    const many = Array.from({ length: 2500 }, (_, i) => note(`k${i}`, minute(i % 3)))
    await record(...many)
    const found = new Set<string>()
    for await (const { key } of store.notes.readSince(kind, minute(0))) {
      if (found.size === 300) await record(...many.map((each) => note(each.key, minute(9))))
      found.add(key)
    }
    assert.equal(found.size, many.length)
  })

  test('are removed by their keys, and keys without one are ignored', async (t) => {
    const { record, readAll, readSince, remove } = await start(t)
    await remove()
    await remove('a')
    await record(note('a', minute(5)), note('b', minute(5)), note('c', minute(5)))
    await remove('a', 'unknown', 'a', 'c')
    assert.deepEqual(await readAll(), [note('b', minute(5))])
    assert.deepEqual(await readSince(minute(0)), [note('b', minute(5))])
    await record(note('a', minute(1), 'older'))
    assert.deepEqual(await readAll(), [note('a', minute(1), 'older'), note('b', minute(5))], 'it is new')
  })

  test('are removed in any number', async (t) => {
    const { record, readAll, remove } = await start(t)
    const many = Array.from({ length: 2345 }, (_, i) => note(`k${String(i).padStart(5, '0')}`, minute(i)))
    await record(...many)
    await remove(...many.slice(1).map(({ key }) => key))
    assert.deepEqual(await readAll(), many.slice(0, 1))
  })

  test('are removed by some while others record them, and no one waits for ever', async (t) => {
    const { store, record, remove, readAll } = await start(t)
    const keys = Array.from({ length: 3000 }, (_, i) => `k${i}`)
    const notes = keys.map((key, i) => note(key, minute(i)))
    await record(...notes)
    await Promise.all([
      remove(...keys.toReversed()),
      record(...notes.map(({ key }) => note(key, minute(9999)))),
      remove(...keys),
      store.notes.record(kind, notes.toReversed()),
    ])
    await remove(...keys)
    assert.deepEqual(await readAll(), [])
  })

  test('are kept under any key, and found by exactly that', async (t) => {
    const { record, read, readAll, readSince, remove } = await start(t)
    const keys = ['__proto__', 'constructor', '', 'ü 漢字', `it's "quoted"`, '%', '["a"]', 'x'.repeat(5000)]
    await record(...keys.map((key, i) => note(key, minute(i))))
    for (const [i, key] of keys.entries()) assert.deepEqual(await read(key), [note(key, minute(i))])
    assert.deepEqual(await read('%%', 'Constructor', 'a', 'toString'), [])
    assert.deepEqual(
      (await readAll()).map(({ key }) => key),
      keys.toSorted((a, b) => (a < b ? -1 : 1)),
    )
    assert.equal((await readSince(minute(0))).length, keys.length)
    await remove('%%', 'Constructor', 'a', 'toString')
    assert.equal((await readAll()).length, keys.length)
    for (const key of keys) await remove(key)
    assert.deepEqual(await readAll(), [])
  })

  test('have values of a bounded length, and one that is longer keeps all of a call out', async (t) => {
    const { record, readAll } = await start(t)
    const longest = note('a', minute(1), 'ü'.repeat(MAX_NOTE_LENGTH))
    await record(longest)
    const longer = note('c', minute(2), 'x'.repeat(MAX_NOTE_LENGTH + 1))
    await assert.rejects(record(note('b', minute(2)), longer), RangeError)
    assert.deepEqual(await readAll(), [longest])
  })

  test('make no revision, leave the log and the documents alone, and stay when the log is pruned', async (t) => {
    const { store, record, read } = await start(t)
    await committed(store, revisionOf(put('a')), revisionOf(put('a', { n: 2 })))
    const seen = async () => [
      await store.head(),
      await store.history(ALL),
      await logOf(store, 0),
      await loadAll(store),
    ]
    const before = await seen()
    await record(note('a', minute(9)))
    assert.deepEqual(await seen(), before)
    assert.equal((await store.commit(2, revisionOf(put('a', { n: 3 })))).ok, true, 'the base is the same')
    await pruneTo(store, 2)
    assert.deepEqual(await read('a'), [note('a', minute(9))])
  })
}

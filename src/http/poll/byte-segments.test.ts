import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ByteSegments, type Stored } from './byte-segments.ts'

const MINUTE_MS = 60_000

function make(): Stored {
  return { segment: undefined, at: 0, length: 0, isUsed: false }
}

function textOf({ segment, at, length }: Stored): string | undefined {
  return segment?.bytes.toString('latin1', at, at + length)
}

test('whatever is added, dropped and moved, what is there is what was added, and never more than the budget', () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ add: fc.integer({ min: 1, max: 30 }) }) },
    { weight: 2, arbitrary: fc.record({ drop: fc.nat(50) }) },
    { weight: 2, arbitrary: fc.record({ use: fc.nat(50) }) },
    { weight: 1, arbitrary: fc.record({ wait: fc.nat(40) }) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      let now = 0
      const segments = new ByteSegments(100, () => now, 25)
      const all: { readonly stored: Stored; readonly text: string }[] = []
      for (const [i, each] of steps.entries()) {
        if ('add' in each) {
          const text = `${i}-`.padEnd(each.add, '.').slice(0, each.add)
          const stored = make()
          const hasRoom = segments.makeRoom(text.length)
          assert.equal(
            segments.add(stored, Buffer.from(text.slice(0, 3)), Buffer.from(text.slice(3))),
            hasRoom,
          )
          if (hasRoom) all.push({ stored, text })
          else if (all.length === 0) assert.ok(text.length > 25)
        } else if ('wait' in each) now += each.wait * MINUTE_MS
        else {
          const { stored } = all[('drop' in each ? each.drop : each.use) % Math.max(1, all.length)] ?? {}
          if (stored && 'drop' in each) segments.drop(stored)
          else if (stored) stored.isUsed = true
        }
        const live = all.filter(({ stored }) => stored.segment)
        for (const { stored, text } of live) assert.equal(textOf(stored), text)
        const used = live.reduce((sum, { text }) => sum + text.length, 0)
        assert.equal(segments.used, used)
        assert.ok(used <= 100)
      }
    }),
  )
})

test('rounds of more than there is room for find the same ones in each round, until those are no longer asked for', () => {
  let now = 0
  const segments = new ByteSegments(1000, () => now, 100)
  const wanted = Array.from({ length: 300 }, (_, i) => ({ id: i, stored: make() }))
  const poll = (asked: typeof wanted): number[] =>
    asked.flatMap(({ id, stored }) => {
      if (stored.segment) {
        stored.isUsed = true
        return id
      }
      if (segments.makeRoom(10)) segments.add(stored, Buffer.alloc(10))
      return []
    })
  assert.deepEqual(poll(wanted), [])
  for (let round = 0; round < 20; round++) {
    now += 10 * MINUTE_MS
    assert.equal(poll(wanted).length, 100, `round ${round}`)
  }
  const others = wanted.slice(200)
  for (let round = 0; round < 8; round++) {
    now += 10 * MINUTE_MS
    poll(others)
  }
  assert.equal(poll(others).length, 100)
})

test('no budget keeps nothing', () => {
  const segments = new ByteSegments(0, () => 0)
  assert.equal(segments.makeRoom(1), false)
  assert.equal(segments.used, 0)
})

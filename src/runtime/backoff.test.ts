import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { backoff } from './backoff.ts'

function take(delays: { next(): number }, number: number): number[] {
  return Array.from({ length: number }, () => delays.next())
}

test('each delay is twice the one before, up to the cap', () => {
  const delays = backoff({ first: 250, max: 1500, random: () => 1 })
  assert.deepEqual(take(delays, 5), [250, 500, 1000, 1500, 1500])
})

test('after a reset the delays begin anew', () => {
  const delays = backoff({ first: 100, max: 10_000, random: () => 1 })
  take(delays, 4)
  delays.reset()
  assert.deepEqual(take(delays, 2), [100, 200])
})

test('a first delay beyond the cap is cut to it', () => {
  assert.deepEqual(take(backoff({ first: 500, max: 200, random: () => 1 }), 2), [200, 200])
})

test('jitter takes away at most half of a delay', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (random) => {
      const [first = 0, second = 0] = take(backoff({ first: 100, max: 1000, random: () => random }), 2)
      assert.ok(first >= 50 && first <= 100)
      assert.ok(second >= 100 && second <= 200)
    }),
  )
  assert.deepEqual(take(backoff({ first: 100, max: 1000, random: () => 0 }), 2), [50, 100])
})

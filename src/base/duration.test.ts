import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatDuration, parseDuration } from './duration.ts'

test('a duration is written so that reading it gives the same seconds', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 90_000 * 86_400 }), (seconds) => {
      assert.equal(parseDuration(formatDuration(seconds)), seconds)
    }),
  )
  assert.equal(formatDuration(62 * 3600), '2d14h')
  assert.equal(formatDuration(0), '0s')
})

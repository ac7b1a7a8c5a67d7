import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FirstFew } from './first-few.ts'

test('the first few are those that sorting everything would put first, equal ones in the order that they came', () => {
  const items = fc.array(fc.record({ key: fc.nat(20), id: fc.nat() }), { maxLength: 600 })
  fc.assert(
    fc.property(items, fc.nat(300), (all, count) => {
      const compare = (one: { key: number }, other: { key: number }): number => one.key - other.key
      const few = new FirstFew(count, compare)
      for (const item of all) few.add(item)
      assert.deepEqual(few.all(), all.toSorted(compare).slice(0, count))
    }),
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Shares } from './admission.ts'

test('a caller holds no more than its share, and all together no more than there is', () => {
  const shares = new Shares({ perCaller: 3, total: 5 })
  assert.equal(shares.take('a', 2), 'taken')
  assert.equal(shares.take('a', 2), 'caller')
  assert.equal(shares.take('a'), 'taken')
  assert.equal(shares.take('b', 3), 'all')
  assert.equal(shares.take('b', 2), 'taken')
  shares.give('a', 3)
  assert.equal(shares.take('c', 3), 'taken')
  shares.give('c', 3)
  shares.give('b', 2)
  assert.equal(shares.take('b', 3), 'taken')
})

// Rows of the table of polls: what is noted in one is in no other, and a released row is empty.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PollTable } from './poll-table.ts'

const MARK = { a: -5, b: 0x7fffffff, ascii: true }

test('polls of many clusters are kept apart, and a row that is taken again is empty', () => {
  const table = new PollTable(3)
  const slots = Array.from({ length: 2500 }, () => table.take())
  for (const slot of slots) table.findOrMake(slot, 1).note(slot + 1, MARK, slot, `token-${slot}`, 0)
  for (const slot of slots) {
    const { at, revision, by, mark, since } = table.find(slot, 1) ?? assert.fail()
    assert.deepEqual(
      [at, revision, by, mark, since],
      [slot + 1, slot, `token-${slot}`, { a: -5, b: 0x7fffffff }, slot + 1],
    )
    assert.equal(table.find(slot, 0), undefined)
    assert.equal(table.find(slot, 2), undefined)
  }
  table.release(1500)
  assert.equal(table.take(), 1500)
  assert.equal(table.find(1500, 1), undefined)
  assert.equal(table.findOrMake(1500, 1).at, 0)
  assert.equal(table.find(1499, 1)?.at, 1500)
  assert.equal(table.take(), 2500)
})

test('an answer without inputs is another than one with them, and numbers are kept as large as they fit', () => {
  const table = new PollTable(1)
  const poll = table.findOrMake(table.take(), 0)
  assert.equal(poll.note(Date.now(), undefined, 1, '', 0), 'state')
  assert.equal(poll.mark, undefined)
  assert.equal(poll.note(Date.now(), undefined, 2, '', 0), 'time')
  assert.equal(poll.note(Date.now(), { ...MARK, a: 0, b: 0 }, 2, '', 0), 'state')
  assert.deepEqual(poll.mark, { a: 0, b: 0 })
  poll.revision = 2 ** 40
  assert.equal(poll.revision, 2 ** 32 - 1)
})

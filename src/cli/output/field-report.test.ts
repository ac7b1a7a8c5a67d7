import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json } from '../../base/json.ts'
import { describeField } from './field-report.ts'

const paint = (_style: string, text: string): string => text

function told(before: Json, after: Json, width?: number): string[] {
  return describeField({ paint, width }, '', { path: '/list', before, after })
}

test('of a list by id, what came and what left is shown whole and what changed by its fields', () => {
  const before = [{ id: 'gone' }, { id: 'kept', tag: '1', labels: { a: 'x' } }, { id: 'same' }]
  const after = [{ id: 'same' }, { id: 'kept', labels: { a: 'y' } }, { id: 'new', tag: '2' }]
  assert.deepEqual(told(before, after), [
    '/list:',
    '  - {"id":"gone"}',
    '  + {"id":"new","tag":"2"}',
    '/list[kept]/tag: "1" → (none)',
    '/list[kept]/labels/a: "x" → "y"',
  ])
})

test('other lists are shown by what joined and what left, and a mere change of order as such', () => {
  assert.deepEqual(told(['a', 'b'], ['b', 'c']), ['/list:', '  - "a"', '  + "c"'])
  const twice = [
    { id: 'a', n: 1 },
    { id: 'a', n: 2 },
  ]
  assert.deepEqual(told(twice, [{ id: 'a', n: 1 }]), ['/list:', '  - {"id":"a","n":2}'])
  assert.deepEqual(told(['a', 'b'], ['b', 'a']), ['/list: ["a","b"] → ["b","a"]'])
})

test("items that take each other's place differ visibly on a terminal, and are whole elsewhere", () => {
  const long = 'x'.repeat(200)
  const [, gone, come] = told([`${long}A`], [`${long}B`], 80)
  assert.match(String(gone), /^ {2}- …x+A"$/)
  assert.match(String(come), /^ {2}\+ …x+B"$/)
  assert.deepEqual(told([`${long}A`], [`${long}B`]), ['/list:', `  - "${long}A"`, `  + "${long}B"`])
})

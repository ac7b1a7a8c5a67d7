import assert from 'node:assert/strict'
import { test } from 'node:test'
import { excerpt, excerpts } from './json.ts'

test('long values are cut around their first difference, so that two of them never read the same', () => {
  const long = 'x'.repeat(500)
  const pairs = [
    [`${long}A`, `${long}B`],
    [`A${long}`, `B${long}`],
    [`${long}A${long}`, `${long}B${long}`],
    [`${long}AB`, `${long}A`],
    [
      { id: 'a', path: long, tag: '1' },
      { id: 'a', path: long, tag: '2' },
    ],
    [long, null],
    [
      [long, 1],
      [long, 2, 3],
    ],
    [`${long}🚀${long}`, `${long}🚁${long}`],
  ] as const
  for (const [a, b] of pairs) {
    const [one, other] = excerpts(a, b)
    assert.notEqual(one, other)
    for (const text of [one, other]) assert.ok(text.length <= 103 && text.isWellFormed(), text)
  }
  assert.deepEqual(excerpts(`${long}A${long}`, `${long}B`), [
    `…${'x'.repeat(30)}A${'x'.repeat(69)}…`,
    `…${'x'.repeat(30)}B"`,
  ])
})

test('values that fit are told whole, and no character is cut in two', () => {
  assert.deepEqual(excerpts({ a: 1 }, undefined), ['{"a":1}', 'null'])
  const rockets = '🚀'.repeat(80)
  for (const lead of ['', 'x']) {
    assert.ok(excerpt(lead + rockets).isWellFormed())
    assert.ok(excerpts(`${lead}${rockets}1`, `${lead}${rockets}2`).every((text) => text.isWellFormed()))
  }
})

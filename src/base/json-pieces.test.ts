import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { jsonPieces } from './json-pieces.ts'

function joined(value: unknown): string {
  return [...jsonPieces(value)].join('')
}

test('the pieces of any value are together what JSON.stringify makes of it', () => {
  const values = fc.anything({
    values: [fc.string(), fc.double(), fc.boolean(), fc.constant(null), fc.constant(undefined)],
    maxDepth: 4,
    maxKeys: 60,
    size: 'large',
  })
  fc.assert(
    fc.property(values, (value) => {
      const expected = JSON.stringify(value)
      if (expected !== undefined) assert.equal(joined(value), expected)
    }),
  )
})

test('a list of many documents has no piece that is longer than one of them', () => {
  const document = {
    id: 'a',
    labels: { team: 'x' },
    refs: Array.from({ length: 10 }, (_, i) => ({ id: `${i}` })),
  }
  const pieces = [...jsonPieces({ documents: Array(1000).fill(document) })]
  assert.ok(Math.max(...pieces.map(({ length }) => length)) <= JSON.stringify(document).length)
})

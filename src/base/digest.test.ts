import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { digestOf, hexOf, parseHex } from './digest.ts'

test('a digest in hexadecimal has 16 lower-case digits and is parsed to the same halves', () => {
  const half = fc.oneof(fc.integer(), fc.constantFrom(0, 1, -1, 0x7fffffff, -0x80000000))
  fc.assert(
    fc.property(half, half, (a, b) => {
      const hex = hexOf({ a, b })
      assert.match(hex, /^[0-9a-f]{16}$/)
      assert.deepEqual(parseHex(hex), { a, b })
    }),
  )
  assert.equal(hexOf({ a: 0x0123abcd, b: -1 }), '0123abcdffffffff')
})

test('any 16 lower-case hexadecimal digits are the hexadecimal of what they parse to; other text is undefined', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 16, maxLength: 16 }),
      (hex) => {
        const halves = parseHex(hex) ?? assert.fail(hex)
        assert.equal(hexOf({ ...halves }), hex)
      },
    ),
  )
  const hex = hexOf(digestOf('x'))
  for (const text of [
    '',
    hex.slice(1),
    `${hex}0`,
    hex.toUpperCase(),
    `${hex.slice(1)}g`,
    ` ${hex}`,
    `${hex}\n`,
  ])
    assert.equal(parseHex(text), undefined, JSON.stringify(text))
})

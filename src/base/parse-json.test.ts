import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { type Json, MAX_DEPTH } from './json.ts'
import { parseJson } from './parse-json.ts'
import type { Result } from './problem.ts'
import { finish } from './steps.ts'

/** With pieces so small that a short text has many of them. */
function parse(text: string | Uint8Array, piece = 5): Result<Json> {
  return finish(parseJson(typeof text === 'string' ? Buffer.from(text) : text, piece))
}

function native(text: string): Json | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const spaces = fc.array(fc.constantFrom(' ', '\n', '\t'), { maxLength: 2 }).map((all) => all.join(''))

/** Keys that objects take, and numbers that travel whole. */
const values = fc
  .jsonValue({ maxDepth: 4 })
  .map((value) => JSON.parse(JSON.stringify(value).replaceAll('\\\\', '')))

test('any value in pieces of any size is what JSON.parse returns, in the same order', () => {
  fc.assert(
    fc.property(values, spaces, fc.integer({ min: 1, max: 40 }), (value, space, piece) => {
      const text = JSON.stringify(value, null, space)
      const parsed = parse(text, piece)
      const expected = native(text)
      if (!parsed.ok)
        return assert.match(
          parsed.problem.message,
          /reserved key|beyond 2\^53|too large|surrogate|NUL|backslash/,
        )
      assert.deepEqual(parsed.value, expected)
      assert.equal(JSON.stringify(parsed.value), JSON.stringify(expected))
    }),
  )
})

test('what JSON.parse refuses is refused in pieces of any size', () => {
  const damage = fc.record({
    at: fc.nat(),
    text: fc.constantFrom('', ',', '[', ']', '{', '}', '"', ':', '1', '\\', 'x', ' '),
  })
  fc.assert(
    fc.property(values, damage, fc.integer({ min: 1, max: 40 }), (value, { at, text }, piece) => {
      const whole = JSON.stringify(value)
      const place = at % (whole.length + 1)
      const damaged = whole.slice(0, place) + text + whole.slice(place + 1)
      const expected = native(damaged)
      const parsed = parse(damaged, piece)
      if (expected === undefined) assert.equal(parsed.ok, false, damaged)
      else if (parsed.ok) assert.deepEqual(parsed.value, expected)
      else assert.doesNotMatch(parsed.problem.message, /not valid JSON/, damaged)
    }),
    { numRuns: 500 },
  )
})

suite('texts that are hard to part', () => {
  const SAME = [
    '[ ]',
    '[                ]',
    '{         }',
    '""',
    '[[[[[[]]]]]]',
    '"a\\\\"',
    '["a,b","c]d","e\\",f"]',
    '{"a":1,"a":{"b":[1,2,3]},"a":2}',
    '[1 , 2 ,3 ]',
    '  [1,2,3,4,5,6,7]  ',
  ]
  const WRONG = [
    '',
    ' ',
    '[',
    ']',
    '[1,2,3,4,5,]',
    '[,1,2,3,4,5]',
    '[1,2,,3,4,5]',
    '[1,2,3,4,5}',
    '{"a":1,"b":2]',
    '[1,2,3]]',
    '[1,2,3][4,5,6]',
    '{"a" 1111111}',
    '{"aaaaaaaa":}',
    '{1:22222222}',
    '["abcdefgh',
    '[1,2,3,4,5,6 7]',
    '[[1,2,3},{4,5,6]]',
    '{"a":[1,2,3,4,5],}',
    '[1,2,3,4],5',
  ]
  for (const text of SAME)
    test(`${text} is read`, () => assert.deepEqual(parse(text), { ok: true, value: native(text) }))
  for (const text of WRONG) test(`"${text}" is refused`, () => assert.equal(parse(text).ok, false))

  test('bytes that are no UTF-8 are refused wherever they stand, a mark of the byte order only within', () => {
    assert.equal(
      parse(Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x2c, 0x31, 0x2c, 0x32, 0x2c, 0x33, 0x5d])).ok,
      false,
    )
    assert.deepEqual(parse('\ufeff[1,2,3,4,5,6]'), { ok: true, value: [1, 2, 3, 4, 5, 6] })
    assert.equal(parse('[1,2,3,4,\ufeff5,6]').ok, false)
  })
})

test('what no document may hold is named with its place, also in a piece of its own', () => {
  const parsed = parse('{"operations":[{"op":1},{"a":{"__proto__":1}},9007199254740993]}')
  assert.ok(!parsed.ok)
  assert.deepEqual(
    parsed.problem.details?.map(({ path }) => path),
    ['/operations/1/a/__proto__', '/operations/2'],
  )
  assert.equal(parse('{"__proto__":{"polluted":[1,2,3]}}').ok, false)
  assert.equal(({} as { polluted?: unknown }).polluted, undefined)
})

test('more values, more levels and more mistakes than there may be end the reading', () => {
  const many = parse(`[${'1,'.repeat(4_000_000)}1]`, 1000)
  assert.match(many.ok ? '' : many.problem.message, /more than 4000000 values/)
  const deep = parse(`${'['.repeat(MAX_DEPTH + 2)}${']'.repeat(MAX_DEPTH + 2)}`)
  assert.match(deep.ok ? '' : deep.problem.message, /nested deeper than 64 levels/)
  const long = parse(`["${'x'.repeat(4 * 1024 * 1024 + 1)}"]`)
  assert.match(long.ok ? '' : long.problem.message, /a text of more than 4 MiB/)
  const wrong = parse(`[${'1e999,'.repeat(100_000)}1]`, 1000)
  assert.equal(wrong.ok, false)
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import jsonPatch, { type Operation } from 'fast-json-patch'
import { equalJson, isObject, type Json, MAX_DEPTH, measureJson, pointer } from './json.ts'
import { applyJsonPatch, MAX_OPERATIONS } from './json-patch.ts'
import type { Result } from './problem.ts'
import { finish } from './steps.ts'

const MAX_SIZE = 100_000

function patched(document: Json, patch: Json, maxSize = MAX_SIZE): Result<Json> {
  return finish(applyJsonPatch(document, patch, '/patch', maxSize))
}

function assertPatched(document: Json, patch: Json, expected: Json): void {
  assert.deepEqual(patched(document, patch), { ok: true, value: expected })
}

function assertRefused(
  document: Json,
  patch: Json,
  at: string,
  says: RegExp,
  code = 'validation_error',
): void {
  const result = patched(document, patch)
  assert.ok(!result.ok, JSON.stringify(result))
  assert.equal(result.problem.code, code)
  assert.equal(result.problem.details?.[0]?.path, at)
  assert.match(String(result.problem.details?.[0]?.message), says)
}

/** Appendix A, as far as it applies a patch, and what surrounds it. */
const EXAMPLES: Record<string, readonly [document: Json, patch: Json, expected: Json]> = {
  'adds a member': [{ foo: 'bar' }, [{ op: 'add', path: '/baz', value: 'qux' }], { baz: 'qux', foo: 'bar' }],
  'adds over a member': [{ foo: 1 }, [{ op: 'add', path: '/foo', value: [2] }], { foo: [2] }],
  'adds an item': [
    { foo: ['bar', 'baz'] },
    [{ op: 'add', path: '/foo/1', value: 'qux' }],
    { foo: ['bar', 'qux', 'baz'] },
  ],
  'adds an item at the end': [{ foo: [1] }, [{ op: 'add', path: '/foo/1', value: 2 }], { foo: [1, 2] }],
  'adds an item after all': [{ foo: [1] }, [{ op: 'add', path: '/foo/-', value: [2] }], { foo: [1, [2]] }],
  'adds null': [{}, [{ op: 'add', path: '/foo', value: null }], { foo: null }],
  'adds under an empty name': [{}, [{ op: 'add', path: '/', value: 1 }], { '': 1 }],
  'replaces the document': [{ foo: 1 }, [{ op: 'add', path: '', value: { bar: 2 } }], { bar: 2 }],
  'removes a member': [{ baz: 1, foo: 2 }, [{ op: 'remove', path: '/baz' }], { foo: 2 }],
  'removes an item': [{ foo: [1, 2, 3] }, [{ op: 'remove', path: '/foo/1' }], { foo: [1, 3] }],
  'removes the document': [{ foo: 1 }, [{ op: 'remove', path: '' }], null],
  'replaces a value': [{ baz: 1 }, [{ op: 'replace', path: '/baz', value: 'boo' }], { baz: 'boo' }],
  'replaces an item': [[1, 2], [{ op: 'replace', path: '/0', value: 3 }], [3, 2]],
  'moves a value': [
    { foo: { bar: 'baz', waldo: 'fred' }, qux: { corge: 'grault' } },
    [{ op: 'move', from: '/foo/waldo', path: '/qux/thud' }],
    { foo: { bar: 'baz' }, qux: { corge: 'grault', thud: 'fred' } },
  ],
  'moves an item': [
    { foo: ['all', 'grass', 'cows', 'eat'] },
    [{ op: 'move', from: '/foo/1', path: '/foo/3' }],
    { foo: ['all', 'cows', 'eat', 'grass'] },
  ],
  'moves a value to where it is': [{ a: 1 }, [{ op: 'move', from: '/a', path: '/a' }], { a: 1 }],
  'moves a value to the root': [{ a: { b: 1 } }, [{ op: 'move', from: '/a', path: '' }], { b: 1 }],
  'copies a value': [{ a: [1] }, [{ op: 'copy', from: '/a', path: '/b' }], { a: [1], b: [1] }],
  'copies the document into itself': [
    { a: 1 },
    [{ op: 'copy', from: '', path: '/b' }],
    { a: 1, b: { a: 1 } },
  ],
  'keeps a copy apart': [
    { a: [1] },
    [
      { op: 'copy', from: '/a', path: '/b' },
      { op: 'add', path: '/b/-', value: 2 },
    ],
    { a: [1], b: [1, 2] },
  ],
  'goes on where a test holds': [
    { baz: { b: 1, a: [null] } },
    [{ op: 'test', path: '/baz', value: { a: [null], b: 1 } }],
    { baz: { b: 1, a: [null] } },
  ],
  'reads escapes': [
    { '/': 9, '~1': 10 },
    [
      { op: 'test', path: '/~01', value: 10 },
      { op: 'add', path: '/~1', value: 8 },
    ],
    { '/': 8, '~1': 10 },
  ],
  'ignores what it does not know': [{}, [{ op: 'add', path: '/a', value: 1, xyz: 2 }], { a: 1 }],
  'does nothing': [{ a: 1 }, [], { a: 1 }],
}

for (const [name, [document, patch, expected]] of Object.entries(EXAMPLES))
  test(`a JSON patch ${name}`, () => assertPatched(document, patch, expected))

const REFUSED: Record<string, readonly [document: Json, operation: Json, says: RegExp]> = {
  'adds below nothing': [
    { foo: 1 },
    { op: 'add', path: '/baz/bat', value: 1 },
    /nothing can be added at "\/baz\/bat"/,
  ],
  'adds below text': [{ foo: 'x' }, { op: 'add', path: '/foo/0', value: 1 }, /nothing can be added/],
  'adds beyond the end': [[1], { op: 'add', path: '/3', value: 1 }, /index from 0 to 1, or "-"/],
  'adds at no index': [[1], { op: 'add', path: '/x', value: 1 }, /not "x"/],
  'adds at an index with zeros': [[1, 2], { op: 'add', path: '/01', value: 1 }, /not "01"/],
  'adds at an empty index': [[1, 2], { op: 'add', path: '/', value: 1 }, /not ""/],
  'removes nothing': [{ a: 1 }, { op: 'remove', path: '/b' }, /nothing is at "\/b"/],
  'removes what every object has': [{ a: 1 }, { op: 'remove', path: '/toString' }, /nothing is at/],
  'removes beyond the end': [[1], { op: 'remove', path: '/1' }, /nothing is at/],
  'removes after all': [[1], { op: 'remove', path: '/-' }, /nothing is at/],
  'replaces nothing': [{ a: 1 }, { op: 'replace', path: '/b', value: 1 }, /nothing is at/],
  'moves nothing': [{ a: 1 }, { op: 'move', from: '/b', path: '/c' }, /nothing is at "\/b"/],
  'copies nothing': [{ a: 1 }, { op: 'copy', from: '/b', path: '/c' }, /nothing is at "\/b"/],
  'moves a value into itself': [{ a: { b: 1 } }, { op: 'move', from: '/a', path: '/a/b' }, /into itself/],
  'reaches for a prototype': [
    { a: 1 },
    { op: 'add', path: '/__proto__/x', value: 1 },
    /"__proto__" is a reserved key/,
  ],
  'copies a prototype': [
    { a: 1 },
    { op: 'copy', from: '/constructor', path: '/b' },
    /"constructor" is a reserved key/,
  ],
  'has no value': [{ a: 1 }, { op: 'add', path: '/b' }, /RFC 6902/],
  'has no pointer': [{ a: 1 }, { op: 'remove', path: 'a' }, /RFC 6902/],
  'has half an escape': [{ '~2': 1 }, { op: 'remove', path: '/~2' }, /RFC 6902/],
  'has no source': [{ a: 1 }, { op: 'copy', path: '/b' }, /RFC 6902/],
  'is unknown': [{ a: 1 }, { op: '_get', path: '/a' }, /RFC 6902/],
  'is no object': [{ a: 1 }, 'remove', /RFC 6902/],
}

for (const [name, [document, operation, says]] of Object.entries(REFUSED))
  test(`an operation that ${name} is refused by its place`, () => {
    assertRefused(document, [{ op: 'test', path: '', value: document }, operation], '/patch/1', says)
  })

for (const value of [2, [1], { a: 1 }, null, '1'] as const)
  test(`a test for ${JSON.stringify(value)} of another value is a conflict`, () => {
    assertRefused({ a: 1 }, [{ op: 'test', path: '/a', value }], '/patch/0', /another/, 'conflict')
  })

test('a test of what is not there is a conflict', () => {
  assertRefused({}, [{ op: 'test', path: '/a', value: null }], '/patch/0', /another/, 'conflict')
})

test('neither the document nor the patch is edited, so that both can be used again', () => {
  const document = { list: [1] }
  const patch = [
    { op: 'add', path: '/more', value: [] },
    { op: 'add', path: '/more/-', value: { deep: {} } },
    { op: 'add', path: '/more/0/deep/x', value: 1 },
    { op: 'replace', path: '/list', value: [] },
    { op: 'add', path: '/list/-', value: 2 },
  ]
  const before = JSON.stringify([document, patch])
  for (let i = 0; i < 2; i++) assertPatched(document, patch, { list: [2], more: [{ deep: { x: 1 } }] })
  assert.equal(JSON.stringify([document, patch]), before)
})

describe('what a patch may build', () => {
  /** Every copy doubles what is there. */
  const doubling = (count: number): Json =>
    Array.from({ length: count }, (_, i) => ({ op: 'copy', from: '/a', path: `/a/k${i}` }))

  test('copies of copies end at the limit, before they are made', () => {
    const began = performance.now()
    assertRefused({ a: { text: 'x'.repeat(100) } }, doubling(40), '/patch/9', /more than 100000 characters/)
    assert.ok(performance.now() - began < 500)
  })

  for (const op of ['add', 'replace'])
    test(`what is given to ${op} counts`, () => {
      const patch = Array.from({ length: 11 }, () => ({ op, path: '/a', value: 'x'.repeat(9998) }))
      assertRefused({ a: 1 }, patch, '/patch/10', /add, copy and move comes to more than/)
      assertPatched({ a: 1 }, patch.slice(0, 10), { a: 'x'.repeat(9998) })
    })

  test('what is moved counts', () => {
    const patch = Array.from({ length: 11 }, (_, i) => ({
      op: 'move',
      from: i % 2 ? '/b' : '/a',
      path: i % 2 ? '/a' : '/b',
    }))
    assertRefused({ a: 'x'.repeat(9998) }, patch, '/patch/10', /more than/)
  })

  test('a document that is larger than that can be made smaller', () => {
    const document = { a: 'x'.repeat(2 * MAX_SIZE), b: 1 }
    assertPatched(document, [{ op: 'remove', path: '/a' }], { b: 1 })
  })

  for (const op of ['copy', 'move'])
    test(`a ${op} builds nothing deeper than ${MAX_DEPTH} levels`, () => {
      const nested = (levels: number): Json => (levels === 0 ? 1 : { a: nested(levels - 1) })
      const document = { from: nested(MAX_DEPTH / 2), to: nested(MAX_DEPTH / 2) }
      const at = (levels: number): Json => [{ op, from: '/from', path: `/to${'/a'.repeat(levels)}` }]
      const result = patched(document, at(MAX_DEPTH / 2 - 1))
      assert.ok(result.ok)
      assert.equal(measureJson(result.value, MAX_SIZE).depth, MAX_DEPTH)
      assertRefused(document, at(MAX_DEPTH / 2), '/patch/0', /nested deeper than 64 levels/)
    })

  test('a path of a million steps leads nowhere, quickly', () => {
    const began = performance.now()
    for (const op of ['add', 'replace', 'remove', 'test', 'copy', 'move'])
      assert.ok(!patched({}, [{ op, path: '/a'.repeat(1_000_000), from: '', value: 1 }]).ok)
    assert.ok(performance.now() - began < 500)
  })

  test('so many operations fit into a patch, and it rests at each of them', () => {
    const one = { op: 'add', path: '/a', value: 1 }
    const steps = applyJsonPatch({}, Array(MAX_OPERATIONS).fill(one), '', MAX_SIZE)
    let rests = 0
    while (!steps.next().done) rests++
    assert.equal(rests, MAX_OPERATIONS)
    const tooMany = Array(MAX_OPERATIONS + 1).fill(one)
    assertRefused({}, tooMany, '/patch', /has 10001 operations, and a patch takes 10000: send several/)
  })
})

describe('laws', () => {
  const scalar = fc.oneof(
    fc.constantFrom('x', '', 'a/b', '~'),
    fc.integer({ min: 0, max: 3 }),
    fc.constant(null),
  )
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      scalar,
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'b', '', 'a/b', '~1', '0'), tie('value'), { maxKeys: 3 }),
    ),
  })) as { value: fc.Arbitrary<Json> }

  function placesIn(of: Json, at = ''): string[] {
    const below = Array.isArray(of)
      ? of.flatMap((item, i) => placesIn(item, pointer(at, i)))
      : isObject(of)
        ? Object.entries(of).flatMap(([key, item]) => placesIn(item as Json, pointer(at, key)))
        : []
    return [at, ...below]
  }

  test('an ordinary patch does what another implementation of the standard does', () => {
    const shape = fc.record({
      op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test'),
      from: fc.nat(),
      path: fc.nat(),
      under: fc.constantFrom('', '', '', '/a', '/0', '/-', '/new'),
      value,
    })
    let applied = 0
    fc.assert(
      fc.property(value, fc.array(shape, { minLength: 1, maxLength: 4 }), (document, shapes) => {
        let expected = structuredClone(document) as Json
        for (const { op, from, path, under, value } of shapes) {
          const places = placesIn(expected)
          const operation = {
            op,
            from: places[from % places.length] as string,
            path: `${places[path % places.length]}${under}`,
            value:
              op === 'test' && from % 2 ? (at(expected, `${places[path % places.length]}`) as Json) : value,
          }
          const result = patched(expected, [operation])
          if (isTreatedMoreLeniently(operation)) continue
          const other = theirs(expected, operation)
          assert.equal(result.ok, other !== undefined, JSON.stringify([expected, operation, result]))
          if (!result.ok || other === undefined) continue
          assert.ok(
            equalJson(result.value, other),
            JSON.stringify([expected, operation, result.value, other]),
          )
          expected = result.value
          applied++
        }
      }),
      { numRuns: 300 },
    )
    assert.ok(applied > 200, `${applied} operations were applied`)
  })

  test('a measured size is that of the JSON, for texts without escapes', () => {
    const plain = fc
      .json({ stringUnit: fc.constantFrom('a', 'ä', '1', '-') })
      .map((text) => JSON.parse(text) as Json)
    fc.assert(
      fc.property(plain, (of) => {
        assert.equal(measureJson(of, Number.POSITIVE_INFINITY).size, JSON.stringify(of).length)
      }),
    )
  })

  /** The other one takes a move into itself, and of lists "-" and "" in the middle of a path. */
  function isTreatedMoreLeniently({ path, from }: { readonly path: string; readonly from: string }): boolean {
    const keys = [path, from].flatMap((each) => each.split('/').slice(1))
    return keys.some((key) => key === '' || key === '-') || path.startsWith(`${from}/`)
  }

  function at(document: Json, path: string): unknown {
    return jsonPatch.getValueByPointer(document, path)
  }

  /** The standard says of a move that it is a removal followed by an addition; the other one checks its path before. */
  function theirs(
    document: Json,
    operation: Json & { op: string; from: string; path: string },
  ): Json | undefined {
    const { op, from, path } = operation
    const operations =
      op === 'move'
        ? [
            { op: 'remove', path: from },
            { op: 'add', path, value: at(document, from) },
          ]
        : [operation]
    try {
      return jsonPatch.applyPatch(
        structuredClone(document),
        structuredClone(operations) as unknown as Operation[],
        true,
      ).newDocument as Json
    } catch {
      return undefined
    }
  }
})

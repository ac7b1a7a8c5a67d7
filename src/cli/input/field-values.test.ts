import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import { mergePatch } from '../../base/merge-patch.ts'
import { Failure } from '../failure.ts'
import {
  applySettings,
  mergePatchOf,
  type Path,
  parsePair,
  parsePath,
  parseSetting,
  parseValue,
  schemaAt,
  setAt,
} from './field-values.ts'

function assertMisuse(action: () => unknown, message: RegExp): void {
  assert.throws(
    action,
    (error) => error instanceof Failure && error.exitCode === 2 && message.test(error.message),
  )
}

/** A key in quotes, as the help says that keys with dots are written. */
function quoted(key: string): string {
  return `["${key.replaceAll(/["\\]/g, '\\$&')}"]`
}

/** A key after a dot, with what has a meaning in paths escaped. */
function escaped(key: string): string {
  return key.replaceAll(/[.[\]=\\]/g, '\\$&')
}

const key = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom('.', '[', ']', '=', '\\', '"', "'", '\n', '0', 'a', 'ü', '🚀', ' ') }),
  fc.constantFrom('__proto__', 'constructor', 'toString', '0', '-1', ''),
)
const bareKey = key.filter((text) => text !== '')
const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean())
const path: fc.Arbitrary<Path> = fc.array(fc.oneof(key, fc.nat(3)), { minLength: 1, maxLength: 4 })
const keyPath: fc.Arbitrary<string[]> = fc.array(key, { minLength: 1, maxLength: 4 })
const target = fc.oneof(
  fc.dictionary(key, fc.jsonValue({ maxDepth: 3 }), { noNullPrototype: true }),
  fc.jsonValue(),
) as fc.Arbitrary<Json>

describe('paths', () => {
  test('keys are joined by dots and places of lists are in brackets', () => {
    assert.deepEqual(parsePath('a', '--unset'), ['a'])
    assert.deepEqual(parsePath('labels.team', '--unset'), ['labels', 'team'])
    assert.deepEqual(parsePath('subjects[0].name', '--unset'), ['subjects', 0, 'name'])
    assert.deepEqual(parsePath('a[1][23]', '--unset'), ['a', 1, 23])
    assert.deepEqual(parsePath('a.0', '--unset'), ['a', '0'])
    assert.deepEqual(parsePath('a["0"]', '--unset'), ['a', '0'])
  })

  test('keys with dots are escaped or quoted', () => {
    const partOf = ['labels', 'app.kubernetes.io/part-of']
    assert.deepEqual(parsePath('labels.app\\.kubernetes\\.io/part-of', '--unset'), partOf)
    assert.deepEqual(parsePath('labels["app.kubernetes.io/part-of"]', '--unset'), partOf)
    assert.deepEqual(parsePath('a["b"].c', '--unset'), ['a', 'b', 'c'])
    assert.deepEqual(parsePath('["a.b"]["c[0]"]', '--unset'), ['a.b', 'c[0]'])
    assert.deepEqual(parsePath('a["say \\"hi\\" \\\\o/"]', '--unset'), ['a', 'say "hi" \\o/'])
  })

  test('any key survives quoting', () => {
    fc.assert(
      fc.property(key, key, (first, second) => {
        assert.deepEqual(parsePath(`${quoted(first)}${quoted(second)}`, '--unset'), [first, second])
      }),
    )
  })

  test('any key but the empty one survives escaping', () => {
    fc.assert(
      fc.property(fc.array(bareKey, { minLength: 1 }), (keys) => {
        assert.deepEqual(parsePath(keys.map(escaped).join('.'), '--unset'), keys)
      }),
    )
  })

  test('any path and any value are told apart at the first = that is not part of a key', () => {
    fc.assert(
      fc.property(path, fc.string({ unit: 'binary' }), fc.boolean(), (steps, value, inQuotes) => {
        const write = (step: string | number, i: number): string => {
          if (typeof step === 'number') return `[${step}]`
          return inQuotes || step === '' ? quoted(step) : `${i === 0 ? '' : '.'}${escaped(step)}`
        }
        assert.deepEqual(parseSetting(`${steps.map(write).join('')}=${value}`, '--set'), {
          path: steps,
          value,
        })
      }),
    )
  })

  test('a value may hold anything, or nothing', () => {
    for (const value of ['', '=', 'a=b=c', '"', "'", '[0]', 'x.y', 'l1\nl2', ' ', 'ü🚀', '\\', '{"a":1}']) {
      assert.deepEqual(parseSetting(`a.b=${value}`, '--set'), { path: ['a', 'b'], value })
    }
  })

  test('what is no path is wrong use, and is repeated in the message', () => {
    const noPaths = [
      '',
      '.',
      'a.',
      'a..b',
      'a[',
      'a]',
      'a[]',
      'a[-1]',
      'a[x]',
      'a[1',
      'a["b]',
      "a['b']",
      'a\\',
    ]
    for (const text of noPaths) {
      assertMisuse(() => parsePath(text, '--unset'), /^--unset must be a path such as /)
      assertMisuse(() => parseSetting(`${text}=x`, '--set'), /^--set must be like path=value, /)
    }
    assertMisuse(() => parsePath('a=b', '--unset'), /not "a=b"$/)
    assertMisuse(() => parseSetting('labels.team', '--set'), /not "labels\.team"$/)
    assertMisuse(() => parseSetting('=x', '--set'), /not "=x"$/)
  })

  test('nothing that anybody types is more than wrong use', () => {
    fc.assert(
      fc.property(key, (text) => {
        try {
          const { path: steps, value } = parseSetting(text, '--set')
          assert.ok(steps.length > 0 && text.endsWith(`=${value}`))
        } catch (error) {
          assert.ok(error instanceof Failure && error.exitCode === 2, String(error))
        }
      }),
    )
  })
})

describe('pairs', () => {
  test('a pair is split at its first =, and needs a key but no value', () => {
    assert.deepEqual(parsePair('ui.message=a=b', '--set'), ['ui.message', 'a=b'])
    assert.deepEqual(parsePair('empty=', '--set'), ['empty', ''])
    assert.deepEqual(parsePair('nl=l1\nl2', '--set'), ['nl', 'l1\nl2'])
    for (const text of ['', 'team', '=x', '=']) {
      assertMisuse(() => parsePair(text, '--label'), /^--label must be key=value, not "/)
    }
  })

  test('any value survives behind any key without =', () => {
    const plainKey = bareKey.filter((text) => !text.includes('='))
    fc.assert(
      fc.property(plainKey, fc.string({ unit: 'binary' }), (name, value) => {
        assert.deepEqual(parsePair(`${name}=${value}`, '--set'), [name, value])
      }),
    )
  })
})

describe('the schema of a place', () => {
  const schema: SchemaObject = {
    type: 'object',
    properties: {
      role: { type: 'string' },
      labels: { type: 'object', additionalProperties: { type: 'string' } },
      subjects: { type: 'array', items: { type: 'object', properties: { port: { type: 'integer' } } } },
    },
  }

  test('is found below fields, maps and lists', () => {
    assert.deepEqual(schemaAt(schema, ['role']), { type: 'string' })
    assert.deepEqual(schemaAt(schema, ['labels', 'any']), { type: 'string' })
    assert.deepEqual(schemaAt(schema, ['subjects', 7, 'port']), { type: 'integer' })
    assert.equal(schemaAt(schema, []), schema)
  })

  test('is open where nothing is known, and never one of the language', () => {
    for (const steps of [['nope'], ['role', 'x'], ['toString'], ['constructor', 'name'], ['labels', 0]]) {
      assert.deepEqual(schemaAt(schema, steps), {}, JSON.stringify(steps))
    }
  })
})

describe('values', () => {
  const value = (schema: SchemaObject, text: string): Json => parseValue(schema, text, '--set x')

  test('any text is itself where a string is wanted', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        assert.equal(value({ type: 'string' }, text), text)
      }),
    )
    for (const text of ['', 'true', '12', '1.10', 'null', '{"a":1}', '[1]']) {
      assert.equal(value({ type: 'string' }, text), text)
      assert.equal(value({ type: ['null', 'string'] }, text), text)
    }
  })

  test('a boolean is true or false, in these words', () => {
    assert.equal(value({ type: 'boolean' }, 'true'), true)
    assert.equal(value({ type: 'boolean' }, 'false'), false)
    for (const text of ['', 'True', 'yes', '1', '0', 'no', ' true']) {
      assertMisuse(() => value({ type: 'boolean' }, text), /^--set x must be true or false, not "/)
    }
  })

  test('every number is understood as itself', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        // JSON knows no negative zero.
        assert.ok(value({ type: 'number' }, String(number)) === number)
      }),
    )
    fc.assert(
      fc.property(fc.maxSafeInteger(), (number) => {
        assert.ok(value({ type: 'integer' }, String(number)) === number)
      }),
    )
  })

  test('what is no number is wrong use', () => {
    for (const text of ['', ' ', 'abc', '1,5', '12 nodes', 'NaN', 'Infinity', '-Infinity', '1e999', '--1']) {
      assertMisuse(() => value({ type: 'integer' }, text), /^--set x must be a number, not "/)
      assertMisuse(() => value({ type: 'number' }, text), /^--set x must be a number, not "/)
    }
  })

  test('a list is JSON, or one item of the type of its items', () => {
    assert.deepEqual(value({ type: 'array', items: { type: 'string' } }, 'a=b'), ['a=b'])
    assert.deepEqual(value({ type: 'array', items: { type: 'integer' } }, '5'), [5])
    assert.deepEqual(value({ type: 'array', items: { type: 'string' } }, '[]'), [])
    assert.deepEqual(value({ type: 'array', items: { type: 'string' } }, '["a","b"]'), ['a', 'b'])
    assert.deepEqual(value({ items: { type: 'string' } }, 'x'), ['x'])
    assertMisuse(() => value({ type: 'array' }, '[1'), /^--set x is not JSON: /)
    assertMisuse(() => value({ type: 'array', items: { type: 'integer' } }, 'x'), /must be a number/)
  })

  test('an object is JSON, or pairs whose values have the types of their fields', () => {
    const rule: SchemaObject = {
      type: 'object',
      properties: { from: { type: 'string' }, port: { type: 'integer' }, on: { type: 'boolean' } },
    }
    assert.deepEqual(value(rule, 'from=traefik,port=80,on=true'), { from: 'traefik', port: 80, on: true })
    assert.deepEqual(value(rule, 'from=a=b'), { from: 'a=b' })
    assert.deepEqual(value(rule, '{"from":"a,b"}'), { from: 'a,b' })
    assert.deepEqual(value({ additionalProperties: { type: 'string' } }, 'a=1'), { a: '1' })
    assertMisuse(() => value(rule, 'from=a,port=x'), /^--set x port must be a number, not "x"/)
    assertMisuse(() => value(rule, 'from'), /^--set x must be key=value, not "from"/)
    assertMisuse(() => value(rule, ''), /must be key=value/)
    assertMisuse(() => value(rule, '{from'), /^--set x is not JSON: /)
  })

  test('a pair named like a part of the language is a pair like any other', () => {
    const read = value({ type: 'object', additionalProperties: { type: 'string' } }, '__proto__=x')
    assert.deepEqual(Object.entries(read as JsonObject), [['__proto__', 'x']])
  })

  test('where no type is known, JSON is JSON and anything else is text', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (json) => {
        assert.deepEqual(value({}, JSON.stringify(json)), JSON.parse(JSON.stringify(json)))
      }),
    )
    for (const text of ['', 'v1.0.1', '1.2.3', '007', 'True', 'a b', '{a', '#3b82f6']) {
      assert.equal(value({}, text), text)
    }
  })
})

/** What is at a place; nothing where there is none. */
function at(json: Json | undefined, [step, ...rest]: Path): Json | undefined {
  if (step === undefined) return json
  if (typeof step === 'number') return Array.isArray(json) ? at(json[step], rest) : undefined
  return isObject(json) && Object.hasOwn(json, step) ? at(json[step], rest) : undefined
}

describe('setting a place', () => {
  test('makes what is missing on the way', () => {
    assert.deepEqual(setAt(undefined, ['a', 0, 'b'], 'x'), { a: [{ b: 'x' }] })
    assert.deepEqual(setAt({ a: 'text' }, ['a', 'b'], 1), { a: { b: 1 } })
    assert.deepEqual(setAt({ a: { b: 1, c: 2 } }, ['a', 'b'], 3), { a: { b: 3, c: 2 } })
    assert.deepEqual(setAt({ a: [1, 2, 3] }, ['a', 1], 9), { a: [1, 9, 3] })
    assert.deepEqual(setAt({ a: [1] }, ['a', 1], 2), { a: [1, 2] })
    assert.deepEqual(setAt({ a: 1 }, [], 'x'), 'x')
  })

  test('leaves no gap in a list', () => {
    assertMisuse(() => setAt({ a: [1] }, ['a', 2], 3), /^\[2\] is beyond the end of a list of 1: .*\[1\]$/)
    assertMisuse(() => setAt({}, ['a', 1], 3), /beyond the end of a list of 0/)
  })

  test('null takes an item out of a list, by its place in the document as it was', () => {
    const without = (...indices: number[]) =>
      applySettings(
        { a: [1, 2, 3] },
        indices.map((index) => ({ path: ['a', index], value: null })),
      )
    assert.deepEqual(without(1), { a: [1, 3] })
    assert.deepEqual(without(0, 1), { a: [3] })
    assert.deepEqual(without(2, 0, 1), { a: [] })
    assertMisuse(() => without(3), /beyond the end of a list of 3/)
  })

  test('is found there afterwards, whatever was there before, and what it was made from is as it was', () => {
    fc.assert(
      fc.property(target, path, scalar, (json, steps, value) => {
        const before = structuredClone(json)
        let after: Json
        try {
          after = setAt(json, steps, value)
        } catch (error) {
          assert.ok(error instanceof Failure && /beyond the end/.test(error.message), String(error))
          return
        }
        assert.deepEqual(at(after, steps), value)
        assert.deepEqual(setAt(after, steps, value), after)
        assert.deepEqual(json, before)
      }),
    )
  })

  test('leaves all other places alone', () => {
    fc.assert(
      fc.property(
        fc.dictionary(key, fc.jsonValue(), { noNullPrototype: true }),
        keyPath,
        scalar,
        (json, steps, value) => {
          const after = setAt(json as Json, steps, value) as JsonObject
          const [first] = steps as [string]
          for (const [name, each] of Object.entries(json)) {
            if (name !== first) assert.deepEqual(at(after, [name]), each)
          }
          assert.deepEqual(new Set(Object.keys(after)), new Set([...Object.keys(json), first]))
        },
      ),
    )
  })

  test('never reaches what all objects share', () => {
    setAt({}, ['__proto__', 'polluted'], true)
    setAt({}, ['constructor', 'prototype', 'polluted'], true)
    assert.equal(({} as Record<string, unknown>).polluted, undefined)
    assert.deepEqual(Object.entries(setAt({}, ['__proto__', 'a'], 1) as JsonObject), [
      ['__proto__', { a: 1 }],
    ])
  })
})

describe('merge patches', () => {
  test('hold every setting, and null for what goes', () => {
    const patch = mergePatchOf([
      { path: ['labels', 'team'], value: 'web' },
      { path: ['labels', 'app.io/x'], value: '' },
      { path: ['node_count'], value: 3 },
      { path: ['labels', 'old'], value: null },
      { path: ['vm_image'], value: null },
    ])
    assert.deepEqual(patch, {
      labels: { team: 'web', 'app.io/x': '', old: null },
      node_count: 3,
      vm_image: null,
    })
    assert.deepEqual(mergePatchOf([]), {})
  })

  test('cannot be had for a place in a list', () => {
    assert.equal(mergePatchOf([{ path: ['subjects', 0, 'name'], value: 'x' }]), undefined)
    const mixed = [
      { path: ['role'], value: 'view' },
      { path: ['subjects', 1], value: null },
    ]
    assert.equal(mergePatchOf(mixed), undefined)
  })

  test('a later setting of the same place wins', () => {
    const patch = mergePatchOf([
      { path: ['a', 'b'], value: 1 },
      { path: ['a', 'b'], value: 2 },
    ])
    assert.deepEqual(patch, { a: { b: 2 } })
  })

  test('do to a document what setting the place does', () => {
    // Documents hold no keys of the language: the service refuses them.
    const name = key.filter((text) => text !== '__proto__')
    const json = fc.dictionary(name, fc.dictionary(name, scalar, { noNullPrototype: true }), {
      noNullPrototype: true,
    }) as fc.Arbitrary<JsonObject>
    const steps = fc.array(name, { minLength: 1, maxLength: 3 })
    fc.assert(
      fc.property(json, steps, scalar, (document, place, value) => {
        const patch = mergePatchOf([{ path: place, value }])
        assert.ok(patch)
        assert.deepEqual(mergePatch(document, patch), setAt(document, place, value))
      }),
    )
  })
})

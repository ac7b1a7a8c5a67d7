import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { builtInTypes } from '../../../test/service.ts'
import { MAX_EVERY_S, parseReport } from './parse-report.ts'

const types = builtInTypes()
const A = '0123456789abcdef'
const B = 'fedcba9876543210'
const parse = (query: string) => parseReport(types, query)

const REFUSED: readonly (readonly [query: string, path: string, says: RegExp])[] = [
  [`ready=${A}`, '?ready', /must be <component>:<digest>/],
  [`ready=:${A}`, '?ready', /must be <component>:<digest>/],
  ['ready=a:', '?ready', /is "a:"/],
  ['ready=a:0123', '?ready', /must be <component>:<digest>/],
  [`ready=a:${A.toUpperCase()}`, '?ready', /must be <component>:<digest>/],
  ['every=0', '?every', /from 1 to 86400/],
  [`every=${MAX_EVERY_S + 1}`, '?every', /must be seconds/],
  ['every=1.5', '?every', /must be seconds/],
  ['every=', '?every', /must be seconds/],
  ['part=xyz', '?part', /one or two hexadecimal digits/],
  ['part=', '?part', /one or two hexadecimal digits/],
  ['platform-components=latest', '?platform-components', /16 lower-case hexadecimal digits/],
  [`platform-components=${A}:0/2`, '?platform-components', /16 lower-case hexadecimal digits/],
]

describe('a report', () => {
  for (const [query, path, says] of REFUSED)
    test(`is refused for ${query}, which is named`, () => {
      const parsed = parse(`namespaces=${A}&${query}`)
      assert.ok(!parsed.ok && parsed.problem.code === 'validation_error')
      assert.deepEqual(
        parsed.problem.details?.map((detail) => detail.path),
        [path],
      )
      assert.match(parsed.problem.details?.[0]?.message ?? '', says)
    })

  test('may hold keys that no endpoint has: a newer bundle sends more', () => {
    assert.ok(parse('colour=blue').ok)
  })

  test('says how often its cluster polls, up to once a day', () => {
    const parsed = parse(`every=${MAX_EVERY_S}`)
    assert.ok(parsed.ok)
    assert.equal(parsed.value.everyMs, MAX_EVERY_S * 1000)
  })

  test('tells of an answer once all parts that make it have applied the same', () => {
    const applied = (query: string) => {
      const parsed = parse(query)
      assert.ok(parsed.ok)
      return parsed.value.applied.has('namespaces')
    }
    assert.ok(applied(`namespaces=${A}`))
    assert.ok(applied(`namespaces=${A}:1/2&namespaces=${A}:2/2`))
    assert.ok(!applied(`namespaces=${A}:1/2`))
    assert.ok(!applied(`namespaces=${A}:1/2&namespaces=${B}:2/2`))
    assert.ok(!applied(`namespaces=${A}&namespaces=${B}`))
  })

  test('says nothing of a component that is reported with two digests', () => {
    const parsed = parse(`ready=a:${A}&ready=b:${A}&ready=a:${B}`)
    assert.ok(parsed.ok)
    assert.deepEqual(
      parsed.value.ready.map(({ id }) => id),
      ['b'],
    )
  })
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { builtInTypes } from '../../../test/service.ts'
import { hexOf } from '../../base/digest.ts'
import type { ReportEvidence } from './evidence.ts'
import { MAX_EVERY_S, parseReport, takeReport } from './parse-report.ts'

const types = builtInTypes()
const A = '0123456789abcdef'
const B = 'fedcba9876543210'
const C = '00000000ffffffff'
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
      return (parsed.value.applied.get('namespaces') ?? []).map(hexOf)
    }
    assert.deepEqual(applied(`namespaces=${A}`), [A])
    assert.deepEqual(applied(`namespaces=${A}:1/2&namespaces=${A}:2/2`), [A])
    assert.deepEqual(applied(`namespaces=${A}:1/2`), [])
    assert.deepEqual(applied(`namespaces=${A}:1/2&namespaces=${A}:1/2`), [])
    assert.deepEqual(applied(`namespaces=${A}:1/2&namespaces=${B}:2/2`), [])
    assert.deepEqual(applied(`namespaces=${A}:1/2&namespaces=${B}:1/2&namespaces=${B}:2/2`), [B])
    assert.deepEqual(applied(`namespaces=${A}&namespaces=${B}`), [A, B])
  })
})

describe('of several marks of one thing', () => {
  /** What is known after reports one after the other, of an endpoint and of a component. */
  function knownAfter(...reports: readonly string[][]) {
    let report: ReportEvidence | undefined
    for (const [i, marks] of reports.entries()) {
      const keys = marks.flatMap((mark) => [`namespaces=${mark}`, `ready=a:${mark}`])
      const parsed = parse(keys.join('&'))
      assert.ok(parsed.ok)
      report = takeReport({ report, poll: () => undefined }, parsed.value, i + 1, () => true)
    }
    const { mark, since } = report?.applied.get('namespaces') ?? {}
    const ready = report?.ready.markOf('a')
    assert.deepEqual(ready, mark, 'components as endpoints')
    return mark ? `${hexOf(mark)} since ${since}` : 'nothing'
  }

  test('the one that came last is true, and the one from before is not again while it stays', () => {
    assert.equal(knownAfter([A], [A, B]), `${B} since 2`)
    assert.equal(knownAfter([A], [B, A], [A, B], [B]), `${B} since 2`)
    assert.equal(knownAfter([A], [A, B], [A]), 'nothing')
    assert.equal(knownAfter([A], [A, B], [A, B, C]), `${C} since 3`)
    assert.equal(knownAfter([A], [A, B], [A, C]), `${C} since 3`)
  })

  test('one that had gone is true when it comes back', () => {
    assert.equal(knownAfter([A], [A, B], [B], [A, B]), `${A} since 4`)
  })

  test('none is where they came together, until one is left', () => {
    assert.equal(knownAfter([A, B]), 'nothing')
    assert.equal(knownAfter([A], [B, C]), 'nothing')
    assert.equal(knownAfter([A], [A, B, C]), 'nothing')
    assert.equal(knownAfter([A, B], [B]), `${B} since 2`)
  })

  test('a report of a part leaves those of other parts as they are', () => {
    const parsed = (query: string) => {
      const found = parse(query)
      assert.ok(found.ok)
      return found.value
    }
    const evidence = (report?: ReportEvidence) => ({ report, poll: () => undefined })
    const first = takeReport(evidence(), parsed(`ready=a:${A}`), 1, () => true)
    const second = takeReport(evidence(first), parsed(`ready=a:${A}&ready=a:${B}`), 2, () => true)
    const third = takeReport(evidence(second), parsed('part=1'), 3, () => false)
    assert.deepEqual(third.leftovers, second.leftovers)
    assert.deepEqual(takeReport(evidence(third), parsed(`ready=a:${A}`), 4, () => true).ready.size, 0)
  })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Impact } from '../../domain/delivery/impact.ts'
import type { InputImpact } from '../../domain/delivery/impact-counts.ts'
import { receivers, withCounts } from './impact-report.ts'

const NONE: Impact = {
  clusters: 0,
  by_environment: {},
  touched: 0,
  joining: 0,
  leaving: 0,
  losing: 0,
  endpoints: {},
  inputs: [],
  input_count: 0,
  details: [],
}

function input(id: string, counts: Partial<InputImpact>): InputImpact {
  const none = { added: 0, removed: 0, changed: 0, switched_off: 0, fields: {} }
  return { endpoint: 'platform-components', id, ...none, ...counts }
}

/** What the line says of 1,250 clusters with these inputs. */
function kinds(inputs: InputImpact[], more: Partial<Impact> = {}): string {
  const counts = { clusters: 1250, by_environment: { prod: 1250 }, input_count: inputs.length }
  const line = receivers({ ...NONE, ...counts, inputs, ...more })
  const head = '1,250 clusters receive something else: prod 1250 — '
  assert.ok(line.startsWith(head), line)
  return line.slice(head.length)
}

test('the line says who gets something new, who loses something, and what is different', () => {
  const tag = { '/source/oci_tag': 417 }
  assert.equal(
    kinds([input('a', { added: 833, changed: 417, fields: tag })]),
    '833 get a (new), 417 another oci_tag',
  )
  assert.equal(kinds([input('a', { removed: 417 })]), '417 lose a')
  assert.equal(kinds([input('a', { changed: 417, fields: tag })]), '417 another oci_tag of a')
  assert.equal(
    kinds([input('a', { changed: 5, switched_off: 3, fields: { '/enabled': 3, '/patches/x~1y': 2 } })]),
    'a is switched off on 3, 2 another enabled and x/y',
  )
  assert.equal(
    kinds([input('a', { added: 2 }), input('b', { removed: 1 })], { leaving: 1, joining: 2 }),
    '1 leaves the fleet, 1 loses b, 2 join the fleet, 2 get a (new)',
  )
})

test('losses come before all else, and what is left out is counted', () => {
  const many = Array.from({ length: 9 }, (_, i) => input(`c${i}`, { changed: 9, fields: { '/x': 9 } }))
  const line = kinds([...many, input('last', { removed: 1 })], { input_count: 30 })
  assert.match(
    line,
    /^1 loses last, 9 another x of c0, 9 another x of c1, 9 another x of c2, and 26 more differences$/,
  )
  const fields = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [`/patches/${name}`, 1]))
  assert.equal(kinds([input('p', { changed: 1, fields })]), '1 receives p with 5 other values')
})

test('a service that counts less is understood, and may be taking something from every cluster', () => {
  const endpoints = { namespaces: { clusters: 2, added: 0, removed: 1, changed: 1 } }
  const old = { clusters: 2, by_environment: { dev: 2 }, endpoints, details: [] } as unknown as Impact
  assert.equal(receivers(old), '2 clusters receive something else: dev 2')
  const { touched, losing, leaving, inputs } = withCounts(old)
  assert.deepEqual({ touched, losing, leaving, inputs }, { touched: 2, losing: 2, leaving: 0, inputs: [] })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { didYouMean } from './near-names.ts'

const NAMES = ['podinfo', 'traefik', 'cert-manager', 'grafana', 'dex']

for (const [given, said] of [
  ['podnfo', ': did you mean "podinfo"?'],
  ['podinffo', ': did you mean "podinfo"?'],
  ['pdoinfo', ': did you mean "podinfo"?'],
  ['graphana', ': did you mean "grafana"?'],
  ['certmanager', ': did you mean "cert-manager"?'],
  ['dax', ': did you mean "dex"?'],
  ['de', ''],
  ['velero', ''],
] as const) {
  test(`"${given}" is near to ${said || 'nothing'}`, () => {
    assert.equal(didYouMean(given, NAMES), said)
  })
}

test('the nearest come first, and no more than three', () => {
  const names = ['team-abcd', 'team-a1', 'team-a', 'team-b', 'team-c']
  assert.equal(didYouMean('team-a', names), ': did you mean "team-a" or "team-a1" or "team-b"?')
})

test('of very many names only some are looked at', () => {
  let looked = 0
  const names = function* (): Generator<string> {
    for (;;) yield `name-${looked++}`
  }
  didYouMean('other', names())
  assert.ok(looked <= 10_001)
})

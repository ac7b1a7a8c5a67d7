import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInTypes } from '../../../test/service.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Strategy, WaveSpec } from './rollout.ts'
import { checkStrategy, DEFAULT_STRATEGY, gatesOf } from './strategy.ts'

const types = builtInTypes()

function details(...waves: readonly Omit<WaveSpec, 'name'>[]) {
  const named = waves.map((wave, i) => ({ name: `w${i}`, ...wave }))
  return checkStrategy(types, { waves: named })
}

const WRONG: readonly [waves: readonly Omit<WaveSpec, 'name'>[], path: string, message: RegExp][] = [
  [[{}], '/waves/0', /says nothing about who is in it: give one of selector/],
  [[{ percent: 10, rest: true }], '/waves/0', /has percent and rest: give only one of/],
  [[{ selector: 'environment in dev' }], '/waves/0/selector', /is not a selector/],
  [[{ selector: 'uses.nonsense=a' }], '/waves/0/selector', /which is unknown: known are uses\./],
  [[{ rest: true }, { count: 1 }], '/waves/0/rest', /must be the last wave/],
  [[{ percent: 50 }, { percent: 10 }], '/waves/1/percent', /is 10, and an earlier wave goes to 50 already/],
  [[{ percent: 50 }, { count: 1 }, { percent: 50 }], '/waves/2/percent', /so it must be more/],
  [
    [{ clusters: ['a', 'b'] }, { clusters: ['b'] }],
    '/waves/1/clusters/0',
    /names "b", which is in wave "w0"/,
  ],
  [[{ rest: true, start_at: '2026-02-30T00:00:00Z' }], '/waves/0/start_at', /is no time on the calendar/],
  [
    [{ rest: true, window: { cron: '0 0 31 4 *', duration_s: 600 } }],
    '/waves/0/window/cron',
    /names a time that never comes/,
  ],
  [
    [{ rest: true, window: { cron: '0 8 * * *', duration_s: 600, zone: 'Berlin' } }],
    '/waves/0/window/zone',
    /IANA time zone/,
  ],
  [
    [{ rest: true, gates: { checks: [{ name: 'smoke' }, { name: 'smoke' }] } }],
    '/waves/0/gates/checks/1/name',
    /is used twice/,
  ],
  [
    [{ rest: true, gates: { checks: [{ name: 'smoke', url: 'http://ci.example.com/' }] } }],
    '/waves/0/gates/checks/0/url',
    /https:\/\/ URL, or http:\/\/ on this machine/,
  ],
  [
    [{ rest: true, gates: { checks: [{ name: 'smoke', url: 'https://me:secret@ci.example.com/' }] } }],
    '/waves/0/gates/checks/0/url',
    /without user or fragment/,
  ],
]

test('what is wrong with a strategy is told by its field', () => {
  for (const [waves, path, message] of WRONG) {
    const found = details(...waves)
    assert.deepEqual(
      found.map((detail) => detail.path),
      [path],
    )
    assert.match(found[0]?.message ?? '', message)
  }
})

test('waves have names of their own', () => {
  const waves = [
    { name: 'same', count: 1 },
    { name: 'same', rest: true },
  ] as const
  assert.deepEqual(checkStrategy(types, { waves }), [
    { path: '/waves/1/name', message: 'is used twice: "same"' },
  ])
})

test('shares that grow, a window and checks are well', () => {
  const window = { cron: '0 8 * * 1-5', duration_s: 28_800, zone: 'Europe/Berlin' }
  const checks = [{ name: 'ci' }, { name: 'slo', url: 'https://slo.example.com/check?of=fleet' }]
  assert.deepEqual(
    details({ percent: 10 }, { clusters: ['a'] }, { percent: 50, window }, { rest: true, gates: { checks } }),
    [],
  )
})

test('the built-in strategy obeys the rules, and the schema of its type', () => {
  assert.deepEqual(checkStrategy(types, DEFAULT_STRATEGY), [])
  const document = { id: 'default', ...(DEFAULT_STRATEGY as unknown as JsonObject) }
  const type = types.all.find(({ rules }) => rules === 'strategy') ?? assert.fail()
  assert.deepEqual(type.check(type.normalise(document)), [])
})

test('a wave that asks for checks alone has the usual gates too', () => {
  const wave: Strategy['waves'][number] = { name: 'w', rest: true, gates: { checks: [{ name: 'ci' }] } }
  assert.deepEqual(gatesOf(wave), { applied_percent: 100, failures: 0, checks: [{ name: 'ci' }] })
})

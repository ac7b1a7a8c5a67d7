import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInTypes } from '../../../test/service.ts'
import { checkFreeze, type Freeze, freezePhase, thawOf } from './freeze.ts'

const types = builtInTypes()

function freeze(more: Partial<Freeze>): Freeze {
  return { id: 'f', reason: 'holidays', ...more }
}

function phase(more: Partial<Freeze>, now: string): [boolean, string | undefined] {
  const { isOn, until } = freezePhase(freeze(more), Date.parse(now))
  return [isOn, until === undefined ? undefined : new Date(until).toISOString().replace('.000Z', 'Z')]
}

const PHASES: readonly [name: string, Partial<Freeze>, now: string, isOn: boolean, until?: string][] = [
  ['without times it is on', {}, '2026-01-01T00:00:00Z', true],
  [
    'before from',
    { from: '2026-01-02T01:00:00+01:00' },
    '2026-01-01T00:00:00Z',
    false,
    '2026-01-02T00:00:00Z',
  ],
  ['at from', { from: '2026-01-02T00:00:00Z' }, '2026-01-02T00:00:00Z', true],
  ['before until', { until: '2026-01-02T00:00:00Z' }, '2026-01-01T23:59:59Z', true, '2026-01-02T00:00:00Z'],
  ['at until it is over, for ever', { until: '2026-01-02T00:00:00Z' }, '2026-01-02T00:00:00Z', false],
  [
    'a schedule, while it is on',
    { cron: '0 22 * * *', duration_s: 36_000, zone: 'Europe/Berlin' },
    '2026-01-02T03:00:00Z',
    true,
    '2026-01-02T07:00:00Z',
  ],
  [
    'a schedule, between two times',
    { cron: '0 22 * * *', duration_s: 36_000, zone: 'Europe/Berlin' },
    '2026-01-02T12:00:00Z',
    false,
    '2026-01-02T21:00:00Z',
  ],
  [
    'a schedule ends with its bound',
    { cron: '0 22 * * *', duration_s: 36_000, until: '2026-01-02T00:00:00Z' },
    '2026-01-01T23:00:00Z',
    true,
    '2026-01-02T00:00:00Z',
  ],
  [
    'a schedule does not begin after its bound',
    { cron: '0 22 * * *', duration_s: 36_000, until: '2026-01-02T12:00:00Z' },
    '2026-01-02T09:00:00Z',
    false,
  ],
  [
    'a schedule begins with its bound, in the middle of a time',
    { cron: '0 22 * * *', duration_s: 36_000, from: '2026-01-02T01:00:00Z' },
    '2026-01-01T23:00:00Z',
    false,
    '2026-01-02T01:00:00Z',
  ],
  ['a schedule that is always on', { cron: '0 * * * *', duration_s: 7200 }, '2026-01-01T00:00:00Z', true],
]

for (const [name, more, now, isOn, until] of PHASES)
  test(`when a freeze is on: ${name}`, () => {
    assert.deepEqual(phase(more, now), [isOn, until])
  })

test('of several freezes the latest end counts, and one that begins before that end goes on', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  const first = freeze({ until: '2026-01-02T00:00:00Z' })
  const longer = freeze({ until: '2026-01-03T00:00:00Z' })
  const following = freeze({ from: '2026-01-02T12:00:00Z', until: '2026-01-05T00:00:00Z' })
  const later = freeze({ from: '2026-01-06T00:00:00Z', until: '2026-01-07T00:00:00Z' })
  const iso = (freezes: readonly Freeze[]) => {
    const thaw = thawOf(freezes, now)
    return thaw === undefined ? undefined : new Date(thaw).toISOString()
  }
  assert.equal(iso([first]), '2026-01-02T00:00:00.000Z')
  assert.equal(iso([first, longer]), '2026-01-03T00:00:00.000Z')
  assert.equal(iso([first, longer, following, later]), '2026-01-05T00:00:00.000Z')
  assert.equal(iso([first, freeze({})]), undefined)
  assert.equal(thawOf([later], now), now)
})

const WRONG: readonly [Partial<Freeze>, path: string, message: RegExp][] = [
  [{ selector: 'environment in (' }, '/selector', /is not a selector/],
  [{ selector: 'health=failed' }, '/selector', /the status of clusters changes by itself/],
  [
    { from: '2026-01-02T00:00:00Z', until: '2026-01-02T01:00:00+01:00' },
    '/until',
    /must be after from, which is 2026-01-02T00:00:00Z/,
  ],
  [{ from: '2026-02-31T00:00:00Z' }, '/from', /is no time on the calendar/],
  [{ cron: '0 8 * * *' }, '/duration_s', /is required with cron/],
  [{ duration_s: 600 }, '/cron', /is required with duration_s/],
  [{ zone: 'UTC' }, '/zone', /goes with cron only/],
  [{ cron: '0 25 * * *', duration_s: 600 }, '/cron', /Invalid value for hour: 25/],
  [{ cron: '0 8 * * *', duration_s: 600, zone: 'Nowhere/At_All' }, '/zone', /IANA time zone/],
  [
    {
      cron: '0 8 1 7 *',
      duration_s: 600,
      from: '2026-01-01T00:00:00Z',
      until: '2026-06-01T00:00:00Z',
    },
    '/cron',
    /names no time between from and until/,
  ],
]

test('what is wrong with a freeze is told by its field', () => {
  for (const [more, path, message] of WRONG) {
    const details = checkFreeze(types, { ...freeze(more) })
    const found = details.find((detail) => detail.path === path)
    assert.ok(found, `${JSON.stringify(more)}: ${JSON.stringify(details)}`)
    assert.match(found.message, message)
  }
})

test('a schedule may have bounds', () => {
  const bounded = {
    cron: '0 8 * * *',
    duration_s: 600,
    zone: 'Europe/Berlin',
    from: '2026-01-01T00:00:00Z',
    until: '2026-06-01T00:00:00Z',
    selector: 'environment=prod',
  }
  assert.deepEqual(checkFreeze(types, { ...freeze(bounded) }), [])
})

// Rollouts that are asked for wrongly: each mistake is named with its place, and nothing is stored.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../src/base/json.ts'
import { fleetOf } from './reporting-clusters.ts'
import { startRolled, tagOf, wavesOf } from './rolled-fleet.ts'

const FLEET = fleetOf({ one: {}, two: {}, gone: {} })
const CHANGE = [tagOf('a', 'v2.0.0')]
const rest = { name: 'rest', rest: true }
const wave = (more: JsonObject): Json => ({ waves: [{ ...rest, ...more }] })

/** What is asked for, and the first mistake that is told. */
const MISTAKES: readonly (readonly [what: string, rollout: Json, path: string, message: RegExp])[] = [
  ['no object', 'default', '/rollout', /must be an object/],
  ['nothing', {}, '/rollout', /needs one of strategy and waves/],
  ['strategy and waves', { strategy: 'default', waves: [rest] }, '/rollout', /give only one of them/],
  ['an unknown strategy', { strategy: 'none' }, '/rollout/strategy', /names no strategy "none"/],
  [
    'an unknown field',
    { waves: [rest], speed: 1 },
    '/rollout/speed',
    /known are strategy, waves, on_failure/,
  ],
  [
    'an unknown field of a wave',
    wave({ color: 'red' }),
    '/rollout/waves/0/color',
    /known are name, selector/,
  ],
  [
    'an unknown gate',
    wave({ gates: { luck: 1 } }),
    '/rollout/waves/0/gates/luck',
    /known are served_percent/,
  ],
  ['no waves', { waves: [] }, '/rollout/waves', /must not be empty/],
  ['a wave without a name', { waves: [{ rest: true }] }, '/rollout/waves/0/name', /is required/],
  ['a wave of nobody', { waves: [{ name: 'a' }] }, '/rollout/waves/0', /says nothing about who is in it/],
  [
    'a wave of two kinds',
    { waves: [{ name: 'a', percent: 5, count: 1 }, rest] },
    '/rollout/waves/0',
    /has percent and count: give only one/,
  ],
  [
    'rest: false',
    { waves: [{ name: 'a', rest: false }] },
    '/rollout/waves/0/rest',
    /must be true, not false/,
  ],
  [
    'a wave after the rest',
    { waves: [rest, { name: 'b', count: 1 }] },
    '/rollout/waves/0/rest',
    /must be the last wave/,
  ],
  [
    'a selector that cannot be read',
    { waves: [{ name: 'a', selector: 'environment in (' }, rest] },
    '/rollout/waves/0/selector',
    /is not a selector/,
  ],
  [
    'a selector of what clusters do',
    { waves: [{ name: 'a', selector: 'contact=current' }, rest] },
    '/rollout/waves/0/selector',
    /changes by itself/,
  ],
  [
    'more than all',
    { waves: [{ name: 'a', percent: 101 }, rest] },
    '/rollout/waves/0/percent',
    /must be <= 100/,
  ],
  [
    'shares that do not grow',
    {
      waves: [{ name: 'a', percent: 50 }, { name: 'b', percent: 20 }, rest],
    },
    '/rollout/waves/1/percent',
    /each share includes those before it/,
  ],
  [
    'one id in two waves',
    {
      waves: [
        { name: 'a', clusters: ['one'] },
        { name: 'b', clusters: ['two', 'one'] },
      ],
    },
    '/rollout/waves/1/clusters/1',
    /names "one", which is in wave "a" already/,
  ],
  [
    'a deleted cluster',
    { waves: [{ name: 'a', clusters: ['gone'] }, rest] },
    '/rollout/waves/0/clusters/0',
    /names no live cluster: "gone"/,
  ],
  [
    'clusters in no wave, where that is refused',
    { waves: wavesOf('one'), unmatched: 'refuse' },
    '/rollout/waves',
    /leaves 1 clusters in no wave: two/,
  ],
  [
    'failures that are neither a number nor a share',
    wave({ gates: { failures: '200%' } }),
    '/rollout/waves/0/gates/failures',
    /^must be an integer, or must match .*, not "200%"$/,
  ],
  [
    'a window that never opens',
    wave({ window: { cron: '0 0 30 2 *', duration_s: 60 } }),
    '/rollout/waves/0/window/cron',
    /names a time that never comes/,
  ],
  [
    'a window in no time zone',
    wave({ window: { cron: '0 0 * * *', duration_s: 60, zone: 'Mars/Base' } }),
    '/rollout/waves/0/window/zone',
    /must be an IANA time zone/,
  ],
  ['a start at no time', wave({ start_at: '2026-13-01T00:00:00Z' }), '/rollout/waves/0/start_at', /no time/],
  [
    'a check at a URL that may not be asked',
    wave({ gates: { checks: [{ name: 'x', url: 'https://ci.example.com' }] } }),
    '/rollout/waves/0/gates/checks/0/url',
    /ROLLOUT_CHECK_URLS is not set/,
  ],
  [
    'approvals of nobody',
    wave({ approval: { before: { count: 0 } } }),
    '/rollout/waves/0/approval/before/count',
    /must be >= 1/,
  ],
  ['none at a time', wave({ max_concurrent: 0 }), '/rollout/waves/0/max_concurrent', /must be >= 1/],
  [
    'a rollout to replace that there is not',
    { waves: [rest], supersedes: 'r99' },
    '/rollout/supersedes',
    /names no rollout "r99"/,
  ],
]

describe('a rollout is refused, and nothing is stored, for', () => {
  test('each mistake, with its place', async (t) => {
    const { service } = await startRolled(t, FLEET)
    await service.call('DELETE', '/clusters/gone?confirm=removals')
    const { revision } = service.engine.state
    for (const [what, rollout, path, message] of MISTAKES) {
      const { status, body, text } = await service.call('POST', '/batch', {
        body: { operations: CHANGE, rollout },
      })
      assert.equal(status, 400, `${what}: ${text}`)
      assert.equal(body.details[0].path, path, `${what}: ${text}`)
      assert.match(body.details[0].message, message, what)
      assert.equal(body.details.length, 1, `${what}: ${text}`)
    }
    assert.equal(service.engine.state.revision, revision)
    assert.deepEqual((await service.call('GET', '/rollouts')).body, [])
  })

  test('a change of nothing, of what no cluster gets, and of what cannot be staged', async (t) => {
    const { service } = await startRolled(t, FLEET)
    const { revision } = service.engine.state
    const send = (operations: Json) =>
      service.call('POST', '/batch', { body: { operations, rollout: { waves: [rest] } } })
    const nothing = await send([tagOf('a', 'v1.0.0')])
    assert.deepEqual([nothing.status, nothing.body.reason], [409, 'nothing_to_roll_out'], nothing.text)
    const unassigned = await send([tagOf('b', 'v2.0.0')])
    assert.deepEqual([unassigned.status, unassigned.body.reason], [409, 'nothing_to_roll_out'])
    const deleted = await send([{ op: 'delete', type: 'clusters', id: 'one' }])
    assert.deepEqual([deleted.status, deleted.body.reason], [400, 'not_staged'], deleted.text)
    const renamed = await send([
      { op: 'patch', type: 'clusters', id: 'one', patch: { cluster_dns: 'new.example.com' } },
    ])
    assert.deepEqual([renamed.status, renamed.body.reason], [400, 'not_staged'], renamed.text)
    assert.equal(service.engine.state.revision, revision)
  })

  test('a strategy in a URL that there is not, naming the parameter', async (t) => {
    const { service } = await startRolled(t, FLEET)
    const { status, body } = await service.call('PATCH', '/platform_components/a?rollout=none', {
      body: { oci_tag: 'v2.0.0' },
      headers: { 'content-type': 'application/merge-patch+json' },
    })
    assert.deepEqual([status, body.details[0].path], [400, '?rollout'])
  })
})

test('a wave whose selector matches nobody at all is told apart from one that the change does not reach', async (t) => {
  const { service } = await startRolled(t, fleetOf({ one: {}, two: { environment: 'qa', components: [] } }))
  const waves = [
    { name: 'typo', selector: 'enviroment=dev' },
    { name: 'qa', selector: 'environment=qa' },
    { name: 'uat', count: 1 },
    { name: 'half', percent: 50 },
    rest,
  ]
  const { status, body } = await service.call('POST', '/batch?dry_run=true', {
    body: { operations: CHANGE, rollout: { waves } },
  })
  assert.equal(status, 200)
  assert.deepEqual(body.warnings.slice(0, 2), [
    'wave "typo" is skipped: no cluster of the fleet matches enviroment=dev',
    'waves "qa", "half", "rest" have no members, and are skipped',
  ])
})

// Rollouts, strategies, freezes and actions that cannot be meant: each is refused by name, and nothing is stored.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json, JsonObject } from '../src/base/json.ts'
import { fleetOf } from './reporting-clusters.ts'
import { type RolledFleet, startRolled, tagOf } from './rolled-fleet.ts'

const FLEET = fleetOf({ one: {}, two: {}, bare: { components: [] }, gone: {} })
const CHANGE = [tagOf('a', 'v2.0.0')]
const REST = { name: 'all', rest: true }
/** More seconds than a date can hold. */
const FOR_EVER = 1e15

/** A fleet whose last cluster was deleted. */
async function start(t: Parameters<typeof startRolled>[0]): Promise<RolledFleet> {
  const fleet = await startRolled(t, FLEET)
  assert.equal((await fleet.service.call('DELETE', '/clusters/gone')).status, 200)
  return fleet
}

/** Fails unless it is refused, by what is said in the message, and the fleet stays at its revision. */
async function assertRefused(
  { service }: RolledFleet,
  [method, path]: readonly [string, string],
  body: Json,
  { status, says }: { readonly status: number; readonly says: RegExp },
): Promise<void> {
  const { revision } = service.engine.state
  const answer = await service.call(method, path, { body })
  assert.equal(answer.status, status, `${JSON.stringify(body)}: ${answer.text}`)
  assert.match(answer.body.message, says)
  assert.equal(service.engine.state.revision, revision, JSON.stringify(body))
}

/** Waves that no strategy may have, the path of what is wrong in the last of them, and what is said of it. */
const WAVES: readonly (readonly [what: string, waves: readonly JsonObject[], at: string, says: RegExp])[] = [
  ['no waves', [], '', /must not be empty/],
  ['a selector that is none', [{ selector: 'env in (' }], '/0/selector', /position/],
  ['a selector of an unknown type', [{ selector: 'uses.charts=a' }], '/0/selector', /known are uses\./],
  ['a selector of status', [{ selector: 'contact=offline' }], '/0/selector', /changes by itself/],
  ['a percentage over 100', [{ percent: 100.1 }], '/0/percent', /must be <= 100/],
  ['a percentage of nothing', [{ percent: 0 }], '/0/percent', /must be > 0/],
  ['a percentage as text', [{ percent: '50%' }], '/0/percent', /must be a number, not "50%"/],
  ['shares that shrink', [{ percent: 50 }, { percent: 10 }], '/1/percent', /it must be more/],
  ['a count of nobody', [{ count: 0 }], '/0/count', /must be >= 1/],
  [
    'one id in two waves',
    [{ clusters: ['one'] }, { clusters: ['two', 'one'] }],
    '/1/clusters/1',
    /names "one", which is in wave "w0" already/,
  ],
  ['one id twice', [{ clusters: ['one', 'one'] }], '/0/clusters/1', /is a duplicate/],
  ['no ids', [{ clusters: [] }], '/0/clusters', /must not be empty/],
  ['two waves of one name', [{ count: 1 }, { name: 'w0', count: 1 }], '/1/name', /is used twice: "w0"/],
  ['nobody in a wave', [{}], '/0', /says nothing about who is in it/],
  ['two ways to choose', [{ count: 1, percent: 1 }], '/0', /has percent and count: give only one/],
  ['a rest before the end', [{ rest: true }, { count: 1 }], '/0/rest', /must be the last wave/],
  ['no rest', [{ rest: false }], '/0/rest', /must be true, not false/],
  ['an unknown field', [{ ...REST, gate: {} }], '/0/gate', /is an unknown field: known are name/],
  [
    'an unknown gate',
    [{ ...REST, gates: { aplied_percent: 1 } }],
    '/0/gates/aplied_percent',
    /is an unknown field: known are served_percent/,
  ],
  ['a gate over 100', [{ ...REST, gates: { healthy_percent: 101 } }], '/0/gates/healthy_percent', /<= 100/],
  [
    'a share of failures over 100',
    [{ ...REST, gates: { failures: '101%' } }],
    '/0/gates/failures',
    /must be a share such as 5%, of at most 100%, not "101%"$/,
  ],
  [
    'fewer failures than none',
    [{ ...REST, gates: { failures: -1 } }],
    '/0/gates/failures',
    /must be >= 0, or must be a string, not -1$/,
  ],
  [
    'failures that are no number',
    [{ ...REST, gates: { failures: true } }],
    '/0/gates/failures',
    /must be an integer, or must be a string, not true$/,
  ],
  ['a soak for ever', [{ ...REST, gates: { soak_s: FOR_EVER } }], '/0/gates/soak_s', /must be <= /],
  ['a deadline that never comes', [{ ...REST, deadline_s: FOR_EVER }], '/0/deadline_s', /must be <= /],
  ['nobody at a time', [{ ...REST, max_concurrent: 0 }], '/0/max_concurrent', /must be >= 1/],
  [
    'a window that never opens',
    [{ ...REST, window: { cron: '0 0 30 2 *', duration_s: 60 } }],
    '/0/window/cron',
    /names a time that never comes: "0 0 30 2 \*"/,
  ],
  [
    'a window that is none',
    [{ ...REST, window: { cron: 'monday', duration_s: 60 } }],
    '/0/window/cron',
    /must be a cron expression of five fields/,
  ],
  [
    'a window in no zone',
    [{ ...REST, window: { cron: '0 0 * * *', duration_s: 60, zone: 'Mars/Olympus' } }],
    '/0/window/zone',
    /must be an IANA time zone/,
  ],
  ['a start that is no time', [{ ...REST, start_at: 'soon' }], '/0/start_at', /must be an RFC 3339 time/],
  [
    'a start on no calendar',
    [{ ...REST, start_at: '2026-02-30T00:00:00Z' }],
    '/0/start_at',
    /is no time on the calendar/,
  ],
  [
    'approvals of nobody',
    [{ ...REST, approval: { before: { count: 0 } } }],
    '/0/approval/before/count',
    /must be >= 1/,
  ],
  [
    'a check without TLS',
    [{ ...REST, gates: { checks: [{ name: 'c', url: 'http://ci.example.com' }] } }],
    '/0/gates/checks/0/url',
    /must be an https:\/\/ URL/,
  ],
]

test('waves that cannot be are refused as those of a write, of an amendment and of a strategy', async (t) => {
  const fleet = await start(t)
  const running = await fleet.start(CHANGE, [REST])
  for (const [what, given, at, says] of WAVES) {
    const waves = given.map((wave, i) => ({ name: `w${i}`, ...wave }))
    const path = (above: string) => ({
      status: 400,
      says: new RegExp(`^${above}/waves${at} .*${says.source}`),
    })
    const rollout = { waves }
    await t.test(what, async () => {
      await assertRefused(fleet, ['POST', '/batch'], { operations: CHANGE, rollout }, path('/rollout'))
      await assertRefused(
        fleet,
        ['POST', '/batch'],
        { operations: CHANGE, rollout, dry_run: true },
        path('/rollout'),
      )
      await assertRefused(
        fleet,
        ['POST', `/rollouts/${running}/amend`],
        { operations: CHANGE, waves },
        path(''),
      )
      await assertRefused(fleet, ['POST', '/strategies'], { id: 'new', waves }, path(''))
    })
  }
})

/** What else may be wrong with the rollout of a write. */
const ROLLOUTS: readonly (readonly [what: string, rollout: Json, status: number, says: RegExp])[] = [
  ['no way to go', {}, 400, /^\/rollout needs one of strategy and waves/],
  ['two ways to go', { strategy: 'default', waves: [REST] }, 400, /has strategy and waves: give only one/],
  ['no object', 'default', 400, /^\/rollout must be an object, not "default"/],
  ['an unknown strategy', { strategy: 'defalt' }, 400, /^\/rollout\/strategy names no strategy "defalt"/],
  [
    'an unknown field',
    { waves: [REST], stategy: 'default' },
    400,
    /^\/rollout\/stategy is an unknown field: known are strategy, waves/,
  ],
  ['an id of its own', { waves: [REST], id: 'mine' }, 400, /^\/rollout\/id is an unknown field/],
  ['another reaction', { waves: [REST], on_failure: 'stop' }, 400, /must be one of pause, abort, not "stop"/],
  ['an endless bake', { waves: [REST], bake_s: FOR_EVER }, 400, /^\/rollout\/bake_s must be <= /],
  ['an unknown rollout to supersede', { waves: [REST], supersedes: 'r99' }, 400, /names no rollout "r99"/],
  [
    'a cluster that there is not',
    { waves: [{ name: 'x', clusters: ['one', 'none'] }] },
    400,
    /^\/rollout\/waves\/0\/clusters\/1 names no live cluster: "none"/,
  ],
  [
    'a cluster that was deleted',
    { waves: [{ name: 'x', clusters: ['gone'] }] },
    400,
    /^\/rollout\/waves\/0\/clusters\/0 names no live cluster: "gone"/,
  ],
  [
    'clusters that it leaves out',
    { waves: [{ name: 'x', clusters: ['one'] }], unmatched: 'refuse' },
    400,
    /^\/rollout\/waves leaves 1 clusters in no wave: two/,
  ],
  [
    'a check that the service may not ask',
    { waves: [{ ...REST, gates: { checks: [{ name: 'c', url: 'https://ci.example.com' }] } }] },
    400,
    /ROLLOUT_CHECK_URLS is not set/,
  ],
]

test('a write with a rollout that cannot be is refused', async (t) => {
  const fleet = await start(t)
  for (const [what, rollout, status, says] of ROLLOUTS)
    await t.test(what, async () => {
      for (const dry_run of [false, true])
        await assertRefused(
          fleet,
          ['POST', '/batch'],
          { operations: CHANGE, rollout, dry_run },
          { status, says },
        )
    })
})

/** Changes that no rollout brings to any cluster. */
const NOTHING: readonly (readonly [
  what: string,
  operations: readonly JsonObject[],
  status: number,
  says: RegExp,
])[] = [
  ['no operations', [], 400, /^\/operations must not be empty/],
  ['the values that are there', [tagOf('a', 'v1.0.0')], 409, /no cluster would be served anything else/],
  [
    'what no cluster is served',
    [{ op: 'patch', type: 'clusters', id: 'one', patch: { node_count: 3 } }],
    409,
    /no cluster would be served anything else/,
  ],
  [
    'a definition that nobody uses',
    [{ op: 'create', type: 'namespaces', document: { id: 'unused' } }],
    409,
    /no cluster would be served anything else/,
  ],
  [
    'a new cluster',
    [
      {
        op: 'create',
        type: 'clusters',
        document: { id: 'n', cluster_name: 'n', cluster_dns: 'n.example.com', environment: 'dev' },
      },
    ],
    400,
    /^\/clusters\/n would be created or restored/,
  ],
  [
    'a cluster that goes',
    [{ op: 'delete', type: 'clusters', id: 'one' }],
    400,
    /^\/clusters\/one would be deleted/,
  ],
  [
    'another DNS name',
    [{ op: 'patch', type: 'clusters', id: 'one', patch: { cluster_dns: 'x.example.com' } }],
    400,
    /^\/clusters\/one would get another DNS name/,
  ],
]

test('a rollout of nothing, or of what no wave can bring, is refused', async (t) => {
  const fleet = await start(t)
  for (const [what, operations, status, says] of NOTHING)
    await t.test(what, () =>
      assertRefused(
        fleet,
        ['POST', '/batch'],
        { operations: [...operations], rollout: { waves: [REST] } },
        { status, says },
      ),
    )
})

test('a parameter that names no strategy, or none that there is, is refused', async (t) => {
  const fleet = await start(t)
  for (const [query, says] of [
    ['rollout=none', /names no strategy "none"/],
    ['rollout=', /names no strategy ""/],
    ['rollout=default&rollout=default', /\?rollout is given more than once/],
    ['rollot=default', /\?rollot is an unknown parameter/],
  ] as const)
    await assertRefused(
      fleet,
      ['PATCH', `/platform_components/a?${query}`],
      { oci_tag: 'v2.0.0' },
      { status: 400, says },
    )
})

/** What cannot be done to a running rollout of one wave, `all`. */
const ACTIONS: readonly (readonly [action: string, body: Json, status: number, says: RegExp])[] = [
  ['skip', {}, 400, /needs one of wave and clusters/],
  ['skip', { wave: 'all', clusters: ['one'] }, 400, /needs one of wave and clusters/],
  ['skip', { wave: 'none' }, 400, /^\/wave names no wave: "none"; there are all/],
  ['skip', { clusters: ['one', 'bare'] }, 400, /^\/clusters\/1 "bare" is in no wave of this rollout/],
  ['skip', { clusters: [] }, 400, /^\/clusters must not be empty/],
  ['approve', { wave: 'none' }, 400, /names no wave/],
  ['approve', {}, 400, /names a wave that needs no approval after it/],
  ['check', { wave: 'all' }, 400, /^\/name is required/],
  ['check', { wave: 'none', name: 'smoke', ok: true }, 400, /^\/wave names no wave: "none"/],
  ['check', { wave: 'all', name: 'smoke', ok: true }, 400, /names no check of wave "all": "smoke"/],
  ['pause', { reason: 'x' }, 400, /^\/reason is an unknown field: known are remark/],
  ['pause', [], 400, /must be an object/],
  ['resume', {}, 409, /is running: there is nothing to resume/],
  ['finish', { when: 'now' }, 400, /^\/when is an unknown field/],
  ['amend', {}, 400, /^\/operations is required/],
  ['amend', { operations: [] }, 400, /^\/operations must not be empty/],
  ['amend', { operations: [tagOf('a', 'v1.0.0')] }, 409, /no cluster would be served anything else/],
  ['amend', { operations: CHANGE, wave: 'all' }, 400, /^\/wave is an unknown field/],
  ['amend', { operations: CHANGE, strategy: 'none' }, 400, /names no strategy "none"/],
  ['explode', {}, 404, /no route/],
]

test('what cannot be done to a rollout is refused, whether it runs, has ended or never was', async (t) => {
  const fleet = await start(t)
  const id = await fleet.start(CHANGE, [REST])
  for (const [action, body, status, says] of ACTIONS)
    await assertRefused(fleet, ['POST', `/rollouts/${id}/${action}`], body, { status, says })
  assert.equal((await fleet.act(id, 'abort')).status, 200)
  for (const [action, body] of [
    ['abort', {}],
    ['pause', {}],
    ['resume', {}],
    ['retry', {}],
    ['finish', {}],
    ['approve', {}],
    ['skip', { wave: 'all' }],
    ['amend', { operations: CHANGE }],
  ] as const) {
    const ended = { status: 409, says: /is aborted: it cannot be changed any more/ }
    await assertRefused(fleet, ['POST', `/rollouts/${id}/${action}`], body, ended)
    const unknown = { status: 404, says: /no rollout "r99"/ }
    await assertRefused(fleet, ['POST', `/rollouts/r99/${action}`], body, unknown)
  }
})

/** Freezes that never are, or cannot be. */
const FREEZES: readonly (readonly [what: string, freeze: JsonObject, says: RegExp])[] = [
  ['no reason', { reason: undefined as never }, /^\/reason is required/],
  ['a selector that is none', { selector: 'env in (' }, /^\/selector .*position/],
  [
    'an end before its start',
    { from: '2026-01-02T00:00:00Z', until: '2026-01-01T00:00:00Z' },
    /^\/until must be after from/,
  ],
  ['times that never come', { cron: '0 0 30 2 *', duration_s: 60 }, /^\/cron names a time that never comes/],
  [
    'no time between its bounds',
    { cron: '0 0 1 6 *', duration_s: 60, from: '2026-01-01T00:00:00Z', until: '2026-02-01T00:00:00Z' },
    /^\/cron names no time between from and until/,
  ],
  ['times without a length', { cron: '0 0 * * *' }, /^\/duration_s is required with cron/],
  ['a zone of its own', { zone: 'UTC' }, /^\/zone goes with cron only/],
  [
    'a zone that is none',
    { cron: '0 0 * * *', duration_s: 60, zone: 'X/Y' },
    /^\/zone must be an IANA time zone/,
  ],
  ['an unknown field', { selektor: 'env=dev' }, /^\/selektor is an unknown field/],
]

test('a freeze that never is, or cannot be, is refused', async (t) => {
  const fleet = await start(t)
  for (const [what, freeze, says] of FREEZES)
    await t.test(what, () =>
      assertRefused(
        fleet,
        ['POST', '/freezes'],
        JSON.parse(JSON.stringify({ id: 'new', reason: 'x', ...freeze })),
        { status: 400, says },
      ),
    )
})

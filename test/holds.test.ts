// Holds over HTTP: a cluster goes on being served what it was, until the time or until it is released.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { fleetOf } from './reporting-clusters.ts'
import { type RolledFleet, startRolled, tagOf, wavesOf } from './rolled-fleet.ts'
import { READ_TOKEN } from './service.ts'

const FLEET = fleetOf({ one: {}, two: {}, prod: { environment: 'prod' } })
const POLL = '/api/v2/flux/clusters/one.k8s.example.com/platform-components'

async function bytesOf({ service }: RolledFleet): Promise<string> {
  return (await service.call('GET', POLL, { token: READ_TOKEN })).text
}

async function tokenOf({ service }: RolledFleet, grant: JsonObject): Promise<string> {
  const { status, body, text } = await service.call('POST', '/tokens', { body: { name: 'test', ...grant } })
  assert.equal(status, 201, text)
  return body.secret
}

describe('a cluster that is held', () => {
  test('gets the same bytes whatever is written or rolled out, and its release says before what it changes', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const { service } = fleet
    const before = await bytesOf(fleet)
    const made = await service.call('PUT', '/holds/one', { body: { reason: 'the shop is busy' } })
    assert.deepEqual([made.status, made.headers.location], [201, '/holds/one'], made.text)
    assert.deepEqual(made.body, {
      cluster: 'one',
      reason: 'the shop is busy',
      held_by: 'writer',
      since: '2026-03-01T12:00:00.000Z',
    })
    assert.equal(await bytesOf(fleet), before)
    await service.call('PATCH', '/platform_components/a', { body: { oci_tag: 'v2.0.0' } })
    await service.call('PUT', '/clusters/one/platform_components/b', { body: {} })
    await fleet.start(
      [{ op: 'patch', type: 'platform_components', id: 'a', patch: { component_path: 'x' } }],
      [{ name: 'all', rest: true }],
    )
    assert.equal(await bytesOf(fleet), before)
    const preview = await service.call('DELETE', '/holds/one?dry_run=true')
    assert.equal(preview.status, 200, preview.text)
    const { clusters, inputs } = preview.body.impact
    assert.deepEqual(
      [clusters, inputs[0].fields, inputs[1].added],
      [1, { '/component_path': 1, '/source/oci_tag': 1 }, 1],
      JSON.stringify(inputs),
    )
    assert.equal(await bytesOf(fleet), before)
    const released = await service.call('DELETE', '/holds/one')
    assert.deepEqual([released.status, released.body.cluster], [200, 'one'], released.text)
    assert.deepEqual(await fleet.tags('one'), { a: 'v2.0.0', b: 'v1.0.0' })
    assert.equal((await service.call('DELETE', '/holds/one')).status, 404)
  })

  test('many are held and released as one revision, by selector or by id, and those that are not held are left alone', async (t) => {
    const { service } = await startRolled(t, FLEET)
    const batch = (operation: JsonObject, more: JsonObject = {}) =>
      service.call('POST', '/batch', { body: { operations: [operation], ...more } })
    const held = async () =>
      (await service.call('GET', '/holds')).body.map((hold: JsonObject) => hold.cluster)
    const hold = { op: 'hold', reason: 'the line is down', selector: 'environment!=prod' }
    const preview = await batch(hold, { dry_run: true })
    assert.deepEqual([preview.body.changes.length, preview.body.impact.clusters], [2, 0], preview.text)
    const made = await batch(hold, { plan: preview.body.plan })
    assert.deepEqual([made.status, made.body.changes], [200, 2], made.text)
    assert.deepEqual((await held()).sort(), ['one', 'two'])
    assert.equal((await service.call('GET', '/holds/two')).body.held_by, 'writer')
    const released = await batch({ op: 'release', clusters: ['one', 'prod'] })
    assert.deepEqual([released.status, released.body.changes], [200, 1], released.text)
    assert.deepEqual(await held(), ['two'])
    const past = await batch({ ...hold, until: '2020-01-01T00:00:00Z' })
    assert.deepEqual(past.body.details, [
      { path: '/operations/0/until', message: 'is 2020-01-01T00:00:00.000Z, which is over already' },
    ])
    const unknown = await batch({ op: 'hold', reason: 'why', clusters: ['two', 'three'] })
    assert.deepEqual(
      [unknown.status, unknown.body.details[0].path],
      [404, '/operations/0/clusters/1'],
      unknown.text,
    )
    const token = await tokenOf({ service } as RolledFleet, { role: 'editor', selector: 'environment!=prod' })
    const body = { operations: [{ op: 'hold', reason: 'why', clusters: ['prod'] }] }
    assert.equal((await service.call('POST', '/batch', { body, token })).status, 403)
  })

  test('holding it again changes reason and end alone', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const { service } = fleet
    await service.call('PUT', '/holds/one', { body: { reason: 'busy' } })
    await service.call('PATCH', '/platform_components/a', { body: { oci_tag: 'v2.0.0' } })
    fleet.pass(60)
    const body = { reason: 'still busy', until: '2026-03-01T14:00:00+01:00' }
    const again = await service.call('PUT', '/holds/one', { body })
    assert.deepEqual(
      [again.status, again.body.since, again.body.until, again.body.expires_in_s],
      [200, '2026-03-01T12:00:00.000Z', '2026-03-01T13:00:00.000Z', 3540],
    )
    assert.deepEqual(await fleet.tags('one'), { a: 'v1.0.0' })
  })

  test('is released when its time is over, which is told before', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const { service } = fleet
    await service.call('PUT', '/holds/two', { body: { reason: 'for good' } })
    await service.call('PUT', '/holds/one', { body: { reason: 'busy', until: '2026-03-01T13:00:00Z' } })
    await service.call('PATCH', '/platform_components/a', { body: { oci_tag: 'v2.0.0' } })
    const { body: listed } = await service.call('GET', '/holds')
    assert.deepEqual(
      listed.map(({ cluster, expires_in_s }: JsonObject) => [cluster, expires_in_s]),
      [
        ['one', 3600],
        ['two', undefined],
      ],
    )
    fleet.pass(3599)
    await fleet.tick()
    assert.equal((await fleet.tags('one')).a, 'v1.0.0')
    fleet.pass(1)
    await fleet.tick()
    assert.equal((await fleet.tags('one')).a, 'v2.0.0')
    assert.deepEqual((await service.call('GET', '/holds')).headers['x-total-count'], '1')
    const { body: revisions } = await service.call('GET', '/revisions?limit=1')
    assert.deepEqual(
      [revisions[0].actor, revisions[0].operation, revisions[0].message],
      ['service', 'release cluster one', 'the hold is over: busy'],
    )
  })

  test('is told apart by its status, once it has applied what it is held at', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await fleet.settle('one', 'two')
    const deliveryOf = async (id: string) =>
      (await fleet.service.call('GET', `/clusters/${id}/status`)).body.delivery
    assert.equal(await deliveryOf('one'), 'applied')
    await fleet.service.call('PUT', '/holds/one', { body: { reason: 'busy' } })
    assert.equal(await deliveryOf('one'), 'held')
    await fleet.service.call('PATCH', '/platform_components/a', { body: { oci_tag: 'v2.0.0' } })
    assert.deepEqual([await deliveryOf('one'), await deliveryOf('two')], ['held', 'behind'])
    const { body } = await fleet.service.call('GET', '/status?delivery=held')
    assert.deepEqual(
      body.clusters.map(({ cluster }: JsonObject) => cluster),
      ['one'],
    )
  })

  test('in an open wave counts as absent, and does not pass for one that has applied the change', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await fleet.settle('one', 'two')
    await fleet.service.call('PUT', '/holds/one', { body: { reason: 'busy' } })
    const id = await fleet.start(
      [tagOf('a', 'v2.0.0')],
      [
        { name: 'first', clusters: ['one', 'two'], deadline_s: 600 },
        { name: 'rest', rest: true },
      ],
    )
    fleet.pass(10)
    await fleet.settle('one', 'two')
    await fleet.tick()
    const [first] = (await fleet.rollout(id)).waves
    assert.deepEqual([first.state, first.served, first.applied], ['open', 1, 1])
    fleet.pass(600)
    await fleet.settle('one', 'two')
    await fleet.tick()
    const later = await fleet.rollout(id)
    assert.deepEqual(
      [later.waves[0].state, later.waves[0].set_aside, later.set_aside],
      ['passed', 1, ['one']],
    )
  })
})

describe('who may hold', () => {
  test("a cluster's own token holds and releases its own cluster, and no other", async (t) => {
    const fleet = await startRolled(t, FLEET)
    const { service } = fleet
    const token = await tokenOf(fleet, { role: 'cluster', cluster: 'one' })
    const body = { reason: 'busy' }
    const made = await service.call('PUT', '/holds/one', { token, body })
    assert.deepEqual([made.status, made.body.held_by], [201, 'test'], made.text)
    assert.equal((await service.call('GET', '/holds/one', { token })).status, 200)
    for (const [method, path] of [
      ['PUT', '/holds/two'],
      ['GET', '/holds/two'],
      ['DELETE', '/holds/two'],
    ] as const) {
      const other = await service.call(method, path, { token, ...(method === 'PUT' && { body }) })
      assert.deepEqual([other.status, other.body.reason], [403, 'other_cluster'], `${method} ${path}`)
    }
    assert.equal((await service.call('GET', '/holds', { token })).status, 403)
    assert.equal((await service.call('PATCH', '/clusters/one', { token, body: {} })).status, 403)
    assert.equal((await service.call('DELETE', '/holds/one?dry_run=true', { token })).status, 200)
    assert.equal((await service.call('DELETE', '/holds/one', { token })).status, 200)
  })

  test('an editor holds what is in its scope, and a viewer previews', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const { service } = fleet
    const body = { reason: 'busy' }
    const token = await tokenOf(fleet, { role: 'editor', selector: 'environment=dev' })
    assert.equal((await service.call('PUT', '/holds/one', { token, body })).status, 201)
    const outside = await service.call('PUT', '/holds/prod', { token, body })
    assert.deepEqual([outside.status, outside.body.reason], [403, 'out_of_scope'], outside.text)
    await service.call('PUT', '/holds/prod', { body })
    assert.equal((await service.call('DELETE', '/holds/prod', { token })).status, 403)
    const viewed = await service.call('PUT', '/holds/two?dry_run=true', { token: READ_TOKEN, body })
    assert.equal(viewed.status, 200, viewed.text)
    const refused = await service.call('PUT', '/holds/two', { token: READ_TOKEN, body })
    assert.deepEqual([refused.status, refused.body.reason], [403, 'needs_editor'], refused.text)
    await service.call('DELETE', '/tokens/test')
    const typed = await tokenOf(fleet, { role: 'editor', types: ['namespaces'] })
    assert.equal((await service.call('PUT', '/holds/two', { token: typed, body })).status, 403)
  })
})

for (const [what, path, body, status, message] of [
  ['an unknown cluster', '/holds/none', { reason: 'busy' }, 404, /no cluster "none"/],
  [
    'an end that is over',
    '/holds/one',
    { reason: 'x', until: '2026-03-01T11:00:00Z' },
    400,
    /\/until is 2026-03-01T11:00:00.000Z, which is over already/,
  ],
  ['an end that is no time', '/holds/one', { reason: 'x', until: 'monday' }, 400, /\/until/],
  ['no reason', '/holds/one', {}, 400, /reason/],
  ['an empty reason', '/holds/one', { reason: '' }, 400, /\/reason/],
  ['an unknown field', '/holds/one', { reason: 'x', till: 'x' }, 400, /till/],
  ['no object', '/holds/one', [], 400, /must be an object/],
] as const) {
  test(`a hold with ${what} is refused, and nothing is stored`, async (t) => {
    const fleet = await startRolled(t, FLEET)
    const { revision } = fleet.service.engine.state
    const answer = await fleet.service.call('PUT', path, { body: body as never })
    assert.equal(answer.status, status, answer.text)
    assert.match(answer.body.message, message)
    assert.equal(fleet.service.engine.state.revision, revision)
  })
}

test('a hold has an ETag, for whoever wants to change what they have seen', async (t) => {
  const { service } = await startRolled(t, FLEET)
  const body = { reason: 'busy' }
  const { headers } = await service.call('PUT', '/holds/one', { body, headers: { 'if-none-match': '*' } })
  const etag = String(headers.etag)
  assert.equal((await service.call('GET', '/holds/one')).headers.etag, etag)
  const again = await service.call('PUT', '/holds/one', { body, headers: { 'if-none-match': '*' } })
  assert.equal(again.status, 412)
  assert.equal((await service.call('DELETE', '/holds/one', { headers: { 'if-match': '"1"' } })).status, 412)
  assert.equal((await service.call('DELETE', '/holds/one', { headers: { 'if-match': etag } })).status, 200)
})

test('what is absent through a rollout that holds stragglers keeps what it has, and those who are back do not', async (t) => {
  const fleet = await startRolled(t, FLEET)
  await fleet.settle('one', 'two', 'prod')
  fleet.pass(7200)
  await fleet.settle('one')
  const id = await fleet.start([tagOf('a', 'v2.0.0')], [{ name: 'all', rest: true, deadline_s: 60 }], {
    stragglers: 'hold',
    bake_s: 600,
  })
  fleet.pass(61)
  await fleet.settle('one')
  await fleet.tick()
  assert.deepEqual((await fleet.rollout(id)).set_aside.toSorted(), ['prod', 'two'])
  await fleet.settle('two')
  fleet.pass(600)
  await fleet.settle('one', 'two')
  await fleet.tick()
  const done = await fleet.rollout(id)
  assert.deepEqual([done.state, done.set_aside], ['finished', ['prod']])
  const { body: holds } = await fleet.service.call('GET', '/holds')
  assert.deepEqual(
    holds.map(({ cluster, held_by }: JsonObject) => [cluster, held_by]),
    [['prod', `rollout/${id}`]],
  )
  assert.deepEqual(
    [(await fleet.tags('one')).a, (await fleet.tags('two')).a, (await fleet.tags('prod')).a],
    ['v2.0.0', 'v2.0.0', 'v1.0.0'],
  )
  await fleet.start(
    [
      tagOf('b', 'v2.0.0'),
      { op: 'patch', type: 'platform_components', id: 'a', patch: { oci_tag: 'v3.0.0' } },
    ],
    wavesOf('one'),
  )
})

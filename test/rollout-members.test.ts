// Who is in the waves of a rollout: clusters that come later, change or go while it runs.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { fleetOf } from './reporting-clusters.ts'
import { type RolledFleet, startRolled, tagOf } from './rolled-fleet.ts'

const FLEET = fleetOf({
  'dev-1': {},
  'dev-2': {},
  'prod-1': { environment: 'prod' },
  'prod-2': { environment: 'prod', components: [] },
})
const CHANGE = [tagOf('a', 'v2.0.0')]
const WAVES: JsonObject[] = [
  { name: 'dev', selector: 'environment=dev' },
  { name: 'qa', selector: 'environment=qa' },
  { name: 'prod', selector: 'environment=prod', deadline_s: 100_000 },
]

async function membersOf({ service }: RolledFleet, id: string, query = ''): Promise<string[]> {
  const { status, body, text } = await service.call('GET', `/rollouts/${id}/members${query}`)
  assert.equal(status, 200, text)
  // biome-ignore lint/suspicious/noExplicitAny: a member
  return body.map(({ cluster, wave, state }: any) => `${cluster} ${wave} ${state}`).toSorted()
}

async function create({ service }: RolledFleet, id: string, environment: string, more: JsonObject = {}) {
  const body = {
    id,
    cluster_name: id,
    cluster_dns: `${id}.k8s.example.com`,
    environment,
    platform_components: [{ id: 'a' }],
    ...more,
  }
  const { status, text } = await service.call('POST', '/clusters', { body })
  assert.equal(status, 201, text)
}

describe('a cluster that comes later', () => {
  test('enters the wave that it matches: it is opened with one that is open or has passed, and waits with others', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await fleet.settle('dev-1', 'dev-2', 'prod-1')
    const id = await fleet.start(CHANGE, WAVES)
    assert.deepEqual(await membersOf(fleet, id), ['dev-1 dev open', 'dev-2 dev open', 'prod-1 prod waiting'])
    await create(fleet, 'dev-3', 'dev')
    await create(fleet, 'prod-3', 'prod')
    assert.equal((await fleet.tags('dev-3')).a, 'v1.0.0')
    await fleet.tick()
    assert.deepEqual([(await fleet.tags('dev-3')).a, (await fleet.tags('prod-3')).a], ['v2.0.0', 'v1.0.0'])
    const { waves, events } = await fleet.rollout(id)
    assert.deepEqual([waves[0].members, waves[2].members], [3, 2])
    assert.ok(events.some(({ what }: { what: string }) => what === 'wave dev: dev-3 joined'))
    fleet.pass(10)
    await fleet.settle('dev-1', 'dev-2', 'dev-3')
    await fleet.tick()
    await create(fleet, 'dev-4', 'dev')
    await create(fleet, 'qa-1', 'qa')
    await fleet.tick()
    // A wave that was skipped for want of members opens as any other, and has to be proven.
    assert.deepEqual(await fleet.waves(id), ['passed', 'open', 'open'])
    for (const each of ['dev-4', 'qa-1']) assert.equal((await fleet.tags(each)).a, 'v2.0.0', each)
    fleet.pass(10)
    await fleet.settle('dev-4', 'qa-1', 'prod-1', 'prod-3')
    await fleet.tick()
    assert.equal((await fleet.rollout(id)).state, 'finished')
    assert.deepEqual(fleet.failures, [])
  })

  test('is opened within max_concurrent of its wave, even when that has passed', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await fleet.settle('dev-1', 'dev-2', 'prod-1')
    const id = await fleet.start(CHANGE, [
      { name: 'dev', selector: 'environment=dev', max_concurrent: 1 },
      { name: 'rest', rest: true },
    ])
    for (let i = 0; i < 2; i++) {
      fleet.pass(10)
      await fleet.settle('dev-1', 'dev-2')
      await fleet.tick()
    }
    assert.deepEqual(await fleet.waves(id), ['passed', 'open'])
    for (const each of ['dev-3', 'dev-4']) await create(fleet, each, 'dev')
    await fleet.tick()
    const tags = async () => [(await fleet.tags('dev-3')).a, (await fleet.tags('dev-4')).a]
    assert.deepEqual(await tags(), ['v2.0.0', 'v1.0.0'])
    fleet.pass(10)
    await fleet.settle('dev-3')
    await fleet.tick()
    assert.deepEqual(await tags(), ['v2.0.0', 'v2.0.0'])
  })

  test('because it is assigned what the rollout changes, joins too', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await fleet.settle('dev-1', 'dev-2')
    const id = await fleet.start(CHANGE, WAVES)
    const assigned = await fleet.service.call('PUT', '/clusters/prod-2/platform_components/a', { body: {} })
    assert.equal(assigned.status, 201, assigned.text)
    await fleet.tick()
    assert.deepEqual(await membersOf(fleet, id, '?wave=prod'), ['prod-1 prod waiting', 'prod-2 prod waiting'])
  })

  test('while the rollout is paused waits for it to go on', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const id = await fleet.start(CHANGE, WAVES)
    await fleet.act(id, 'pause')
    await create(fleet, 'dev-3', 'dev')
    await fleet.tick()
    assert.equal((await fleet.tags('dev-3')).a, 'v1.0.0')
    await fleet.act(id, 'resume')
    await fleet.tick()
    assert.equal((await fleet.tags('dev-3')).a, 'v2.0.0')
  })
})

describe('a member', () => {
  test('that is deleted drops out, and what its wave needs is of those that are left', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await fleet.settle('dev-1', 'dev-2')
    const id = await fleet.start(CHANGE, WAVES)
    fleet.pass(10)
    await fleet.settle('dev-1')
    await fleet.tick()
    assert.equal((await fleet.rollout(id)).waves[0].gates[0].needed_count, 2)
    await fleet.service.call('DELETE', '/clusters/dev-2')
    const { waves } = await fleet.rollout(id)
    assert.deepEqual(
      [waves[0].members, waves[0].gates[0].needed_count, waves[0].gates[0].holds],
      [1, 1, true],
    )
    assert.deepEqual(await membersOf(fleet, id, '?wave=dev'), ['dev-1 dev healthy'])
    await fleet.tick()
    assert.equal((await fleet.rollout(id)).waves[2].state, 'open')
  })

  test('whose labels change stays in its wave', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await fleet.settle('dev-1', 'dev-2')
    const id = await fleet.start(CHANGE, WAVES)
    for (const [cluster, environment] of [
      ['dev-2', 'prod'],
      ['prod-1', 'dev'],
    ])
      await fleet.service.call('PATCH', `/clusters/${cluster}`, { body: { environment } as JsonObject })
    await fleet.tick()
    assert.deepEqual(await membersOf(fleet, id), ['dev-1 dev open', 'dev-2 dev open', 'prod-1 prod waiting'])
  })

  test('that is skipped returns to the base, and the wave passes without it', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await fleet.settle('dev-1', 'dev-2')
    const id = await fleet.start(CHANGE, WAVES)
    const skipped = await fleet.act(id, 'skip', { clusters: ['dev-2'] })
    assert.equal(skipped.status, 200, skipped.text)
    assert.deepEqual(await membersOf(fleet, id, '?state=skipped'), ['dev-2 dev skipped'])
    assert.equal((await fleet.tags('dev-2')).a, 'v1.0.0')
    fleet.pass(10)
    await fleet.settle('dev-1')
    await fleet.tick()
    assert.equal((await fleet.rollout(id)).waves[0].state, 'passed')
    const unknown = await fleet.act(id, 'skip', { clusters: ['dev-1', 'prod-2'] })
    assert.equal(unknown.status, 400)
    assert.match(unknown.body.message, /\/clusters\/1 "prod-2" is in no wave of this rollout/)
  })
})

test('members are listed by wave and state, a page at a time, and only while the rollout goes on', async (t) => {
  const fleet = await startRolled(t, FLEET)
  await fleet.settle('dev-1', 'dev-2')
  const id = await fleet.start(CHANGE, WAVES)
  fleet.pass(10)
  await fleet.cluster('dev-1').poll()
  assert.deepEqual(await membersOf(fleet, id, '?wave=dev&state=served'), ['dev-1 dev served'])
  const page = await fleet.service.call('GET', `/rollouts/${id}/members?limit=1&offset=1`)
  assert.equal(page.headers['x-total-count'], '3')
  assert.match(String(page.headers.link), /rel="prev".*rel="next"/)
  assert.equal(page.body.length, 1)
  const wrong = await fleet.service.call('GET', `/rollouts/${id}/members?wave=rest`)
  assert.equal(wrong.status, 400)
  assert.match(wrong.body.message, /\?wave must be one of dev, qa, prod, not "rest"/)
  assert.equal((await fleet.service.call('GET', '/rollouts/r99/members')).status, 404)
  await fleet.act(id, 'abort')
  const ended = await fleet.service.call('GET', `/rollouts/${id}/members`)
  assert.deepEqual([ended.status, ended.body.reason], [409, 'rollout_ended'])
})

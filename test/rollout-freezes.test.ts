// Freezes, windows and a stopped line: what they keep back, until when, and what always passes.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { fleetOf } from './reporting-clusters.ts'
import { type RolledFleet, startRolled, tagOf } from './rolled-fleet.ts'

const FLEET = fleetOf({ dev: {}, prod: { environment: 'prod' } })
const CHANGE = [tagOf('a', 'v2.0.0')]
const WAVES = [
  { name: 'dev', selector: 'environment=dev' },
  { name: 'prod', rest: true },
]
const MERGE = { 'content-type': 'application/merge-patch+json' }

async function freeze({ service }: RolledFleet, document: JsonObject): Promise<void> {
  const { status, text } = await service.call('POST', '/freezes', {
    body: { reason: 'holidays', ...document },
  })
  assert.equal(status, 201, text)
}

async function settled(fleet: RolledFleet, ...ids: string[]): Promise<void> {
  fleet.pass(10)
  await fleet.settle(...ids)
  await fleet.tick()
}

async function started(t: Parameters<typeof startRolled>[0], waves: readonly JsonObject[] = WAVES) {
  const fleet = await startRolled(t, FLEET)
  await fleet.settle('dev', 'prod')
  fleet.pass(10)
  return { fleet, id: await fleet.start(CHANGE, waves) }
}

const write = ({ service }: RolledFleet, query = '', headers: Record<string, string> = {}, token?: string) =>
  service.call('PATCH', `/platform_components/a${query}`, {
    body: { component_version: '2.0.0' },
    headers: { ...MERGE, ...headers },
    ...(token !== undefined && { token }),
  })

describe('a freeze', () => {
  test('refuses what would change a cluster that it covers, and says until when', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await freeze(fleet, { id: 'end', selector: 'environment=prod', until: '2026-03-02T00:00:00Z' })
    const refused = await write(fleet)
    assert.deepEqual(
      [refused.status, refused.body.reason, refused.body.next_open],
      [409, 'frozen', '2026-03-02T00:00:00.000Z'],
      refused.text,
    )
    assert.match(refused.body.message, /^this would change prod, under freeze "end" \(holidays\)/)
    const preview = await write(fleet, '?dry_run=true')
    assert.deepEqual(
      preview.body.requires.map(({ kind, next_open }: JsonObject) => [kind, next_open]),
      [['freeze', '2026-03-02T00:00:00.000Z']],
    )
    const dev = await fleet.service.call('PATCH', '/clusters/dev', {
      body: { labels: { x: '1' }, platform_components: [] },
      headers: MERGE,
    })
    assert.notEqual(dev.body.reason, 'frozen', dev.text)
    fleet.pass(12 * 3600)
    assert.equal((await write(fleet)).status, 200)
  })

  test('ends with the last of those that cover a cluster', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await freeze(fleet, { id: 'first', until: '2026-03-02T00:00:00Z' })
    await freeze(fleet, { id: 'second', from: '2026-03-01T23:00:00Z', until: '2026-03-05T00:00:00Z' })
    assert.equal((await write(fleet)).body.next_open, '2026-03-05T00:00:00.000Z')
  })

  test('is passed by whom it names, with a reason', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const ann = await fleet.token('ann', { role: 'editor' })
    const why = { 'x-change-message': 'CVE-2026-1' }
    await freeze(fleet, { id: 'end' })
    assert.equal((await write(fleet, '?bypass=true')).status, 400)
    assert.equal((await write(fleet, '?bypass=true', why, ann)).body.reason, 'needs_admin')
    await fleet.service.call('PATCH', '/freezes/end', { body: { bypass: 'nobody' }, headers: MERGE })
    assert.equal((await write(fleet, '?bypass=true', why)).body.reason, 'frozen')
    await fleet.service.call('PATCH', '/freezes/end', { body: { bypass: 'editor' }, headers: MERGE })
    assert.equal((await write(fleet, '?bypass=true', why, ann)).status, 200)
    const { body } = await fleet.service.call('GET', '/revisions?limit=1')
    assert.deepEqual([body[0].message, /past a freeze$/.test(body[0].operation)], ['CVE-2026-1', true])
  })

  test('keeps waves from opening until it ends, and never an abort or a revert', async (t) => {
    const { fleet, id } = await started(t)
    const { revision } = fleet.service.engine.state
    await write(fleet)
    await freeze(fleet, { id: 'end', until: '2026-03-01T13:00:00Z' })
    await settled(fleet, 'dev')
    assert.deepEqual(await fleet.waves(id), ['passed', 'waiting'])
    assert.equal(
      (await fleet.rollout(id)).waiting_for,
      'the end of freeze "end" (holidays) at 2026-03-01T13:00:00.000Z, which covers prod of wave prod',
    )
    assert.equal(fleet.controller.nextLook, Date.parse('2026-03-01T13:00:00Z'))
    const early = await fleet.act(id, 'finish', {}, { query: '?confirm=finish' })
    assert.equal(early.body.reason, 'frozen', early.text)
    const reverted = await fleet.service.call('POST', `/revisions/${revision + 1}/revert`)
    assert.equal(reverted.status, 200, reverted.text)
    fleet.pass(3600)
    await fleet.tick()
    assert.deepEqual(await fleet.waves(id), ['passed', 'open'])
    await freeze(fleet, { id: 'again' })
    assert.equal((await fleet.act(id, 'abort')).body.state, 'aborted')
    assert.deepEqual((await fleet.tags('dev')).a, 'v1.0.0')
  })

  test('is told with its next change, by a schedule in its zone, daylight saving included', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const night = { cron: '0 22 * * *', duration_s: 36_000, zone: 'Europe/Berlin' }
    await freeze(fleet, { id: 'night', selector: 'environment=prod', ...night })
    const status = async () => (await fleet.service.call('GET', '/freezes/night/status')).body
    assert.deepEqual(await status(), {
      ...{ id: 'night', open: true, next_open: null, next_freeze: '2026-03-01T21:00:00.000Z', clusters: 1 },
    })
    // Clocks are put forward in the night of 28 to 29 March 2026: it lasts ten hours all the same.
    fleet.pass((Date.parse('2026-03-28T23:00:00Z') - fleet.now()) / 1000)
    assert.deepEqual([(await status()).open, (await status()).next_open], [false, '2026-03-29T07:00:00.000Z'])
    const unknown = await fleet.service.call('GET', '/freezes/day/status')
    assert.deepEqual([unknown.status, unknown.body.error], [404, 'not_found'], unknown.text)
    assert.match(unknown.body.message, /"day"/)
  })
})

describe('a stopped line', () => {
  test('lets no rollout open or finish for more clusters, while other writes pass', async (t) => {
    const { fleet, id } = await started(t)
    await freeze(fleet, { id: 'stop-the-line', blocks: 'rollouts' })
    assert.equal((await write(fleet)).status, 200)
    await settled(fleet, 'dev')
    assert.deepEqual(await fleet.waves(id), ['passed', 'waiting'])
    await fleet.act(id, 'skip', { wave: 'prod' })
    await fleet.tick()
    assert.equal((await fleet.rollout(id)).state, 'running')
    assert.match(
      (await fleet.rollout(id)).waiting_for,
      /stop-the-line.* covers prod that the finish would change/,
    )
    await fleet.service.call('DELETE', '/freezes/stop-the-line')
    await fleet.tick()
    assert.equal((await fleet.rollout(id)).state, 'finished')
  })

  test('keeps a new rollout pending, and its starter is told', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await freeze(fleet, { id: 'stop-the-line', blocks: 'rollouts', selector: 'environment=dev' })
    const { status, body } = await fleet.service.call('POST', '/batch', {
      body: { operations: CHANGE, rollout: { waves: WAVES } },
    })
    assert.deepEqual([status, body.rollout.state], [202, 'pending'])
    assert.match(body.warnings.join(), /it waits for freeze "stop-the-line" \(holidays\) to be deleted/)
  })
})

describe('a wave', () => {
  test('opens within its window alone', async (t) => {
    const window = { cron: '0 22 * * *', duration_s: 3600, zone: 'UTC' }
    const { fleet, id } = await started(t, [WAVES[0] as JsonObject, { name: 'prod', rest: true, window }])
    await settled(fleet, 'dev')
    assert.match((await fleet.rollout(id)).waiting_for, /^wave prod opens at 2026-03-01T22:00:00.000Z/)
    assert.equal(fleet.controller.nextLook, Date.parse('2026-03-01T22:00:00Z'))
    fleet.pass(10 * 3600)
    await fleet.tick()
    assert.deepEqual(await fleet.waves(id), ['passed', 'open'])
  })

  test('opens not before its start', async (t) => {
    const start_at = '2026-03-01T18:00:00Z'
    const { fleet, id } = await started(t, [WAVES[0] as JsonObject, { name: 'prod', rest: true, start_at }])
    await settled(fleet, 'dev')
    assert.equal((await fleet.rollout(id)).waiting_for, `wave prod starts at ${start_at}`)
    assert.equal(fleet.controller.nextLook, Date.parse(start_at))
    fleet.pass(6 * 3600)
    await fleet.tick()
    assert.deepEqual(await fleet.waves(id), ['passed', 'open'])
  })
})

// Plans of what people do to rollouts and holds: what a preview showed is what is done, also a minute later.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { fleetOf } from './reporting-clusters.ts'
import { startRolled, tagOf, wavesOf } from './rolled-fleet.ts'

test('the plan of a preview holds while time passes, with a reason too, and not once somebody else was there', async (t) => {
  const fleet = await startRolled(t, fleetOf({ one: {}, two: {} }))
  await fleet.settle('one', 'two')
  const id = await fleet.start([tagOf('a', 'v2.0.0')], wavesOf('one', 'two'))
  const look = async (kind: string, body: JsonObject): Promise<string> => {
    const { status, body: found, text } = await fleet.act(id, kind, body, { query: '?dry_run=true' })
    assert.equal(status, 200, text)
    return found.plan
  }
  const act = (kind: string, plan: string, body: JsonObject) =>
    fleet.act(id, kind, body, { query: `?plan=${plan}&confirm=removals,finish` })
  for (const [kind, body, said] of [
    ['pause', {}, { remark: 'a moment' }],
    ['resume', {}, {}],
    ['skip', { wave: 'wave-two' }, { wave: 'wave-two' }],
  ] as const) {
    const plan = await look(kind, body)
    fleet.pass(60)
    const { status, text } = await act(kind, plan, said)
    assert.equal(status, 200, text)
  }
  const outdated = await look('finish', {})
  await fleet.act(id, 'pause')
  const refused = await act('finish', outdated, {})
  assert.deepEqual([refused.status, refused.body.reason], [409, 'plan_changed'])
  const plan = await look('finish', {})
  fleet.pass(60)
  assert.equal((await act('finish', plan, { remark: 'it is urgent' })).status, 200)
  assert.equal((await fleet.rollout(id)).state, 'finished')
})

test('the plan of a hold holds while time passes', async (t) => {
  const { service, pass } = await startRolled(t, fleetOf({ one: {} }))
  const body = { reason: 'a migration' }
  const preview = await service.call('PUT', '/holds/one?dry_run=true', { body })
  pass(60)
  const held = await service.call('PUT', `/holds/one?plan=${preview.body.plan}`, { body })
  assert.equal(held.status, 201, held.text)
})

test('confirmations are joined by a comma, and an unknown one is named', async (t) => {
  const { service } = await startRolled(t, fleetOf({ one: {} }))
  const body = { labels: {} }
  const call = (confirm: string) => service.call('PATCH', `/clusters/one?confirm=${confirm}`, { body })
  assert.equal((await call('finish,removals')).status, 200)
  const { status, body: problem } = await call('removals,all')
  assert.deepEqual(
    [status, problem.details],
    [400, [{ path: '?confirm', message: 'must be one of removals, finish, not "all"' }]],
  )
})

// Approvals of waves: who may give them, what they are bound to, and when they do not count any more.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { fleetOf } from './reporting-clusters.ts'
import { type RolledFleet, startRolled, tagOf } from './rolled-fleet.ts'
import { READ_TOKEN } from './service.ts'

const FLEET = fleetOf({ one: {}, two: { environment: 'prod' } })
const CHANGE = [tagOf('a', 'v2.0.0')]

function wavesWith(approval: JsonObject): JsonObject[] {
  return [
    { name: 'dev', selector: 'environment=dev', approval },
    { name: 'rest', rest: true },
  ]
}

async function refusal(fleet: RolledFleet, id: string, body: JsonObject, token?: string) {
  const { status, body: answer } = await fleet.act(id, 'approve', body, token === undefined ? {} : { token })
  return [status, answer.reason ?? answer.details?.[0].path]
}

describe('a wave that has to be approved before it opens', () => {
  test('waits for as many people as it asks for, none of them twice, and tells whom it waits for', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const ann = await fleet.token('ann', { role: 'editor' })
    const id = await fleet.start(CHANGE, wavesWith({ before: { count: 2 } }))
    assert.equal((await fleet.rollout(id)).state, 'pending')
    assert.equal((await fleet.rollout(id)).waiting_for, '2 more approvals before wave dev')
    for (let i = 0; i < 2; i++) await fleet.act(id, 'approve', { remark: 'looks well' })
    await fleet.tick()
    assert.equal((await fleet.rollout(id)).waiting_for, '1 more approval before wave dev')
    assert.equal((await fleet.act(id, 'approve', {}, { token: ann })).status, 200)
    await fleet.tick()
    const opened = await fleet.rollout(id)
    assert.equal(opened.state, 'running')
    assert.deepEqual(
      opened.approvals.map(({ by, remark }: JsonObject) => [by, remark]),
      [
        ['writer', 'looks well'],
        ['ann', undefined],
      ],
    )
  })

  test('is approved by nobody whose change it is, where others have to', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const ann = await fleet.token('ann', { role: 'editor' })
    const bob = await fleet.token('bob', { role: 'editor' })
    const id = await fleet.start(CHANGE, wavesWith({ before: { not_starter: true } }))
    assert.deepEqual(await refusal(fleet, id, {}), [409, 'own_approval'])
    const amended = await fleet.act(id, 'amend', { operations: [tagOf('a', 'v3.0.0')] }, { token: ann })
    assert.deepEqual([amended.status, amended.body.state], [200, 'pending'], amended.text)
    assert.deepEqual(await refusal(fleet, id, {}, ann), [409, 'own_approval'])
    const { waiting_for } = await fleet.rollout(id)
    assert.equal(waiting_for, '1 more approval before wave dev by somebody other than writer and ann')
    assert.equal((await fleet.act(id, 'approve', {}, { token: bob })).status, 200)
    await fleet.tick()
    assert.deepEqual(await fleet.waves(id), ['open', 'waiting'])
  })

  test('is approved by those who may write all that it changes, or by admins where it says so', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const ann = await fleet.token('ann', { role: 'editor' })
    const dev = await fleet.token('dev', { role: 'editor', selector: 'environment=dev' })
    const own = await fleet.token('own', { role: 'cluster', cluster: 'one' })
    const id = await fleet.start(CHANGE, wavesWith({ before: {}, after: { role: 'admin' } }))
    assert.deepEqual(await refusal(fleet, id, {}, READ_TOKEN), [403, 'needs_editor'])
    assert.deepEqual(await refusal(fleet, id, {}, dev), [403, 'out_of_scope'])
    assert.equal((await refusal(fleet, id, {}, own))[0], 403)
    assert.deepEqual(await refusal(fleet, id, { when: 'after' }, ann), [403, 'needs_admin'])
    assert.equal((await fleet.act(id, 'approve', { when: 'after' })).status, 200)
    assert.equal((await fleet.act(id, 'approve', {}, { token: ann })).status, 200)
  })

  test('is approved in advance, and under no wrong name', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const id = await fleet.start(CHANGE, wavesWith({ after: {} }))
    assert.deepEqual(await refusal(fleet, id, { wave: 'none' }), [400, '/wave'])
    assert.deepEqual(await refusal(fleet, id, { wave: 'rest' }), [400, '/wave'])
    assert.deepEqual(await refusal(fleet, id, { when: 'before' }), [409, 'wave_ended'])
    assert.deepEqual(await refusal(fleet, id, { remark: 1 }), [400, '/remark'])
    assert.equal((await fleet.act(id, 'approve', { wave: 'dev', when: 'after' })).status, 200)
    await fleet.settle('one')
    await fleet.tick()
    assert.deepEqual(await fleet.waves(id), ['passed', 'open'])
    assert.deepEqual(await refusal(fleet, id, { wave: 'dev' }), [409, 'wave_ended'])
  })
})

describe('an approval', () => {
  test('expires', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const id = await fleet.start(CHANGE, wavesWith({ after: { expires_s: 600 } }))
    await fleet.act(id, 'approve')
    fleet.pass(601)
    await fleet.settle('one')
    await fleet.tick()
    assert.equal((await fleet.rollout(id)).waiting_for, '1 more approval after wave dev')
    await fleet.act(id, 'approve')
    await fleet.tick()
    assert.deepEqual(await fleet.waves(id), ['passed', 'open'])
  })

  test('is of one plan: an amendment voids it, and so does a write past the rollout', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const both = [
      {
        op: 'patch',
        type: 'platform_components',
        id: 'a',
        patch: { oci_tag: 'v2.0.0', component_version: '2' },
      },
    ]
    const id = await fleet.start(both, wavesWith({ before: { count: 2 } }))
    const { plan } = await fleet.rollout(id)
    assert.equal((await fleet.act(id, 'approve', { plan })).status, 200)
    await fleet.act(id, 'amend', { operations: [tagOf('a', 'v3.0.0')], message: 'the other tag' })
    const amended = await fleet.rollout(id)
    assert.deepEqual(amended.approvals, [])
    assert.equal(amended.message, 'the other tag')
    assert.notEqual(amended.plan, plan)
    assert.deepEqual(await refusal(fleet, id, { plan }), [409, 'plan_changed'])
    assert.equal((await fleet.act(id, 'approve', { plan: amended.plan })).status, 200)
    const { status, text } = await fleet.service.call('PATCH', '/platform_components/a?bypass=true', {
      body: { oci_tag: 'v4.0.0' },
      headers: { 'x-change-message': 'an attack', 'content-type': 'application/merge-patch+json' },
    })
    assert.equal(status, 200, text)
    const bypassed = await fleet.rollout(id)
    assert.deepEqual(bypassed.approvals, [])
    assert.notEqual(bypassed.plan, amended.plan)
  })
})

describe('a rollout that is asked for by its id', () => {
  test('says which approvals each wave still lacks, and which fields of which documents it changes', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const id = await fleet.start(
      CHANGE,
      wavesWith({ before: {}, after: { role: 'admin', not_starter: true } }),
    )
    const lacks = async () =>
      (await fleet.rollout(id)).waves.map(({ missing_approvals }: JsonObject) => missing_approvals)
    const before = { when: 'before', message: '1 more approval before wave dev' }
    const message = '1 more approval after wave dev by an admin other than writer'
    const after = { when: 'after', message, not_by: ['writer'], role: 'admin' }
    assert.deepEqual(await lacks(), [[before, after], undefined])
    await fleet.act(id, 'approve', { wave: 'dev', when: 'before' })
    await fleet.tick()
    assert.deepEqual(await lacks(), [[after], undefined])
    const { edits, operations } = await fleet.rollout(id)
    assert.deepEqual(edits, [
      {
        type: 'platform_components',
        op: 'update',
        documents: 1,
        ids: ['a'],
        fields: [{ path: '/oci_tag', before: 'v1.0.0', after: 'v2.0.0' }],
      },
    ])
    assert.deepEqual(operations, CHANGE)
    await fleet.act(id, 'abort', {})
    assert.equal((await fleet.rollout(id)).edits, undefined)
  })
})

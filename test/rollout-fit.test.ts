// What is written beside rollouts goes with them, whichever of them are finished first.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { fleetOf } from './reporting-clusters.ts'
import { type RolledFleet, startRolled, tagOf } from './rolled-fleet.ts'

const component = (id: string, depends_on: string[] = []) => ({
  id,
  component_path: `core/${id}`,
  component_version: '1.0.0',
  oci_url: 'oci://registry.example.com/components',
  oci_tag: 'v1.0.0',
  depends_on,
})
const USED = ['x', 'y', 'z', 'spare'].map((id) => ({ id }))
const FLEET = {
  clusters: fleetOf({ one: { components: USED.slice(0, 3) }, two: { components: USED.slice(0, 3) } })
    .clusters,
  platform_components: [component('x', ['y']), component('y'), component('z'), component('spare')],
}
const WAVES = [
  { name: 'one', clusters: ['one'] },
  { name: 'rest', rest: true },
]

function needs(id: string, ...depends_on: string[]): JsonObject {
  return { op: 'patch', type: 'platform_components', id, patch: { depends_on } }
}

async function assertRefused(
  { service }: RolledFleet,
  operations: JsonObject[],
  message: RegExp,
): Promise<void> {
  const { revision } = service.engine.state
  for (const rollout of [undefined, { waves: [{ name: 'all', rest: true }] }]) {
    const body = { operations, ...(rollout && { rollout }) }
    const answer = await service.call('POST', '/batch', { body })
    assert.deepEqual([answer.status, answer.body.reason], [409, 'held_by_rollout'], answer.text)
    assert.match(answer.body.message, message)
  }
  assert.equal(service.engine.state.revision, revision)
}

describe('beside a rollout is refused, as a write and as a rollout', () => {
  test('a reference to what the rollout deletes', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const remove = { op: 'delete', type: 'platform_components', id: 'spare' }
    await fleet.start([remove, tagOf('x', 'v2.0.0')], WAVES)
    const assign = { op: 'assign', type: 'platform_components', ref: { id: 'spare' }, clusters: ['two'] }
    await assertRefused(fleet, [assign, tagOf('y', 'v2.0.0')], /r2/)
    await assertRefused(fleet, [needs('z', 'spare'), tagOf('y', 'v2.0.0')], /r2/)
  })

  test('what makes a cycle together with the rollout', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await fleet.start([needs('y', 'z')], WAVES)
    await assertRefused(fleet, [needs('z', 'x'), tagOf('z', 'v2.0.0')], /cycle/)
  })

  test('what makes a cycle with one of two rollouts, although the other one breaks it', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await fleet.start([needs('x'), tagOf('x', 'v2.0.0')], WAVES)
    await fleet.start([needs('y', 'z')], WAVES)
    await assertRefused(fleet, [needs('z', 'x'), tagOf('z', 'v2.0.0')], /cycle/)
  })
})

test('a definition that a rollout creates and assigns is given with its waves, and cannot be made twice', async (t) => {
  const fleet = await startRolled(t, FLEET)
  const { id: _, ...document } = component('new', ['x'])
  const create = { op: 'create', type: 'platform_components', document: { id: 'new', ...document } }
  const assign = { op: 'assign', type: 'platform_components', ref: { id: 'new' }, clusters: ['one', 'two'] }
  await fleet.settle('one', 'two')
  const id = await fleet.start([create, assign], WAVES)
  assert.deepEqual(Object.keys(await fleet.tags('one')), ['x', 'y', 'z', 'new'])
  assert.deepEqual(Object.keys(await fleet.tags('two')), ['x', 'y', 'z'])
  const again = await fleet.service.call('POST', '/platform_components', { body: component('new') })
  assert.deepEqual([again.status, again.body.reason], [409, 'held_by_rollout'], again.text)
  assert.equal((await fleet.service.call('DELETE', '/platform_components/x?cascade=true')).status, 409)
  await fleet.act(id, 'finish', {}, { query: '?confirm=finish' })
  assert.deepEqual(Object.keys(await fleet.tags('two')), ['x', 'y', 'z', 'new'])
})

// Rollouts over HTTP: their life from the first wave to the finish, with clusters that poll and report.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fleetOf } from './reporting-clusters.ts'
import { startRolled, tagOf, wavesOf } from './rolled-fleet.ts'

test('a change goes from wave to wave as fast as the clusters of each report it applied, and is finished then', async (t) => {
  const fleet = await startRolled(t, fleetOf({ one: {}, two: {}, three: {} }))
  await fleet.settle('one', 'two', 'three')
  const id = await fleet.start([tagOf('a', 'v2.0.0')], wavesOf('one', 'two', 'three'))
  const tags = async () => [
    (await fleet.tags('one')).a,
    (await fleet.tags('two')).a,
    (await fleet.tags('three')).a,
  ]
  assert.deepEqual(await tags(), ['v2.0.0', 'v1.0.0', 'v1.0.0'])
  await fleet.tick()
  assert.deepEqual(await tags(), ['v2.0.0', 'v1.0.0', 'v1.0.0'])
  assert.match(
    (await fleet.rollout(id)).waiting_for,
    /1 of 1 clusters of wave wave-one have not applied it yet: one/,
  )
  fleet.pass(10)
  await fleet.settle('one')
  await fleet.tick()
  assert.deepEqual(await tags(), ['v2.0.0', 'v2.0.0', 'v1.0.0'])
  await fleet.settle('two')
  await fleet.tick()
  assert.deepEqual(await tags(), ['v2.0.0', 'v2.0.0', 'v2.0.0'])
  assert.equal((await fleet.rollout(id)).state, 'running')
  await fleet.settle('three')
  await fleet.tick()
  const done = await fleet.rollout(id)
  assert.equal(done.state, 'finished')
  assert.deepEqual(await tags(), ['v2.0.0', 'v2.0.0', 'v2.0.0'])
  assert.deepEqual(fleet.failures, [])
})

test('metrics count the rollouts that have not ended, by state', async (t) => {
  const fleet = await startRolled(t, fleetOf({ one: {}, two: {} }))
  const active = async (): Promise<string[]> =>
    (await fleet.service.call('GET', '/metrics')).text
      .split('\n')
      .flatMap(
        (line) =>
          /^flux_resourceset_active_rollouts\{state="(\w+)"\} ([1-9].*)$/.exec(line)?.slice(1).join(' ') ??
          [],
      )
  assert.deepEqual(await active(), [])
  const id = await fleet.start([tagOf('a', 'v2.0.0')], wavesOf('one', 'two'))
  assert.deepEqual(await active(), ['running 1'])
  assert.equal((await fleet.act(id, 'pause')).status, 200)
  assert.deepEqual(await active(), ['paused 1'])
  assert.equal((await fleet.act(id, 'abort')).status, 200)
  assert.deepEqual(await active(), [])
})

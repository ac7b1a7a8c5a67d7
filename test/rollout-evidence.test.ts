// What counts as evidence for a wave of a rollout, and what does not.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fleetOf } from './reporting-clusters.ts'
import { startRolled, tagOf, wavesOf } from './rolled-fleet.ts'

const FLEET = fleetOf({ one: {}, two: {}, three: {} })
const CHANGE = [tagOf('a', 'v2.0.0')]

describe('an acknowledgement of the same answer from an earlier, aborted rollout', () => {
  test('does not count, and neither does one that comes before the cluster was served the new one', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await fleet.settle('one', 'two', 'three')
    const first = await fleet.start(CHANGE, wavesOf('one', 'two'))
    fleet.pass(10)
    await fleet.settle('one')
    assert.equal((await fleet.act(first, 'abort')).status, 200)
    const second = await fleet.start(CHANGE, wavesOf('one', 'two'))
    await fleet.tick()
    assert.deepEqual(await fleet.waves(second), ['open', 'waiting', 'waiting'])
    fleet.pass(10)
    await fleet.cluster('one').report()
    await fleet.tick()
    assert.deepEqual(await fleet.waves(second), ['open', 'waiting', 'waiting'])
    assert.equal((await fleet.rollout(second)).waves[0].served, 0)
    fleet.pass(10)
    await fleet.cluster('one').poll()
    await fleet.tick()
    const [served] = (await fleet.rollout(second)).waves
    assert.deepEqual([served.state, served.served, served.applied, served.healthy], ['open', 1, 0, 0])
    fleet.pass(10)
    await fleet.cluster('one').report()
    await fleet.tick()
    assert.deepEqual(await fleet.waves(second), ['passed', 'open', 'waiting'])
  })

  test('does not count for the part of a cluster that has not reported since', async (t) => {
    const both = { components: [{ id: 'a' }, { id: 'b' }] }
    const fleet = await startRolled(t, fleetOf({ one: both, two: both }))
    const one = fleet.cluster('one')
    // By the digits that the hashes of their ids begin with.
    const [ofA, ofB] = [{ part: 'c' }, { part: '3' }]
    const gates = { healthy_percent: 100 }
    const waves = [{ name: 'canary', clusters: ['one'], gates }, ...wavesOf('two')]
    const first = await fleet.start(CHANGE, waves)
    await one.poll()
    for (const part of [ofA, ofB]) await one.report(part)
    assert.equal((await fleet.rollout(first)).waves[0].healthy, 1)
    assert.equal((await fleet.act(first, 'abort')).status, 200)
    fleet.pass(10)
    const second = await fleet.start(CHANGE, waves)
    fleet.pass(10)
    await one.poll()
    fleet.pass(10)
    await one.report(ofB)
    const [wave] = (await fleet.rollout(second)).waves
    assert.deepEqual([wave.served, wave.applied, wave.healthy], [1, 1, 0])
    await fleet.tick()
    assert.deepEqual(await fleet.waves(second), ['open', 'waiting'])
    await one.report(ofA)
    await fleet.tick()
    assert.deepEqual(await fleet.waves(second), ['passed', 'open'])
  })

  test('counts for none of the waves of an amended rollout that starts again', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await fleet.settle('one', 'two', 'three')
    const id = await fleet.start(CHANGE, wavesOf('one', 'two'))
    fleet.pass(10)
    await fleet.settle('one')
    await fleet.tick()
    assert.deepEqual(await fleet.waves(id), ['passed', 'open', 'waiting'])
    const amended = await fleet.act(id, 'amend', { operations: CHANGE, message: 'again', restart: true })
    assert.equal(amended.status, 200, amended.text)
    await fleet.tick()
    assert.deepEqual(await fleet.waves(id), ['open', 'waiting', 'waiting'])
    fleet.pass(10)
    await fleet.settle('one')
    await fleet.tick()
    assert.deepEqual(await fleet.waves(id), ['passed', 'open', 'waiting'])
  })
})

test('a failure from before counts for nothing, and one of the present stops the rollout', async (t) => {
  const fleet = await startRolled(t, FLEET)
  await fleet.settle('one', 'two', 'three')
  const first = await fleet.start(CHANGE, wavesOf('one', 'two'))
  fleet.pass(10)
  const one = fleet.cluster('one')
  await one.poll()
  one.fail('Kustomization', 'a', 'HealthCheckFailed', 'timeout')
  await fleet.tick()
  const paused = await fleet.rollout(first)
  assert.equal(paused.state, 'paused')
  assert.match(paused.waiting_for, /1 of 1 clusters of wave wave-one failed, more than the 0 that may: one/)
  await fleet.act(first, 'abort')
  const second = await fleet.start(CHANGE, wavesOf('one', 'two'))
  fleet.pass(10)
  await one.poll()
  await fleet.tick()
  assert.equal((await fleet.rollout(second)).state, 'running')
  one.fail('Kustomization', 'a', 'HealthCheckFailed', 'timeout')
  await fleet.tick()
  assert.equal((await fleet.rollout(second)).state, 'paused')
  await fleet.act(second, 'retry')
  await fleet.tick()
  assert.equal((await fleet.rollout(second)).state, 'running')
  fleet.pass(10)
  await one.settle()
  await fleet.tick()
  assert.deepEqual(await fleet.waves(second), ['passed', 'open', 'waiting'])
})

describe('clusters of which nothing is heard', () => {
  test('never make a wave pass by its deadline when nobody at all has answered', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const waves = [{ name: 'all', rest: true, deadline_s: 60, gates: { applied_percent: 50, failures: 3 } }]
    const id = await fleet.start(CHANGE, waves)
    await fleet.tick()
    fleet.pass(86_400)
    await fleet.tick()
    const shown = await fleet.rollout(id)
    assert.equal(shown.state, 'running')
    assert.equal(shown.waves[0].state, 'open')
    assert.deepEqual(
      // biome-ignore lint/suspicious/noExplicitAny: a gate
      shown.waves[0].gates.map(({ kind, holds }: any) => [kind, holds]),
      [
        ['applied_percent', false],
        ['failures', false],
      ],
    )
    assert.deepEqual(shown.set_aside.toSorted(), ['one', 'three', 'two'])
    assert.match(shown.waiting_for, /all 3 clusters of wave all are absent/)
  })

  test('are set aside after the deadline, are still watched, and count again when they return', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await fleet.settle('one', 'two', 'three')
    fleet.pass(7200)
    await fleet.settle('one')
    const waves = [
      { name: 'all', rest: true, deadline_s: 600, gates: { applied_percent: 100, failures: 0, soak_s: 300 } },
    ]
    const id = await fleet.start(CHANGE, waves)
    await fleet.tick()
    assert.match((await fleet.rollout(id)).waiting_for, /3 of 3 clusters of wave all .* \(2 of them absent\)/)
    fleet.pass(300)
    await fleet.settle('one')
    await fleet.tick()
    const before = await fleet.rollout(id)
    assert.deepEqual(before.waves[0].gates[0].holds, false)
    fleet.pass(301)
    await fleet.settle('one')
    await fleet.tick()
    const aside = await fleet.rollout(id)
    assert.deepEqual(aside.set_aside.toSorted(), ['three', 'two'])
    assert.deepEqual(aside.waves[0].set_aside, 2)
    assert.deepEqual(aside.waves[0].gates[0], {
      kind: 'applied_percent',
      needed: 100,
      value: 100,
      holds: true,
      count: 1,
      needed_count: 1,
      of: 1,
    })
    assert.match(aside.waiting_for, /soaks until/)
    await fleet.cluster('two').poll()
    await fleet.tick()
    const back = await fleet.rollout(id)
    assert.deepEqual(back.set_aside, ['three'])
    assert.equal(back.waves[0].gates[0].of, 2)
    assert.match(back.waiting_for, /1 of 3 clusters of wave all have not applied it yet: two/)
    fleet.cluster('two').fail('Kustomization', 'a', 'HealthCheckFailed', 'timeout')
    await fleet.tick()
    assert.equal((await fleet.rollout(id)).state, 'paused')
  })
})

test('the soak counts from the last success that is needed, and a regression starts it again', async (t) => {
  const fleet = await startRolled(t, FLEET)
  await fleet.settle('one', 'two', 'three')
  const gates = { healthy_percent: 100, failures: 1, soak_s: 600 }
  const id = await fleet.start(CHANGE, [
    { name: 'canary', clusters: ['one', 'two'], gates },
    { name: 'rest', rest: true },
  ])
  fleet.pass(100)
  await fleet.settle('one')
  await fleet.tick()
  fleet.pass(200)
  await fleet.settle('one', 'two')
  await fleet.tick()
  assert.match((await fleet.rollout(id)).waiting_for, /wave canary soaks until 2026-03-01T12:15:00.000Z/)
  fleet.pass(500)
  await fleet.settle('one', 'two')
  fleet.pass(10)
  fleet.cluster('two').fail('Kustomization', 'a', 'HealthCheckFailed', 'timeout')
  await fleet.tick()
  assert.doesNotMatch((await fleet.rollout(id)).waiting_for, /soaks/)
  fleet.pass(80)
  await fleet.cluster('two').poll()
  await fleet.cluster('two').report({ except: ['a'] })
  fleet.pass(10)
  await fleet.settle('one', 'two')
  await fleet.tick()
  assert.match((await fleet.rollout(id)).waiting_for, /wave canary soaks until 2026-03-01T12:25:00.000Z/)
  fleet.pass(599)
  await fleet.settle('one', 'two')
  await fleet.tick()
  assert.deepEqual(await fleet.waves(id), ['open', 'waiting'])
  fleet.pass(1)
  await fleet.tick()
  assert.deepEqual(await fleet.waves(id), ['passed', 'open'])
})

// The ways out of a rollout: pause, retry, skip, amend, replace, pass it, finish early, and take it back.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { asRollout } from '../src/domain/rollouts/rollout.ts'
import { fleetOf } from './reporting-clusters.ts'
import { type RolledFleet, startRolled, tagOf, wavesOf } from './rolled-fleet.ts'

const CLUSTERS = ['one', 'two', 'three']
const FLEET = fleetOf({ one: {}, two: {}, three: {} })
const CHANGE = [tagOf('a', 'v2.0.0')]

/** The tag that each cluster gets. */
async function tags(fleet: RolledFleet): Promise<string[]> {
  return Promise.all(CLUSTERS.map(async (id) => (await fleet.tags(id)).a ?? ''))
}

async function started(t: Parameters<typeof startRolled>[0], waves = wavesOf(...CLUSTERS), more = {}) {
  const fleet = await startRolled(t, FLEET)
  await fleet.settle(...CLUSTERS)
  fleet.pass(10)
  return { fleet, id: await fleet.start(CHANGE, waves, more) }
}

async function settled(fleet: RolledFleet, ...ids: string[]): Promise<void> {
  fleet.pass(10)
  await fleet.settle(...ids)
  await fleet.tick()
}

async function failing(fleet: RolledFleet, id: string): Promise<void> {
  fleet.pass(10)
  await fleet.cluster(id).poll()
  fleet.cluster(id).fail('Kustomization', 'a', 'HealthCheckFailed', 'timeout')
  await fleet.tick()
}

describe('a rollout that is paused', () => {
  test('keeps what is open and opens nothing, until it is resumed', async (t) => {
    const { fleet, id } = await started(t)
    const paused = await fleet.act(id, 'pause', { remark: 'lunch' })
    assert.deepEqual([paused.body.state, paused.body.waiting_for], ['paused', 'lunch'])
    await settled(fleet, 'one')
    assert.deepEqual(await tags(fleet), ['v2.0.0', 'v1.0.0', 'v1.0.0'])
    assert.equal((await fleet.act(id, 'pause')).body.reason, 'rollout_state')
    await fleet.act(id, 'resume')
    await fleet.tick()
    assert.deepEqual(await fleet.waves(id), ['passed', 'open', 'waiting'])
    assert.equal((await fleet.act(id, 'resume')).body.reason, 'rollout_state')
  })

  test('because of a failure pauses again when it is resumed, and goes on when it is retried', async (t) => {
    const { fleet, id } = await started(t)
    await failing(fleet, 'one')
    assert.equal((await fleet.rollout(id)).state, 'paused')
    await fleet.act(id, 'resume')
    await fleet.tick()
    assert.equal((await fleet.rollout(id)).state, 'paused')
    await fleet.act(id, 'retry')
    await settled(fleet, 'one')
    assert.deepEqual(await fleet.waves(id), ['passed', 'open', 'waiting'])
  })

  test('goes on without the cluster that failed, which gets the change at the finish', async (t) => {
    const { fleet, id } = await started(t)
    await failing(fleet, 'one')
    const skipped = await fleet.act(id, 'skip', { clusters: ['one'] })
    assert.deepEqual(skipped.body.skipped, ['one'])
    await fleet.act(id, 'resume')
    await fleet.tick()
    assert.deepEqual(await fleet.waves(id), ['skipped', 'open', 'waiting'])
    assert.deepEqual(await tags(fleet), ['v1.0.0', 'v2.0.0', 'v1.0.0'])
    await settled(fleet, 'two')
    await settled(fleet, 'three')
    assert.equal((await fleet.rollout(id)).state, 'finished')
    assert.deepEqual(await tags(fleet), ['v2.0.0', 'v2.0.0', 'v2.0.0'])
  })
})

test('a failure in an earlier wave stops the later ones, and the figures of the decision are kept', async (t) => {
  const { fleet, id } = await started(t)
  await settled(fleet, 'one')
  assert.deepEqual(await fleet.waves(id), ['passed', 'open', 'waiting'])
  await failing(fleet, 'one')
  const paused = await fleet.rollout(id)
  assert.equal(paused.state, 'paused')
  assert.match(paused.waiting_for, /^1 of 1 clusters of wave wave-one failed/)
  const { body } = await fleet.service.call('GET', `/revisions?limit=1`)
  assert.match(body[0].operation, /^rollout r2: paused/)
  assert.deepEqual([paused.waves[0].failed, paused.waves[0].gates.length], [1, 2])
})

test('too many failures abort a rollout by itself, where its strategy says so', async (t) => {
  const { fleet, id } = await started(t, wavesOf(...CLUSTERS), { on_failure: 'abort' })
  await failing(fleet, 'one')
  const aborted = await fleet.rollout(id)
  assert.equal(aborted.state, 'aborted')
  assert.match(aborted.events.at(-1).remark, /^1 of 1 clusters of wave wave-one failed/)
  assert.deepEqual(await tags(fleet), ['v1.0.0', 'v1.0.0', 'v1.0.0'])
})

test('max_concurrent of a wave are under way at a time', async (t) => {
  const { fleet, id } = await started(t, [{ name: 'all', rest: true, max_concurrent: 1 }])
  const seen: number[] = []
  for (let i = 0; i < 8 && (await fleet.rollout(id)).state !== 'finished'; i++) {
    const open = (await tags(fleet)).filter((tag) => tag === 'v2.0.0').length
    seen.push(open)
    await settled(fleet, ...CLUSTERS)
  }
  assert.deepEqual(seen, [1, 2, 3])
  assert.equal((await fleet.rollout(id)).state, 'finished')
})

test('a value that a wave serves comes from the revision that opened that very cluster', async (t) => {
  const { fleet } = await started(t, [{ name: 'all', rest: true, max_concurrent: 1 }])
  const openedBy = async (cluster: string): Promise<number> => {
    const url = `/clusters/${cluster}/inputs/platform-components?explain=true`
    const { body } = await fleet.service.call('GET', url)
    return body.inputs[0].fields.find(({ path }: { path: string }) => path === '/source/oci_tag').revision
  }
  const revisions = [await openedBy('one')]
  for (const [i, next] of ['two', 'three'].entries()) {
    await settled(fleet, ...CLUSTERS.slice(0, i + 1))
    assert.equal((await fleet.tags(next)).a, 'v2.0.0')
    assert.equal(fleet.service.engine.state.revision, await openedBy(next))
    revisions.push(await openedBy(next))
  }
  assert.deepEqual([await openedBy('one'), await openedBy('two')], revisions.slice(0, 2))
})

describe('a wave that is skipped', () => {
  test('keeps the base until the finish where it was not open', async (t) => {
    const { fleet, id } = await started(t)
    await fleet.act(id, 'skip', { wave: 'wave-two' })
    await settled(fleet, 'one')
    assert.deepEqual(await fleet.waves(id), ['passed', 'skipped', 'open'])
    assert.deepEqual(await tags(fleet), ['v2.0.0', 'v1.0.0', 'v2.0.0'])
    assert.equal((await fleet.act(id, 'skip', { wave: 'wave-two' })).body.reason, 'wave_ended')
    await settled(fleet, 'three')
    assert.deepEqual(await tags(fleet), ['v2.0.0', 'v2.0.0', 'v2.0.0'])
  })

  test('has to prove nothing any more where it was open', async (t) => {
    const { fleet, id } = await started(t)
    await fleet.act(id, 'skip', { wave: 'wave-one' })
    await fleet.tick()
    assert.deepEqual(await fleet.waves(id), ['passed', 'open', 'waiting'])
  })
})

describe('an amendment', () => {
  const OTHER = { operations: [tagOf('a', 'v3.0.0')] }

  test('reaches open waves at once, which have to prove it, and the others in their turn', async (t) => {
    const { fleet, id } = await started(t)
    await settled(fleet, 'one')
    const preview = await fleet.act(id, 'amend', OTHER, { query: '?dry_run=true' })
    assert.deepEqual(
      preview.body.waves.map(({ name, details }: JsonObject) => [name, details]),
      CLUSTERS.map((each) => [`wave-${each}`, [each]]),
    )
    await fleet.act(id, 'amend', OTHER)
    assert.deepEqual(await tags(fleet), ['v3.0.0', 'v3.0.0', 'v1.0.0'])
    assert.deepEqual(await fleet.waves(id), ['open', 'open', 'waiting'])
    await settled(fleet, 'two')
    assert.deepEqual(await fleet.waves(id), ['open', 'open', 'waiting'])
    await settled(fleet, 'one')
    assert.deepEqual(await fleet.waves(id), ['passed', 'passed', 'open'])
    await settled(fleet, 'three')
    assert.deepEqual(
      [(await fleet.rollout(id)).state, await tags(fleet)],
      ['finished', ['v3.0.0', 'v3.0.0', 'v3.0.0']],
    )
  })

  test('begins anew where that is asked for', async (t) => {
    const { fleet, id } = await started(t)
    await settled(fleet, 'one')
    await fleet.act(id, 'amend', { ...OTHER, restart: true })
    assert.deepEqual(await tags(fleet), ['v3.0.0', 'v1.0.0', 'v1.0.0'])
    assert.deepEqual(await fleet.waves(id), ['open', 'waiting', 'waiting'])
  })

  test('acts from then on with what the one who amended it may do', async (t) => {
    const { fleet, id } = await started(t)
    const token = await fleet.token('ann', { role: 'editor', selector: 'environment=dev' })
    const amended = await fleet.act(
      id,
      'amend',
      { ...OTHER, message: 'CVE-2026-1' },
      { token, query: '?bypass=true' },
    )
    assert.equal(amended.status, 200, amended.text)
    const { grant } = asRollout(fleet.service.engine.state.get('rollouts', id) ?? assert.fail(id))
    assert.deepEqual(grant, { role: 'editor', selector: 'environment=dev' })
    await fleet.service.call('POST', '/freezes', { body: { id: 'end', reason: 'holidays' } })
    await settled(fleet, 'one')
    assert.deepEqual(await fleet.waves(id), ['passed', 'waiting', 'waiting'])
    assert.match((await fleet.rollout(id)).waiting_for, /freeze "end"/)
  })

  test('leaves members in their waves, whatever became of them, and keeps what was skipped', async (t) => {
    const waves = [
      { name: 'eu', selector: 'environment=dev', max_concurrent: 1 },
      { name: 'rest', rest: true },
    ]
    const fleet = await startRolled(t, FLEET)
    await fleet.settle(...CLUSTERS)
    const id = await fleet.start(CHANGE, [{ name: 'first', clusters: ['one'] }, ...waves])
    await fleet.service.call('PATCH', '/clusters/two', {
      body: { environment: 'prod' },
      headers: { 'content-type': 'application/merge-patch+json' },
    })
    await fleet.act(id, 'skip', { wave: 'eu' })
    await fleet.service.call('DELETE', '/clusters/one?confirm=removals')
    const amended = await fleet.act(id, 'amend', OTHER)
    assert.equal(amended.status, 200, amended.text)
    const { body } = await fleet.service.call('GET', `/rollouts/${id}/members`)
    assert.deepEqual(body.map(({ cluster, wave }: JsonObject) => `${cluster} ${wave}`).toSorted(), [
      'three eu',
      'two eu',
    ])
    assert.equal((await fleet.waves(id))[1], 'skipped')
  })

  test('may change how the rollout goes on alone, or give it other waves', async (t) => {
    const { fleet, id } = await started(t)
    const gentler = await fleet.act(id, 'amend', { operations: CHANGE, bake_s: 60, on_failure: 'abort' })
    assert.equal(gentler.status, 200, gentler.text)
    assert.deepEqual(await fleet.waves(id), ['open', 'waiting', 'waiting'])
    const other = await fleet.act(id, 'amend', { operations: CHANGE, waves: wavesOf('three', 'one', 'two') })
    assert.equal(other.status, 200, other.text)
    // What is open stays so, and waits for the waves that come before it now.
    assert.deepEqual(await tags(fleet), ['v2.0.0', 'v1.0.0', 'v1.0.0'])
    await fleet.tick()
    assert.deepEqual(await tags(fleet), ['v2.0.0', 'v1.0.0', 'v2.0.0'])
    assert.deepEqual(await fleet.waves(id), ['open', 'waiting', 'waiting'])
    await settled(fleet, 'one', 'three')
    await settled(fleet, 'one')
    await settled(fleet, 'two')
    assert.equal((await fleet.rollout(id)).state, 'finished')
  })
})

test('a rollout that takes the place of another aborts it in the same revision', async (t) => {
  const { fleet, id } = await started(t)
  await settled(fleet, 'one')
  const { revision } = fleet.service.engine.state
  const next = await fleet.start([tagOf('a', 'v3.0.0')], wavesOf('three', 'two', 'one'), { supersedes: id })
  assert.equal(fleet.service.engine.state.revision, revision + 1)
  assert.equal((await fleet.rollout(id)).state, 'aborted')
  assert.equal((await fleet.rollout(id)).events.at(-1).remark, `superseded by ${next}`)
  assert.deepEqual(await tags(fleet), ['v1.0.0', 'v1.0.0', 'v3.0.0'])
})

describe('a field that a rollout changes', () => {
  const patch = { headers: { 'content-type': 'application/merge-patch+json' } }

  test('is written by nobody else, and other fields of the document are', async (t) => {
    const { fleet, id } = await started(t)
    const { call } = fleet.service
    const held = await call('PATCH', '/platform_components/a', { body: { oci_tag: 'v9' }, ...patch })
    assert.deepEqual([held.status, held.body.reason], [409, 'held_by_rollout'], held.text)
    assert.match(
      held.body.message,
      new RegExp(`^rollout ${id} is changing /platform_components/a/oci_tag: amend, supersede or abort`),
    )
    const other = await call('PATCH', '/platform_components/a', {
      body: { component_version: '2.0.0' },
      ...patch,
    })
    assert.equal(other.status, 200, other.text)
    for (const each of ['one', 'three']) {
      const { body } = await call('GET', `/clusters/${each}/inputs/platform-components`)
      assert.equal(body.inputs[0].component_version, '2.0.0', each)
    }
    assert.deepEqual(await tags(fleet), ['v2.0.0', 'v1.0.0', 'v1.0.0'])
  })

  test('is written past the rollout for everybody, with a reason and the permission', async (t) => {
    const { fleet, id } = await started(t)
    const { call } = fleet.service
    const body = { oci_tag: 'v1.0.1' }
    const silent = await call('PATCH', '/platform_components/a?bypass=true', { body, ...patch })
    assert.deepEqual([silent.status, silent.body.details[0].path], [400, 'X-Change-Message'], silent.text)
    const headers = { ...patch.headers, 'x-change-message': 'CVE-2026-1' }
    const token = await fleet.token('ann', { role: 'editor' })
    const editor = await call('PATCH', '/platform_components/a?bypass=true', { body, headers, token })
    assert.deepEqual([editor.status, editor.body.reason], [403, 'needs_admin'], editor.text)
    const done = await call('PATCH', '/platform_components/a?bypass=true', { body, headers })
    assert.equal(done.status, 200, done.text)
    assert.deepEqual(await tags(fleet), ['v1.0.1', 'v1.0.1', 'v1.0.1'])
    await fleet.act(id, 'abort')
    assert.deepEqual(await tags(fleet), ['v1.0.1', 'v1.0.1', 'v1.0.1'])
  })
})

describe('the end of a rollout', () => {
  test('comes after all waves were watched for a while, and changes no bytes', async (t) => {
    const { fleet, id } = await started(t, [{ name: 'all', rest: true }], { bake_s: 600 })
    await settled(fleet, ...CLUSTERS)
    const baking = await fleet.rollout(id)
    assert.deepEqual(
      [baking.state, baking.waiting_for],
      ['baking', 'it bakes until 2026-03-01T12:10:20.000Z'],
    )
    const bytes = async () =>
      Promise.all(
        CLUSTERS.map(
          async (each) =>
            (await fleet.service.call('GET', `/clusters/${each}/inputs/platform-components`)).text,
        ),
      )
    const before = await bytes()
    fleet.pass(599)
    await fleet.tick()
    assert.equal((await fleet.rollout(id)).state, 'baking')
    fleet.pass(1)
    await fleet.tick()
    assert.equal((await fleet.rollout(id)).state, 'finished')
    assert.deepEqual(await bytes(), before)
  })

  test('comes early only when that is confirmed, and gives everybody the change', async (t) => {
    const { fleet, id } = await started(t)
    const refused = await fleet.act(id, 'finish')
    assert.deepEqual([refused.status, refused.body.reason], [409, 'rollout_unfinished'], refused.text)
    const preview = await fleet.act(id, 'finish', {}, { query: '?dry_run=true' })
    assert.deepEqual([preview.body.requires_confirmation, preview.body.impact.clusters], [['finish'], 2])
    const done = await fleet.act(id, 'finish', { remark: 'urgent' }, { query: '?confirm=finish' })
    assert.equal(done.body.state, 'finished', done.text)
    assert.deepEqual(await tags(fleet), ['v2.0.0', 'v2.0.0', 'v2.0.0'])
    assert.equal((await fleet.act(id, 'abort')).body.reason, 'rollout_ended')
  })

  test('by an abort gives back what there would be without it, other writes included', async (t) => {
    const { fleet, id } = await started(t)
    await fleet.service.call('PATCH', '/platform_components/a', {
      body: { component_version: '2.0.0' },
      headers: { 'content-type': 'application/merge-patch+json' },
    })
    const preview = await fleet.act(id, 'abort', {}, { query: '?dry_run=true' })
    assert.equal(preview.body.impact.clusters, 1)
    assert.equal((await fleet.act(id, 'abort', { remark: 'no' })).body.state, 'aborted')
    const [one, two] = await Promise.all(
      ['one', 'two'].map(
        async (each) =>
          (await fleet.service.call('GET', `/clusters/${each}/inputs/platform-components`)).body.inputs[0],
      ),
    )
    assert.deepEqual(
      { ...one, cluster: undefined, answer_digest: undefined, digest: undefined },
      { ...two, cluster: undefined, answer_digest: undefined, digest: undefined },
    )
    assert.deepEqual([one.source.oci_tag, one.component_version], ['v1.0.0', '2.0.0'])
  })
})

test('what a preview showed is what is started: with its plan, a rollout of other members is refused', async (t) => {
  const fleet = await startRolled(t, FLEET)
  const rollout = { waves: [{ name: 'dev', selector: 'environment=dev' }] }
  const body = { operations: CHANGE, rollout }
  const { body: preview } = await fleet.service.call('POST', '/batch?dry_run=true', { body })
  assert.deepEqual(preview.waves[0].details.toSorted(), ['one', 'three', 'two'])
  assert.equal(preview.waves[0].absent_details.length, 3)
  assert.match(preview.warnings.join(), /wave "dev" does not pass before one of its clusters answers/)
  await fleet.service.call('DELETE', '/clusters/three?confirm=removals')
  const changed = await fleet.service.call('POST', '/batch', { body: { ...body, plan: preview.plan } })
  assert.deepEqual([changed.status, changed.body.reason], [409, 'plan_changed'], changed.text)
  const { body: again } = await fleet.service.call('POST', '/batch?dry_run=true', { body })
  const done = await fleet.service.call('POST', '/batch', { body: { ...body, plan: again.plan } })
  assert.deepEqual([done.status, done.body.rollout.plan], [202, again.plan], done.text)
})

test('a wave whose selector matches nobody at all is told apart from one that the change does not reach', async (t) => {
  const { service } = await startRolled(t, fleetOf({ one: {}, two: { environment: 'qa', components: [] } }))
  const waves = [
    { name: 'typo', selector: 'enviroment=dev' },
    { name: 'qa', selector: 'environment=qa' },
    { name: 'uat', count: 1 },
    { name: 'half', percent: 50 },
    { name: 'rest', rest: true },
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

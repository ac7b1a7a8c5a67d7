// Rollouts in copies: whole ones, parts of the fleet, snapshots, and stores whose history was pruned.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { parseSelector } from '../src/domain/access/selector.ts'
import { renderInputs } from '../src/domain/delivery/render-inputs.ts'
import { servedTo } from '../src/domain/delivery/served-view.ts'
import type { View } from '../src/domain/documents/view.ts'
import { startEngine } from '../src/engine/engine.ts'
import { openSnapshots } from '../src/engine/snapshot.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import type { Store } from '../src/store/store.ts'
import { exportLog } from '../src/transfer/export-log.ts'
import { importLog } from '../src/transfer/import-log.ts'
import { pruneLog, verifyLog } from '../src/transfer/verify-log.ts'
import { fleetOf } from './reporting-clusters.ts'
import { type RolledFleet, startRolled, tagOf } from './rolled-fleet.ts'
import { builtInTypes, temporaryFolder } from './service.ts'

const NOW = new Date('2026-03-01T12:00:00Z')
const TYPES = builtInTypes()
const FLEET = fleetOf({
  'dev-1': {},
  'dev-2': {},
  'dev-3': {},
  'secret-1': { environment: 'prod' },
  'secret-2': { environment: 'prod' },
})
const WAVES = [
  { name: 'mixed', clusters: ['secret-1', 'dev-2'] },
  { name: 'others', selector: 'id in (secret-2,dev-1)', max_concurrent: 1 },
  { name: 'rest', rest: true },
]

/** What every live cluster is served, to the byte. */
function answersIn(view: View): Map<string, string> {
  const answers = new Map<string, string>()
  for (const { id } of view.all('clusters'))
    for (const type of TYPES.delivered) {
      const served = servedTo(TYPES, view, id)
      const cluster = served.get('clusters', id) ?? assert.fail(id)
      answers.set(`${id} ${type.name}`, renderInputs(served, TYPES, type, cluster).text)
    }
  return answers
}

async function answersOf(store: Store): Promise<Map<string, string>> {
  const engine = await startEngine({ store, types: TYPES, now: () => NOW })
  const answers = answersIn(engine.state)
  await engine.stop()
  return answers
}

/** A store that outlives the engines on it. */
function openKept(): Store {
  return { ...openMemoryStore(), close: async () => {} }
}

/** Everything that a rollout does, with clusters that come, go and change; looks after each step. */
async function live(fleet: RolledFleet, look: () => Promise<void>): Promise<void> {
  const { service } = fleet
  const tick = async () => {
    await fleet.tick()
    await look()
  }
  await fleet.settle('dev-1', 'dev-2', 'dev-3', 'secret-1')
  const change = [
    tagOf('a', 'v2.0.0'),
    { op: 'patch_values', component: 'a', clusters: ['dev-2', 'secret-1'], values: { x: '1' } },
    { op: 'patch_values', component: 'a', clusters: ['dev-1', 'secret-2'], values: { y: '1' } },
  ]
  const id = await fleet.start(change, WAVES)
  await look()
  await service.call('PUT', '/holds/dev-3', { body: { reason: 'busy' } })
  await service.call('PUT', '/holds/secret-1', { body: { reason: 'secret-1 is busy' } })
  await tick()
  await service.call('DELETE', '/holds/secret-1')
  fleet.pass(10)
  await fleet.settle('secret-1', 'dev-2')
  await tick()
  // One that was not in the part comes in, and goes again.
  for (const environment of ['dev', 'prod']) {
    await service.call('PATCH', '/clusters/secret-2', { body: { environment } })
    await tick()
  }
  await fleet.act(id, 'skip', { clusters: ['secret-2'] })
  const created = { cluster_name: 'x', environment: 'prod', platform_components: [{ id: 'a' }] }
  for (const [name, environment] of [
    ['secret-9', 'prod'],
    ['dev-9', 'dev'],
  ]) {
    const body = {
      ...created,
      id: name as string,
      cluster_dns: `${name}.k8s.example.com`,
      environment,
    } as never
    assert.equal((await service.call('POST', '/clusters', { body })).status, 201)
  }
  await tick()
  await fleet.act(id, 'pause', { remark: 'secret-1 looks odd' })
  await look()
  await fleet.act(id, 'resume')
  fleet.pass(10)
  await fleet.settle('dev-1')
  await tick()
  await service.call('DELETE', '/clusters/secret-1')
  await fleet.act(id, 'finish', {}, { query: '?confirm=finish' })
  await look()
}

test('a copy of the fleet serves the same at every revision of a rollout', async (t) => {
  const fleet = await startRolled(t, FLEET)
  const target = openKept()
  await live(fleet, async () => {
    const { revision } = await target.head()
    await importLog(target, exportLog(fleet.store, { since: revision, now: NOW }))
    assert.deepEqual(await answersOf(target), answersIn(fleet.service.engine.state))
  })
  assert.deepEqual((await verifyLog(target)).problems, [])
})

async function followPart(t: TestContext, text: string): Promise<string[]> {
  const parsed = parseSelector(TYPES, text)
  const selection = parsed.ok ? { selector: parsed.selector, types: TYPES } : assert.fail(parsed.message)
  const fleet = await startRolled(t, FLEET)
  const target = openKept()
  const lines: string[] = []
  async function* noted(since: number) {
    for await (const line of exportLog(fleet.store, { since, now: NOW, selection })) {
      lines.push(line)
      yield line
    }
  }
  await live(fleet, async () => {
    const { revision } = await target.head()
    await importLog(target, noted(revision))
    const { state } = fleet.service.engine
    const inPart = new Set<string>()
    for (const { id, document } of state.all('clusters'))
      if (selection.selector.matches(document)) inPart.add(id)
    const expected = [...answersIn(state)].filter(([key]) => inPart.has(key.split(' ')[0] as string))
    assert.deepEqual(await answersOf(target), new Map(expected))
    // In one piece it is the same.
    const whole = openKept()
    await importLog(whole, exportLog(fleet.store, { since: 0, now: NOW, selection }))
    const documents = async (store: Store) => {
      const all = []
      for await (const { type, id, json } of store.documents())
        if (type !== 'sources') all.push([type, id, json])
      return all.sort()
    }
    assert.deepEqual(await documents(whole), await documents(target))
  })
  return lines
}

test('a copy of a part serves its clusters the same, and says nothing of the others', async (t) => {
  const lines = await followPart(t, 'environment=dev,id notin (secret-2)')
  assert.ok(lines.some((line) => line.includes('rollout_plans')))
  const telling = lines.filter((line) => line.includes('secret-') && !line.includes('"selector"'))
  assert.deepEqual(telling, [])
})

test('a cluster that comes into a part during a rollout is served the same there', async (t) => {
  await followPart(t, 'environment=dev')
})

test('a part whose source was pruned during a rollout begins with what it may know of it', async (t) => {
  const fleet = await startRolled(t, FLEET)
  await fleet.settle('secret-1', 'dev-2')
  await fleet.start([tagOf('a', 'v2.0.0')], WAVES)
  fleet.pass(10)
  await fleet.settle('secret-1', 'dev-2')
  await fleet.tick()
  const before = answersIn(fleet.service.engine.state)
  const pruned = await pruneLog(fleet.store, new Date(fleet.now() + 1000).toISOString())
  assert.ok(pruned.ok && pruned.pruned.revisions > 3)
  assert.deepEqual(answersIn(fleet.service.engine.state), before)
  const parsed = parseSelector(TYPES, 'environment=dev')
  const selection = parsed.ok ? { selector: parsed.selector, types: TYPES } : assert.fail(parsed.message)
  const target = openKept()
  const lines: string[] = []
  for await (const line of exportLog(fleet.store, { since: 0, now: NOW, selection })) lines.push(line)
  assert.ok(!lines.join('').includes('secret-'))
  async function* all() {
    yield* lines
  }
  await importLog(target, all())
  const dev = [...before].filter(([key]) => key.startsWith('dev-'))
  assert.deepEqual(await answersOf(target), new Map(dev))
})

test('a process that starts from a snapshot while the store is away serves what open waves are served', async (t) => {
  const fleet = await startRolled(t, FLEET)
  await fleet.settle('secret-1', 'dev-2')
  await fleet.start([tagOf('a', 'v2.0.0')], WAVES)
  await fleet.service.call('PUT', '/holds/dev-3', { body: { reason: 'busy' } })
  const { state } = fleet.service.engine
  const snapshots = openSnapshots(temporaryFolder(t), () => NOW)
  const { revision, hash } = await fleet.store.head()
  await snapshots.write({ state: state as never, head: { revision, hash } })
  const saved = (await snapshots.read(TYPES)) ?? assert.fail()
  assert.deepEqual(answersIn(saved.state), answersIn(state))
})

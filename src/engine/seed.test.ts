import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { builtInTypes, smallFleet, startService, temporaryFolder } from '../../test/service.ts'
import { withoutDigests } from '../../test/without-digests.ts'
import { openMemoryStore } from '../store/memory.ts'
import { openSqliteStore } from '../store/sqlite/sqlite.ts'
import type { Store } from '../store/store.ts'
import { type Engine, startEngine } from './engine.ts'
import { seed } from './seed.ts'

const types = builtInTypes()
const author = { actor: 'writer', message: null, request_id: 'r', client_address: null }
const now = () => new Date('2026-01-31T12:00:00Z')

async function start(t: TestContext, store: Store = openMemoryStore()): Promise<Engine> {
  const engine = await startEngine({ store, types, now })
  t.after(() => engine.stop())
  return engine
}

async function seeded(t: TestContext, content: unknown): Promise<Engine> {
  const engine = await start(t)
  assert.deepEqual(await seed(engine, types, content), { ok: true, value: undefined })
  return engine
}

/** Seeds with something broken; answers the problem after making sure that nothing was loaded. */
async function refused(t: TestContext, content: unknown) {
  const engine = await start(t)
  const result = await seed(engine, types, content)
  assert.ok(!result.ok, 'is refused')
  assert.equal(engine.state.revision, 0)
  for (const { name } of types.all) assert.equal(engine.state.count(name), 0)
  const history = await engine.inspect(async (past) => ({
    ok: true,
    value: await past.history({ limit: 1, changeLimit: 1 }),
  }))
  assert.deepEqual(history, { ok: true, value: [] })
  return result.problem
}

async function refusedPaths(t: TestContext, content: unknown): Promise<string[]> {
  const { details = [] } = await refused(t, content)
  return details.map(({ path }) => path)
}

/** Asks as the clusters of a fleet ask: what each endpoint gives to a DNS name, without the cluster's own identity and digests. */
async function pollsOf(t: TestContext, fleet: unknown) {
  const service = await startService({ fleet })
  t.after(() => service.stop())
  return async (dns: string, endpoint: string) => {
    const { status, text } = await service.call('GET', `/api/v2/flux/clusters/${dns}/${endpoint}`)
    assert.equal(status, 200)
    const { inputs } = JSON.parse(withoutDigests(text))
    return inputs.map(({ cluster: _cluster, ...input }: { cluster: object }) => input)
  }
}

const cluster = (fields: object = {}) => ({
  id: 'one',
  cluster_name: 'one',
  cluster_dns: 'one.k8s.example.com',
  environment: 'dev',
  ...fields,
})

test('a seed fills an empty store with one revision of its own', async (t) => {
  const engine = await seeded(t, smallFleet())
  assert.equal(engine.state.revision, 1)
  assert.equal(engine.state.count('clusters'), 2)
  assert.equal(engine.state.count('platform_components'), 3)
  const history = await engine.inspect(async (past) => ({
    ok: true,
    value: await past.history({ limit: 10, changeLimit: 100 }),
  }))
  assert.ok(history.ok)
  const [entry] = history.value
  assert.equal(history.value.length, 1)
  assert.equal(entry?.actor, 'seed')
  assert.equal(entry?.change_count, 8)
})

test('a store that holds anything is left alone, whatever the seed says', async (t) => {
  const store = openMemoryStore()
  const engine = await start(t, store)
  await engine.write([{ op: 'create', type: 'namespaces', document: { id: 'mine' }, path: '' }], author)
  assert.ok((await seed(engine, types, smallFleet())).ok)
  assert.ok((await seed(await start(t, store), types, { nonsense: 1 })).ok)
  assert.equal((await store.head()).revision, 1)
  assert.equal(engine.state.count('clusters'), 0)
})

test('a store that was emptied again is left alone: it has a history', async (t) => {
  const engine = await start(t)
  await engine.write([{ op: 'create', type: 'namespaces', document: { id: 'mine' }, path: '' }], author)
  const remove = {
    op: 'delete',
    type: 'namespaces',
    id: 'mine',
    cascade: false,
    purge: false,
    path: '',
  } as const
  await engine.write([remove], author)
  assert.ok((await seed(engine, types, smallFleet())).ok)
  assert.equal(engine.state.revision, 2)
})

for (const [what, contents] of [
  ['one file', [smallFleet(), smallFleet()]],
  ['two files that have nothing in common', [{ namespaces: [{ id: 'a' }] }, { namespaces: [{ id: 'b' }] }]],
] as const) {
  test(`two engines that seed one database at once from ${what} make one revision`, async (t) => {
    for (let round = 0; round < 5; round++) {
      const path = join(temporaryFolder(t), 'fleet.db')
      const open = () => openSqliteStore({ path, write: true })
      const [one, two] = [await start(t, open()), await start(t, open())]
      const results = await Promise.all([seed(one, types, contents[0]), seed(two, types, contents[1])])
      assert.deepEqual(
        results.map(({ ok }) => ok),
        [true, true],
      )
      await Promise.all([one.catchUp(), two.catchUp()])
      assert.equal(one.state.revision, 1)
      assert.equal(two.state.revision, 1)
      const ids = ({ state }: Engine) =>
        types.all.flatMap(({ name }) => [...state.all(name)].map(({ id }) => `${name}/${id}`))
      assert.deepEqual(ids(one), ids(two))
    }
  })
}

test('ids may be written as _id, as in exports of document databases', async (t) => {
  const { id, ...rest } = cluster({ namespaces: [{ id: 'team-a' }] })
  const engine = await seeded(t, {
    clusters: [{ _id: id, ...rest }],
    namespaces: [{ _id: 'team-a', labels: { team: 'a' } }, { id: 'team-b' }],
  })
  assert.equal(engine.state.get('clusters', 'one')?.document.id, 'one')
  assert.ok(!Object.hasOwn(engine.state.get('clusters', 'one')?.document ?? {}, '_id'))
  assert.deepEqual(
    [...engine.state.all('namespaces')].map((entry) => entry.id),
    ['team-a', 'team-b'],
  )
})

test('sections may come in any order', async (t) => {
  const reversed = Object.fromEntries(Object.entries(smallFleet()).reverse())
  const engine = await seeded(t, reversed)
  assert.equal(engine.state.count('clusters'), 2)
})

test('without their sections, namespaces and role bindings are made from what clusters say of them', async (t) => {
  const subjects = [{ kind: 'Group', name: 'admins' }]
  const fleet = {
    platform_components: [],
    clusters: [
      cluster({
        namespaces: [
          { id: 'team-a', labels: { team: 'a' }, annotations: { owner: 'ann' } },
          { id: 'team-b' },
        ],
        rolebindings: [{ id: 'admins', role: 'cluster-admin', subjects }],
      }),
      cluster({
        id: 'two',
        cluster_dns: 'two.k8s.example.com',
        namespaces: [{ id: 'team-a', labels: { team: 'other' } }],
        rolebindings: [{ id: 'admins', role: 'view', subjects }],
      }),
    ],
  }
  const engine = await seeded(t, fleet)
  assert.equal(engine.state.revision, 1)
  assert.deepEqual(engine.state.get('namespaces', 'team-a')?.document, {
    id: 'team-a',
    labels: { team: 'a' },
    annotations: { owner: 'ann' },
  })
  assert.equal(engine.state.get('rolebindings', 'admins')?.document.role, 'cluster-admin')
  const inputs = await pollsOf(t, fleet)
  assert.deepEqual(await inputs('one.k8s.example.com', 'namespaces'), [
    { id: 'team-a', labels: { team: 'a' }, annotations: { owner: 'ann' } },
    { id: 'team-b', labels: {}, annotations: {} },
  ])
  assert.deepEqual(await inputs('one.k8s.example.com', 'rolebindings'), [
    { id: 'admins', role: 'cluster-admin', subjects },
  ])
  assert.deepEqual(await inputs('two.k8s.example.com', 'rolebindings'), [
    { id: 'admins', role: 'view', subjects },
  ])
  assert.deepEqual((await inputs('two.k8s.example.com', 'namespaces'))[0].labels, { team: 'other' })
})

test('a section that is there, even empty, is the whole truth: nothing is made from the clusters', async (t) => {
  const content = { namespaces: [], clusters: [cluster({ namespaces: [{ id: 'team-a' }] })] }
  assert.deepEqual(await refusedPaths(t, content), ['/clusters/0/namespaces/0/id'])
})

test('a reference that says too little to be a definition is refused where it stands', async (t) => {
  const content = { clusters: [cluster({ rolebindings: [{ id: 'admins' }] })] }
  const [path] = await refusedPaths(t, content)
  assert.match(path ?? '', /^\/clusters\/0\/rolebindings\/0/)
})

test('broken references refuse the whole seed, each with its place in the file', async (t) => {
  const content = structuredClone(smallFleet()) as ReturnType<typeof smallFleet> & {
    clusters: [
      { platform_components: { id: string }[]; namespaces: { id: string }[]; patches: object },
      object,
    ]
  }
  content.clusters[0].platform_components.push({ id: 'ghost' })
  content.clusters[0].namespaces.push({ id: 'team-a' })
  Object.assign(content.clusters[0].patches, { c: { replicas: '1' } })
  content.platform_components[2]?.depends_on.push('phantom')
  content.platform_components[0]?.depends_on.push('b')
  const paths = (await refusedPaths(t, content)).sort()
  assert.deepEqual(paths, [
    '/clusters/0/namespaces/1/id',
    '/clusters/0/patches/c',
    '/clusters/0/platform_components/2/id',
    '/platform_components/0/depends_on/0',
    '/platform_components/1/depends_on/0',
    '/platform_components/2/depends_on/1',
  ])
})

test('documents that are not valid refuse the whole seed, each with its place in the file', async (t) => {
  const paths = await refusedPaths(t, {
    namespaces: [{ id: 'fine' }, { id: 'Not Fine' }, 'text'],
    clusters: [cluster({ environment: 'moon', colour: 'red' })],
  })
  assert.deepEqual(paths.sort(), [
    '/clusters/0/colour',
    '/clusters/0/environment',
    '/namespaces/1/id',
    '/namespaces/2',
  ])
})

test('a problem with an id written as _id points at _id', async (t) => {
  assert.deepEqual(await refusedPaths(t, { namespaces: [{ _id: 'Not Fine' }] }), ['/namespaces/0/_id'])
})

test('two clusters with one DNS name refuse the whole seed', async (t) => {
  const problem = await refused(t, {
    clusters: [cluster(), cluster({ id: 'two', cluster_dns: 'ONE.k8s.example.com' })],
  })
  assert.match(problem.message, /DNS name/)
  assert.match(problem.details?.[0]?.path ?? '', /^\/clusters\/[01]\/cluster_dns$/)
})

test('two documents with one id refuse the whole seed, naming the id', async (t) => {
  const problem = await refused(t, { namespaces: [{ id: 'a' }, { id: 'b' }, { id: 'a' }] })
  assert.match(problem.message, /"a"/)
})

test('a type that nobody knows refuses the whole seed and says which are known', async (t) => {
  const { details = [] } = await refused(t, { ...smallFleet(), gadgets: [{ id: 'a' }] })
  assert.deepEqual(
    details.map(({ path }) => path),
    ['/gadgets'],
  )
  assert.match(details[0]?.message ?? '', /unknown type.*clusters/)
})

test('a seed that is no object of lists is refused', async (t) => {
  for (const content of [null, [], 'text', 7]) assert.deepEqual(await refusedPaths(t, content), [''])
  assert.deepEqual(await refusedPaths(t, { clusters: { one: cluster() } }), ['/clusters'])
})

test('reserved keys and broken text refuse the whole seed', async (t) => {
  const content = JSON.parse('{"namespaces":[{"id":"a","labels":{"__proto__":"x"}},{"id":"b\\u0000"}]}')
  assert.deepEqual(await refusedPaths(t, content), ['/namespaces/0/labels/__proto__', '/namespaces/1/id'])
})

test('the demo fleet loads, with something to show on every tier', async (t) => {
  const file = new URL('../../data/seed.json', import.meta.url)
  const fleet = JSON.parse(readFileSync(file, 'utf8'))
  const engine = await seeded(t, fleet)
  assert.equal(engine.state.revision, 1)
  const dns = 'demo-cluster-01.k8s.example.com'
  assert.equal(engine.state.clusterByDns(dns)?.id, 'demo-cluster-01')
  const inputs = await pollsOf(t, fleet)
  const ids = async (endpoint: string) => (await inputs(dns, endpoint)).map(({ id }: { id: string }) => id)
  assert.deepEqual(await ids('platform-components'), ['cert-manager', 'traefik', 'podinfo'])
  assert.deepEqual(await ids('namespaces'), ['cert-manager', 'traefik', 'podinfo'])
  assert.deepEqual(await ids('rolebindings'), ['platform-admins', 'dev-readers'])
  const clusters = [...engine.state.all('clusters')].map(({ document }) => document)
  assert.deepEqual([...new Set(clusters.map(({ environment }) => environment))].sort(), [
    'dev',
    'prod',
    'qa',
    'uat',
  ])
  const overridden = (field: string) =>
    clusters.some((document) =>
      (document.platform_components as { [key: string]: unknown }[]).some((reference) => field in reference),
    )
  assert.ok(overridden('component_path'), 'a canary override')
  assert.ok(overridden('oci_tag'), 'a hotfix')
  const tiered = [...engine.state.all('platform_components')].filter(
    ({ document }) => document.cluster_env_enabled,
  )
  assert.ok(tiered.length > 0, 'a component by environment')
})

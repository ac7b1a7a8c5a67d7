import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Json } from '../src/base/json.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import type { Store } from '../src/store/store.ts'
import { assertProblem, changesOf, pathsIn, run, STORES, start, type Write } from './every-store.ts'
import {
  type Answer,
  READ_TOKEN,
  smallFleet,
  startService,
  type TestService,
  temporaryFolder,
} from './service.ts'

const IDS = ['one', 'two', 'three', 'four']
const NAMES = [...IDS, 'renamed'].map((id) => `${id}.k8s.example.com`)
const CONFIRMED = { confirm: ['removals'] }

type Body = { readonly [key: string]: Json }

function rollback(service: TestService, body: Json | undefined, query = ''): Promise<Answer> {
  return service.call('POST', `/rollback${query}`, { body })
}

/** Rolls back, which must succeed. */
async function goBack(service: TestService, body: Body): Promise<Answer> {
  const answer = await rollback(service, body)
  assert.equal(answer.status, 200, answer.text)
  return answer
}

/** All documents, all polls, and what the tombstones hold. */
async function seen(service: TestService): Promise<Record<string, string>> {
  const endpoints = service.types.delivered.map(({ delivery }) => delivery.endpoint)
  const polls = NAMES.flatMap((dns) => endpoints.map((endpoint) => `/${dns}/${endpoint}`))
  const urls = [
    ...service.types.all.map(({ name }) => `/${name}`),
    ...['', ...polls].map((poll) => `/api/v2/flux/clusters${poll}`),
  ]
  const found: Record<string, string> = {}
  for (const [i, answer] of (await Promise.all(urls.map((url) => service.call('GET', url)))).entries()) {
    found[urls[i] as string] = `${answer.status} ${answer.headers.etag} ${answer.text}`
  }
  for (const id of IDS) {
    const { status, body } = await service.call('POST', `/clusters/${id}/restore?dry_run=true`)
    found[`tombstone ${id}`] = `${status} ${JSON.stringify(body.changes)}`
  }
  return found
}

async function documents(service: TestService, type: string, query = ''): Promise<string> {
  return (await service.call('GET', `/${type}${query}`)).text
}

async function ids(service: TestService, type = 'clusters'): Promise<string[]> {
  return (await service.call('GET', `/${type}`)).body.map(({ id }: { id: string }) => id)
}

async function pollStatus(service: TestService, dns: string): Promise<number> {
  const url = `/api/v2/flux/clusters/${dns}/platform-components`
  return (await service.call('GET', url, { token: READ_TOKEN })).status
}

/** Runs what must be refused, or find nothing to do, and leave everything as it is. */
async function assertChangesNothing(service: TestService, refused: () => Promise<void>): Promise<void> {
  const { revision } = service.engine.state
  const before = await seen(service)
  await refused()
  assert.equal(service.engine.state.revision, revision)
  assert.deepEqual(await seen(service), before)
}

const cluster = (id: string, more: Body = {}): Body => ({
  id,
  cluster_name: id,
  cluster_dns: `${id}.k8s.example.com`,
  environment: 'qa',
  ...more,
})
const component = (id: string): Body => ({
  id,
  component_path: 'p',
  component_version: '1',
  oci_url: 'oci://x',
  oci_tag: 'v1',
})

/** Revisions 2 to 19: something of everything. */
const STORY: readonly Write[] = [
  ['PATCH', '/clusters/one', { labels: { region: 'eu' }, node_count: 3 }],
  ['POST', '/namespaces', { id: 'team-c', labels: { team: 'c' } }],
  [
    'POST',
    '/clusters',
    cluster('three', { namespaces: [{ id: 'team-c' }], platform_components: [{ id: 'c' }, { id: 'a' }] }),
  ],
  ['PATCH', '/clusters/one/patches/a', { replicas: '9', size: 'xl' }],
  ['DELETE', '/clusters/two'],
  ['PATCH', '/platform_components/a', { oci_tag: 'v9', cluster_env_enabled: true }],
  ['DELETE', '/platform_components/a?cascade=true'],
  ['DELETE', '/clusters/two?purge=true'],
  ['PATCH', '/clusters/one', { cluster_dns: 'renamed.k8s.example.com' }],
  ['POST', '/clusters', cluster('four', { cluster_dns: 'one.k8s.example.com' })],
  ['DELETE', '/clusters/three'],
  ['POST', '/clusters/three/restore'],
  ['PUT', '/clusters/one/platform_components/c', { enabled: false }],
  ['DELETE', '/clusters/four'],
  ['POST', '/clusters', cluster('four', { environment: 'prod', rolebindings: [{ id: 'admins' }] })],
  ['PUT', '/rolebindings/admins', { role: 'view', subjects: [{ kind: 'User', name: 'jo' }] }],
  ['PATCH', '/clusters/one', { platform_components: [{ id: 'c', enabled: false }, { id: 'b' }] }],
  ['DELETE', '/clusters/one'],
]

/** What was seen at each revision of the story, the empty fleet before it included. */
async function tell(service: TestService): Promise<Record<string, string>[]> {
  const told: Record<string, string>[] = []
  told[1] = await seen(service)
  for (const write of STORY) told[await run(service, write)] = await seen(service)
  return told
}

for (const [store, open] of Object.entries(STORES)) {
  test(`the whole fleet becomes what it was at any revision, forth and back (${store})`, async (t) => {
    const service = await start(t, { store: await open(t) })
    const told = await tell(service)
    const last = STORY.length + 1
    assert.equal(told.length, last + 1)
    const { text: log } = await service.call('GET', `/revisions?before=${last + 1}`)
    for (let i = 1; i <= last; i++) {
      const to_revision = ((i * 7) % last) + 1
      const answer = await goBack(service, { to_revision, ...CONFIRMED })
      assert.deepEqual(await seen(service), told[to_revision], `revision ${to_revision}`)
      assert.equal(answer.headers['x-revision'], String(answer.body.revision))
      assert.equal(answer.body.revision, service.engine.state.revision)
    }
    assert.equal((await service.call('GET', `/revisions?before=${last + 1}`)).text, log)
    const { body: verified } = await service.call('GET', '/revisions/verify')
    assert.deepEqual(verified.problems, [])
  })

  test(`the whole fleet becomes what it was at any time (${store})`, async (t) => {
    let minute = 0
    const at = (of: number, more = '00.000Z') => `2026-01-31T12:${String(of).padStart(2, '0')}:${more}`
    const service = await start(t, { store: await open(t), now: () => new Date(at(minute)) })
    const told: Record<string, string>[] = [{}, await seen(service)]
    for (const write of STORY) {
      minute += 2
      told[await run(service, write)] = await seen(service)
    }
    minute = 58
    for (const [to_time, revision] of [
      [at(0), 1],
      [at(1), 1],
      [at(2), 2],
      ['2026-01-31T14:03:59.999+02:00', 2],
      ['2026-01-31t07:04:00-05:00', 3],
      [at(9, '00Z'), 5],
      ['2026-01-31T12:10:00.0000001z', 6],
      [at(35), 18],
      [at(36), 19],
      [at(11), 6],
    ] as const) {
      await goBack(service, { to_time, ...CONFIRMED })
      assert.deepEqual(await seen(service), told[revision], to_time)
      minute = Math.min(minute + 1, 59)
    }
  })

  test(`before the first revision there was nothing (${store})`, async (t) => {
    const service = await start(t, { store: await open(t) })
    const told = await tell(service)
    for (const to of [{ to_revision: 0 }, { to_time: '2001-01-01T00:00:00Z' }]) {
      await goBack(service, { ...to, ...CONFIRMED })
      for (const { name } of service.types.all) assert.deepEqual(await ids(service, name), [])
      for (const dns of NAMES) assert.equal(await pollStatus(service, dns), 404)
      await goBack(service, { to_revision: 12, ...CONFIRMED })
      assert.deepEqual(await seen(service), told[12])
    }
  })
}

test('clusters created since are gone without a trace, and deleted ones are back', async (t) => {
  const service = await start(t)
  await run(
    service,
    ['POST', '/clusters', cluster('three', { platform_components: [{ id: 'a' }] })],
    ['POST', '/clusters', cluster('four')],
    ['DELETE', '/clusters/four'],
    ['DELETE', '/clusters/one'],
    ['DELETE', '/clusters/two?purge=true'],
  )
  const { body } = await goBack(service, { to_revision: 1 })
  assert.equal(body.changes, 4)
  assert.deepEqual(await changesOf(service, 7), [
    'create clusters/two',
    'purge clusters/four',
    'purge clusters/three',
    'restore clusters/one',
  ])
  assert.deepEqual(await ids(service), ['one', 'two'])
  for (const id of ['three', 'four']) {
    assert.equal(await pollStatus(service, `${id}.k8s.example.com`), 404)
    assertProblem(await service.call('POST', `/clusters/${id}/restore`), 404, 'not_found')
  }
  for (const id of ['one', 'two']) assert.equal(await pollStatus(service, `${id}.k8s.example.com`), 200)
})

test('clusters that were deleted then are deleted again', async (t) => {
  const service = await start(t)
  const to_revision = await run(service, ['DELETE', '/clusters/one'])
  const then = await seen(service)
  await run(
    service,
    ['POST', '/clusters/one/restore'],
    ['PATCH', '/clusters/one', { node_count: 5, cluster_dns: 'renamed.k8s.example.com' }],
  )
  await goBack(service, { to_revision })
  assert.deepEqual(await seen(service), then)
  assert.deepEqual(await changesOf(service, 5), ['delete clusters/one'])
})

test('a rollback is a revision like any other and says what it was', async (t) => {
  const service = await start(t)
  await run(service, ['PATCH', '/clusters/one', { labels: { region: 'eu' } }])
  for (const [i, [choice, operation]] of (
    [
      [{}, 'rollback to revision 1'],
      [
        { selector: 'environment=dev', ids: ['one'] },
        'rollback of (environment=dev) and ids one to revision 1',
      ],
      [{ types: ['clusters', 'namespaces'] }, 'rollback of types clusters, namespaces to revision 1'],
    ] as const
  ).entries()) {
    const before = await run(service, ['PATCH', '/clusters/one', { node_count: i + 1 }])
    const headers = { 'x-change-message': 'from the header', 'x-request-id': `req-${i}` }
    const message = i === 0 ? { message: 'oh no' } : {}
    await service.call('POST', '/rollback', { body: { to_revision: 1, ...choice, ...message }, headers })
    const { body } = await service.call('GET', `/revisions/${before + 1}`)
    assert.equal(body.operation, operation)
    assert.equal(body.message, i === 0 ? 'oh no' : 'from the header')
    assert.equal(body.actor, 'writer')
    assert.equal(body.request_id, `req-${i}`)
  }
})

test('a rollback by time is recorded with the time in UTC', async (t) => {
  let now = '2026-01-31T12:00:00Z'
  const service = await start(t, { now: () => new Date(now) })
  now = '2026-01-31T13:00:00Z'
  await run(service, ['PATCH', '/clusters/one', { node_count: 1 }])
  const { body } = await goBack(service, { to_time: '2026-01-31T13:30:00+01:00' })
  const { body: recorded } = await service.call('GET', `/revisions/${body.revision}`)
  assert.equal(recorded.operation, 'rollback to 2026-01-31T12:30:00.000Z')
  assert.equal((await service.call('GET', '/clusters/one')).body.node_count, undefined)
})

test('going back to where the fleet is already makes no revision', async (t) => {
  const service = await start(t)
  await run(
    service,
    ['PATCH', '/clusters/one', { node_count: 1 }],
    ['PATCH', '/clusters/one', { node_count: null }],
    ['POST', '/clusters', cluster('three')],
    ['DELETE', '/clusters/three?purge=true'],
    ['DELETE', '/clusters/two'],
    ['POST', '/clusters/two/restore'],
  )
  await assertChangesNothing(service, async () => {
    for (const to_revision of [7, 5, 3, 1]) {
      const { body } = await goBack(service, { to_revision })
      assert.equal(body.changes, 0)
      assert.equal(body.revision, 7)
      const { touched, clusters, endpoints, inputs, details } = body.impact
      assert.deepEqual([touched, clusters, endpoints, inputs, details], [0, 0, {}, [], []])
    }
  })
})

test('a rollback can be rolled back', async (t) => {
  const service = await start(t)
  const told = await tell(service)
  const last = STORY.length + 1
  await goBack(service, { to_revision: 3, ...CONFIRMED })
  await goBack(service, { to_revision: last, ...CONFIRMED })
  assert.deepEqual(await seen(service), told[last])
  await goBack(service, { to_revision: last + 1, ...CONFIRMED })
  assert.deepEqual(await seen(service), told[3])
})

/** Revision 1: four clusters in two regions. Revision 2: every one of them changed. */
async function startRegions(t: TestContext, store: Store = openMemoryStore()): Promise<TestService> {
  const region = (id: string, name: string, more: Body = {}) =>
    cluster(id, { labels: { region: name }, ...more })
  const service = await start(t, {
    store,
    fleet: {
      ...smallFleet(),
      clusters: [
        region('one', 'eu', { platform_components: [{ id: 'a' }] }),
        region('two', 'eu'),
        region('three', 'us'),
        region('four', 'us', { namespaces: [{ id: 'team-a' }] }),
      ],
    },
  })
  const operations = [{ op: 'patch', type: 'clusters', selector: 'id', patch: { node_count: 7 } }]
  await run(service, ['POST', '/batch', { operations }])
  return service
}

async function changedClusters(service: TestService): Promise<string[]> {
  const { body } = await service.call('GET', '/clusters')
  return body.flatMap(({ id, node_count }: { id: string; node_count?: number }) => (node_count ? [id] : []))
}

test('a rollback can be of some clusters, types or ids only', async (t) => {
  const service = await startRegions(t)
  await run(service, ['PATCH', '/namespaces/team-a', { labels: { team: 'z' } }])
  for (const [choice, changed, stay] of [
    [{ selector: 'region=eu' }, 2, ['four', 'three']],
    [{ selector: 'region!=eu, id!=four' }, 1, ['four', 'one', 'two']],
    [{ selector: 'uses.platform_components=a' }, 1, ['four', 'three', 'two']],
    [{ selector: 'environment=qa', types: ['clusters'] }, 4, []],
    [{ selector: 'region=eu', ids: ['two', 'three'] }, 1, ['four', 'one', 'three']],
    [{ ids: ['one', 'four'] }, 2, ['three', 'two']],
    [{ ids: ['one', 'team-a'] }, 2, ['four', 'three', 'two']],
    [{ ids: ['one'], types: ['clusters'] }, 1, ['four', 'three', 'two']],
    [{ types: ['clusters'] }, 4, []],
    [{ types: ['namespaces'] }, 1, ['four', 'one', 'three', 'two']],
    [{ types: ['rolebindings', 'platform_components'] }, 0, ['four', 'one', 'three', 'two']],
    [{ types: ['namespaces', 'clusters'] }, 5, []],
    [{}, 5, []],
  ] as const) {
    const label = JSON.stringify(choice)
    const answer = await goBack(service, { to_revision: 1, ...choice })
    assert.equal(answer.body.changes, changed, label)
    assert.deepEqual(await changedClusters(service), stay, label)
    const { labels } = (await service.call('GET', '/namespaces/team-a')).body
    const untouched = 'types' in choice ? !choice.types.some((type) => type === 'namespaces') : true
    const chosen = 'ids' in choice && choice.ids.some((id) => id === 'team-a')
    const whole = Object.keys(choice).length === 0
    assert.equal(labels.team, untouched && !chosen && !whole ? 'z' : 'a', label)
    await goBack(service, { to_revision: 3 })
  }
})

test('a selector chooses clusters by what they are now', async (t) => {
  const service = await startRegions(t)
  await run(service, ['PATCH', '/clusters/one', { labels: { region: 'us' } }])
  await goBack(service, { to_revision: 2, selector: 'region=eu' })
  assert.equal((await service.call('GET', '/clusters/one')).body.labels.region, 'us')
  await goBack(service, { to_revision: 1, selector: 'region=us' })
  assert.deepEqual(await changedClusters(service), ['two'])
  assert.equal((await service.call('GET', '/clusters/one')).body.labels.region, 'eu')
})

test('a selector chooses clusters that are gone by what they were then', async (t) => {
  const service = await startRegions(t)
  await run(
    service,
    ['PATCH', '/clusters/two', { labels: { region: 'us' } }],
    ['DELETE', '/clusters/two'],
    ['DELETE', '/clusters/three?purge=true'],
    ['POST', '/clusters', cluster('five', { labels: { region: 'eu' } })],
    ['POST', '/clusters', cluster('six', { labels: { region: 'us' } })],
  )
  await goBack(service, { to_revision: 2, selector: 'region=eu' })
  assert.deepEqual(await ids(service), ['four', 'one', 'six', 'two'])
  assert.equal(await pollStatus(service, 'five.k8s.example.com'), 404)
  assert.equal(await pollStatus(service, 'three.k8s.example.com'), 404)
  await goBack(service, { to_revision: 2, selector: 'region=us' })
  assert.deepEqual(await ids(service), ['four', 'one', 'three', 'two'])
})

test('only what was chosen is touched, whatever else has changed', async (t) => {
  const service = await start(t)
  await tell(service)
  const before = await documents(service, 'platform_components')
  const bindings = await documents(service, 'rolebindings')
  const then = await documents(service, 'clusters', '?at=14')
  await goBack(service, { to_revision: 14, types: ['clusters'], ...CONFIRMED })
  assert.equal(await documents(service, 'clusters'), then)
  assert.equal(await documents(service, 'platform_components'), before)
  assert.equal(await documents(service, 'rolebindings'), bindings)
})

test('clusters are not rolled back to definitions that are gone since, and those are named', async (t) => {
  const service = await start(t)
  await run(
    service,
    ['DELETE', '/platform_components/a?cascade=true'],
    ['DELETE', '/namespaces/team-a?cascade=true&confirm=removals'],
  )
  for (const choice of [{ types: ['clusters'] }, { ids: ['one'] }, { selector: 'environment=dev' }]) {
    await assertChangesNothing(service, async () => {
      const refused = await rollback(service, { to_revision: 1, ...choice })
      assert.ok([400, 409].includes(refused.status), refused.text)
      assert.deepEqual(pathsIn(refused).toSorted(), [
        '/clusters/one/namespaces/0/id',
        '/clusters/one/platform_components/0/id',
      ])
      const told = refused.body.details.map(({ message }: { message: string }) => message).join('\n')
      assert.match(told, /platform component "a"/)
      assert.match(told, /namespace "team-a"/)
    })
  }
  const { body } = await goBack(service, { to_revision: 1, ids: ['one', 'a', 'team-a'] })
  assert.equal(body.changes, 3)
  assert.equal(await documents(service, 'clusters'), await documents(service, 'clusters', '?at=1'))
})

test('definitions that are in use since are not taken away, and their users are named', async (t) => {
  const service = await start(t)
  await run(
    service,
    ['POST', '/namespaces', { id: 'team-c' }],
    ['PUT', '/clusters/two/namespaces/team-c', {}],
  )
  await assertChangesNothing(service, async () => {
    const refused = await rollback(service, { to_revision: 1, types: ['namespaces'] })
    assertProblem(refused, 409, 'conflict')
    assert.match(refused.body.message, /team-c.*clusters\/two/)
    assert.deepEqual(pathsIn(refused), ['/clusters/two'])
  })
  assert.equal((await goBack(service, { to_revision: 1, ...CONFIRMED })).body.changes, 2)
})

test('a cluster does not get a DNS name back that another one has now', async (t) => {
  const service = await start(t)
  await run(
    service,
    ['PATCH', '/clusters/one', { cluster_dns: 'renamed.k8s.example.com' }],
    ['POST', '/clusters', cluster('four', { cluster_dns: 'one.k8s.example.com' })],
  )
  await assertChangesNothing(service, async () => {
    const refused = await rollback(service, { to_revision: 1, ids: ['one'] })
    assertProblem(refused, 409, 'conflict')
    assert.match(refused.body.message, /one\.k8s\.example\.com.*four/)
    assert.deepEqual(pathsIn(refused), ['/clusters/one/cluster_dns'])
  })
  await goBack(service, { to_revision: 1, ids: ['one', 'four'] })
  assert.equal(await documents(service, 'clusters'), await documents(service, 'clusters', '?at=1'))
})

test('a protected cluster that was created since is not deleted, whatever is confirmed', async (t) => {
  const service = await start(t)
  await run(
    service,
    ['PATCH', '/clusters/one', { node_count: 1 }],
    ['POST', '/clusters', cluster('three', { deletion_protection: true })],
  )
  await assertChangesNothing(service, async () => {
    for (const more of [{}, CONFIRMED, { dry_run: true }]) {
      const refused = await rollback(service, { to_revision: 1, ...more })
      assertProblem(refused, 409, 'conflict')
      assert.match(refused.body.message, /"three" is protected.*deletion_protection/)
    }
  })
  await goBack(service, { to_revision: 1, ids: ['one'] })
  await run(service, ['PATCH', '/clusters/three', { deletion_protection: false }])
  await goBack(service, { to_revision: 1 })
  assert.deepEqual(await ids(service), ['one', 'two'])
})

test('a protected cluster that was deleted then is not deleted again', async (t) => {
  const service = await start(t)
  const to_revision = await run(service, ['DELETE', '/clusters/one'])
  await run(
    service,
    ['POST', '/clusters/one/restore'],
    ['PATCH', '/clusters/one', { deletion_protection: true }],
  )
  await assertChangesNothing(service, async () => {
    assertProblem(await rollback(service, { to_revision, ...CONFIRMED }), 409, 'conflict')
  })
})

test('a cluster that is protected since can go back to when it was not', async (t) => {
  const service = await start(t)
  await run(service, ['PATCH', '/clusters/one', { deletion_protection: true, node_count: 1 }])
  await goBack(service, { to_revision: 1 })
  assert.equal((await service.call('GET', '/clusters/one')).body.deletion_protection, false)
})

test('a rollback that removes a lot has to be confirmed', async (t) => {
  const operations = [
    { op: 'create', type: 'platform_components', document: component('b') },
    { op: 'assign', type: 'platform_components', ref: { id: 'b' }, selector: 'id' },
  ]
  const clusters = Array.from({ length: 10 }, (_, i) =>
    cluster(`k${i}`, { platform_components: [{ id: 'a' }] }),
  )
  const service = await start(t, {
    fleet: { platform_components: [component('a')], clusters },
  })
  await run(service, ['POST', '/batch', { operations }])
  const after = await documents(service, 'clusters')
  const preview = (await rollback(service, { to_revision: 1, dry_run: true })).body
  assert.deepEqual(preview.requires_confirmation, ['removals'])
  assert.equal(preview.change_count, 11)
  for (const body of [{ to_revision: 1 }, { to_revision: 1, plan: preview.plan }, { to_revision: 0 }]) {
    const refused = await rollback(service, body)
    assertProblem(refused, 409, 'destructive_change')
    assert.match(refused.body.message, /confirm=removals/)
    assert.ok(refused.body.impact.clusters === 10, refused.text)
  }
  assert.match((await rollback(service, { to_revision: 0 })).body.message, /deletes 10 clusters/)
  assert.equal(service.engine.state.revision, 2)
  assert.equal(await documents(service, 'clusters'), after)
  const done = await goBack(service, { to_revision: 1, plan: preview.plan, ...CONFIRMED })
  assert.equal(done.body.plan, preview.plan)
  assert.deepEqual(done.body.impact, preview.impact)
  const { body: recorded } = await service.call('GET', '/revisions/3')
  assert.deepEqual(recorded.changes, preview.changes)
  assert.deepEqual(recorded.impact, preview.impact)
  const back = await rollback(service, { to_revision: 2 }, '?confirm=removals')
  assert.equal(back.status, 200, 'a confirmation can be in the URL as well')
  assert.equal(await documents(service, 'clusters'), after)
})

test('a dry run tells what a rollback would do and does nothing', async (t) => {
  const service = await start(t)
  await run(
    service,
    ['PATCH', '/platform_components/a', { oci_tag: 'v9' }],
    ['DELETE', '/clusters/two'],
    ['POST', '/clusters', cluster('three', { platform_components: [{ id: 'a' }] })],
  )
  await assertChangesNothing(service, async () => {
    for (const [body, query] of [
      [{ to_revision: 1, dry_run: true }, ''],
      [{ to_revision: 1 }, '?dry_run=true'],
    ] as const) {
      const preview = await rollback(service, body, query)
      assert.equal(preview.status, 200, preview.text)
      assert.equal(preview.body.dry_run, true)
      assert.equal(preview.body.base_revision, 4)
      assert.equal(preview.body.change_count, 3)
      assert.deepEqual(preview.body.impact.by_environment, { dev: 1, qa: 1 })
      const { endpoints } = preview.body.impact
      assert.deepEqual(endpoints, {
        'platform-components': { clusters: 2, added: 0, removed: 1, changed: 1 },
      })
    }
  })
})

test('a rollback does what its preview showed, or nothing', async (t) => {
  const service = await start(t)
  await run(service, ['PATCH', '/clusters/one', { node_count: 3 }])
  const { plan } = (await rollback(service, { to_revision: 1, dry_run: true })).body
  await run(service, ['PATCH', '/clusters/two', { node_count: 3 }])
  await assertChangesNothing(service, async () => {
    const refused = await rollback(service, { to_revision: 1, plan })
    assertProblem(refused, 409, 'plan_changed')
    assert.ok(
      pathsIn(refused).some((path) => path.startsWith('/clusters/two')),
      refused.text,
    )
  })
  assert.equal((await goBack(service, { to_revision: 1, ids: ['one'], plan })).body.changes, 1)
})

test('what a rollback does not know is refused by name', async (t) => {
  const service = await start(t, { now: () => new Date('2026-01-31T12:00:00Z') })
  await run(service, ['PATCH', '/clusters/one', { node_count: 3 }])
  await assertChangesNothing(service, async () => {
    for (const [body, path] of [
      [{}, ''],
      [[], ''],
      ['1', ''],
      [{ to_revision: 1, to_time: '2026-01-31T12:00:00Z' }, ''],
      [{ to_revision: '1' }, '/to_revision'],
      [{ to_revision: -1 }, '/to_revision'],
      [{ to_revision: 1.5 }, '/to_revision'],
      [{ to_revision: 3 }, '/to_revision'],
      [{ to_time: 'yesterday' }, '/to_time'],
      [{ to_time: '2026-01-31' }, '/to_time'],
      [{ to_time: '2026-01-31T12:00:00' }, '/to_time'],
      [{ to_time: '2026-13-31T12:00:00Z' }, '/to_time'],
      [{ to_time: 1 }, '/to_time'],
      [{ to_time: '2026-01-31T12:00:00.001Z' }, '/to_time'],
      [{ to_time: '2026-01-31T12:00:00-01:00' }, '/to_time'],
      [{ to_revision: 1, revision: 1 }, '/revision'],
      [{ to_revision: 1, types: [] }, '/types'],
      [{ to_revision: 1, types: ['clusters', 'cluster'] }, '/types/1'],
      [{ to_revision: 1, ids: [] }, '/ids'],
      [{ to_revision: 1, ids: ['one', 'nobody'] }, '/ids/1'],
      [{ to_revision: 1, ids: ['team-a'], types: ['clusters'] }, '/ids/0'],
      [{ to_revision: 1, ids: ['__proto__'] }, '/ids/0'],
      [{ to_revision: 1, ids: 'one' }, '/ids'],
      [{ to_revision: 1, selector: '' }, '/selector'],
      [{ to_revision: 1, selector: 'environment in dev' }, '/selector'],
      [{ to_revision: 1, selector: 'uses.nothing=a' }, '/selector'],
      [{ to_revision: 1, selector: 'environment=uat' }, '/selector'],
      [{ to_revision: 1, selector: 'id', types: ['namespaces'] }, '/types'],
      [{ to_revision: 1, selector: 'id', types: ['clusters', 'namespaces'] }, '/types'],
      [{ to_revision: 1, message: 'x'.repeat(1001) }, '/message'],
      [{ to_revision: 1, confirm: 'removals' }, '/confirm'],
    ] as const) {
      const refused = await rollback(service, body)
      assertProblem(refused, 400, 'validation_error')
      assert.ok(pathsIn(refused).includes(path), `${JSON.stringify(body)}: ${refused.text}`)
    }
    assertProblem(await rollback(service, undefined), 400, 'validation_error')
    const refused = await rollback(service, { to_revision: 1 }, '?to_revision=1')
    assert.deepEqual(pathsIn(refused), ['?to_revision'])
  })
})

test('a selector or id that chooses nothing can be allowed', async (t) => {
  const service = await start(t)
  await run(service, ['PATCH', '/clusters/one', { node_count: 3 }])
  await assertChangesNothing(service, async () => {
    for (const choice of [{ selector: 'environment=uat' }, { ids: ['nobody'] }]) {
      const { body } = await goBack(service, { to_revision: 1, allow_empty: true, ...choice })
      assert.equal(body.changes, 0)
    }
    const { body } = await goBack(service, { to_revision: 1, selector: 'environment=prod' })
    assert.equal(body.changes, 0, 'a cluster that is as it was already is no mistake')
  })
})

test('only the write token rolls back, only by POST, and not in read-only mode', async (t) => {
  const service = await start(t)
  const body = { to_revision: 0 }
  assertProblem(await service.call('POST', '/rollback', { body, token: READ_TOKEN }), 403, 'forbidden')
  assertProblem(await service.call('POST', '/rollback', { body, token: null }), 401, 'unauthorized')
  assertProblem(await service.call('GET', '/rollback'), 405, 'method_not_allowed')
  const readOnly = await start(t, { mode: 'read-only' })
  assertProblem(await readOnly.call('POST', '/rollback', { body }), 405, 'method_not_allowed')
  assert.equal(service.engine.state.revision, 1)
})

for (const [store, open] of Object.entries(STORES)) {
  test(`a rollback among many writes leaves the fleet exactly as it was (${store})`, async (t) => {
    const service = await start(t, { store: await open(t) })
    const then = await documents(service, 'clusters')
    const writes = (round: number) =>
      Array.from({ length: 20 }, (_, i) =>
        service.call('PATCH', `/clusters/${i % 2 ? 'one' : 'two'}`, {
          body: { labels: { [`l${round}-${i}`]: 'x' } },
        }),
      )
    const before = writes(0)
    const rolled = goBack(service, { to_revision: 1 })
    const after = writes(1)
    const { body } = await rolled
    await Promise.all([...before, ...after])
    assert.equal(await documents(service, 'clusters', `?at=${body.revision}`), then)
    assert.equal(service.engine.state.revision, 42)
    assert.equal((await service.call('GET', '/revisions/verify')).body.verified, true)
  })

  test(`hundreds of documents go back at once (${store})`, async (t) => {
    const service = await start(t, { store: await open(t) })
    const then = await seen(service)
    const ids = Array.from({ length: 450 }, (_, i) => `n${String(i).padStart(3, '0')}`)
    const operations = [
      ...ids.map((id) => ({ op: 'create', type: 'namespaces', document: { id } })),
      ...ids.map((id) => ({ op: 'assign', type: 'namespaces', ref: { id }, clusters: ['two'] })),
    ]
    await run(service, ['POST', '/batch', { operations }])
    const later = await seen(service)
    assert.equal((await goBack(service, { to_revision: 1, ...CONFIRMED })).body.changes, 451)
    assert.deepEqual(await seen(service), then)
    assert.equal((await goBack(service, { to_revision: 2 })).body.changes, 451)
    assert.deepEqual(await seen(service), later)
  })
}

test('a process rolls back what another one has just written, and the other follows', async (t) => {
  const path = join(temporaryFolder(t), 'fleet.db')
  const one = await start(t, { store: openSqliteStore({ path, write: true }) })
  const two = await start(t, { store: openSqliteStore({ path, write: true }) })
  const told = await tell(one)
  for (const to_revision of [5, 12, 19, 1]) {
    await goBack(two, { to_revision, ...CONFIRMED })
    assert.deepEqual(await seen(two), told[to_revision])
    await one.engine.catchUp()
    assert.deepEqual(await seen(one), told[to_revision])
  }
})

test('after a restart the fleet can go back to before it', async (t) => {
  const path = join(temporaryFolder(t), 'fleet.db')
  const first = await startService({ store: openSqliteStore({ path, write: true }) })
  const told = await tell(first)
  await first.stop()
  const second = await start(t, { store: openSqliteStore({ path, write: true }) })
  for (const to_revision of [8, 3]) {
    await goBack(second, { to_revision, ...CONFIRMED })
    assert.deepEqual(await seen(second), told[to_revision])
  }
})

test('a rollback brings back the very bytes, the order of values included', async (t) => {
  const service = await start(t)
  const values = '/clusters/one/patches/a'
  await run(service, ['PUT', values, { x: '1', y: '2' }])
  const { text, headers } = await service.call('GET', '/clusters/one/inputs/platform-components')
  await run(service, ['PATCH', values, { x: null }], ['PATCH', values, { x: '1' }])
  assert.notEqual((await service.call('GET', '/clusters/one/inputs/platform-components')).text, text)
  await goBack(service, { to_revision: 2 })
  const back = await service.call('GET', '/clusters/one/inputs/platform-components')
  assert.deepEqual([back.text, back.headers.etag], [text, headers.etag])
})

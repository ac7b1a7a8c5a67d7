import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Json, JsonObject } from '../src/base/json.ts'
import {
  type Answer,
  builtInTypes,
  type Call,
  READ_TOKEN,
  smallFleet,
  spawnService,
  startService,
  type TestService,
  temporaryFolder,
  WRITE_TOKEN,
} from './service.ts'

const POLLS = '/api/v2/flux/clusters'
const ENDPOINTS = ['platform-components', 'namespaces', 'rolebindings']
const MiB = 1024 * 1024
const types = builtInTypes()

/** Clusters one (dev, with a and b), two (prod, empty), three (dev, eu, with a) and four (qa, eu, empty). */
function fleet() {
  const { clusters, ...rest } = smallFleet()
  return {
    ...rest,
    clusters: [
      ...clusters,
      cluster('three', { labels: { region: 'eu' }, platform_components: [{ id: 'a' }] }),
      cluster('four', { environment: 'qa', labels: { region: 'eu', tier: '2' } }),
    ],
  }
}

function cluster(id: string, more: JsonObject = {}) {
  return {
    id,
    cluster_name: id,
    cluster_dns: `${id}.k8s.example.com`,
    environment: 'dev',
    ...more,
  }
}

function component(id: string, more: JsonObject = {}) {
  return {
    id,
    component_path: `core/${id}/1.0.0`,
    component_version: '1.0.0',
    oci_url: 'oci://registry.example.com/components',
    oci_tag: 'v1.0.0',
    ...more,
  }
}

function start(): Promise<TestService> {
  return startService({ fleet: fleet(), types })
}

const CONFIRMED = { confirm: ['removals'] }

interface Batched {
  call(method: string, url: string, options?: Call): Promise<Answer>
}

function batch(service: Batched, operations: Json, more: JsonObject = {}, call: Call = {}): Promise<Answer> {
  return service.call('POST', '/batch', { body: { operations, ...more }, ...call })
}

/** Runs a batch that must work and make the given revision. */
async function done(service: Batched, revision: number, operations: Json, more: JsonObject = {}) {
  const answer = await batch(service, operations, more)
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.body.revision, revision, answer.text)
  assert.equal(answer.headers['x-revision'], String(revision))
  return answer.body
}

function assertProblem(answer: Answer, status: number, error: string, at?: string): void {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.body.error, error)
  if (at !== undefined) assert.equal(answer.body.details[0].path, at)
}

/** A warning that tells which clusters were left as they are, for want of what. */
function assertLeftAlone(warning: string, which: string, id: string): void {
  for (const part of [which, `not have "${id}"`, 'nothing changes there'])
    assert.ok(warning.includes(part), warning)
}

async function get(service: Batched, url: string) {
  return (await service.call('GET', url)).body
}

function ids(list: readonly { id: string }[]): string[] {
  return list.map(({ id }) => id)
}

async function references(service: Batched, id: string, list = 'platform_components') {
  return (await get(service, `/clusters/${id}`))[list]
}

/** Everything that a fleet is and serves. */
async function everything(service: TestService): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const { name } of service.types.all) found[name] = (await service.call('GET', `/${name}`)).text
  for (const id of ['one', 'two', 'three', 'four', 'new']) {
    for (const endpoint of ENDPOINTS) {
      const { status, text } = await service.call('GET', `${POLLS}/${id}.k8s.example.com/${endpoint}`)
      found[`${id} ${endpoint}`] = `${status} ${status === 200 ? text : ''}`
    }
  }
  return found
}

describe('one batch is one revision', () => {
  test('with every change in it, and an answer that says what it meant', async () => {
    const service = await start()
    const operations = [
      { op: 'create', type: 'namespaces', document: { id: 'new' } },
      { op: 'assign', type: 'namespaces', ref: { id: 'new' }, clusters: ['two', 'one'] },
      { op: 'patch', type: 'platform_components', id: 'a', patch: { oci_tag: 'v1.1.0' } },
      { op: 'patch', type: 'clusters', id: 'four', patch: { node_count: 3 } },
    ]
    const answer = await batch(service, operations)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['x-revision'], '2')
    assert.deepEqual(Object.keys(answer.body).toSorted(), [
      'changes',
      'impact',
      'plan',
      'revision',
      'warnings',
    ])
    const { revision, changes, impact, warnings, plan } = answer.body
    assert.equal(revision, 2)
    assert.equal(changes, 5)
    assert.deepEqual(warnings, [])
    assert.match(plan, /^sha256:[0-9a-f]{64}$/)
    assert.equal(impact.clusters, 3)
    assert.deepEqual(impact.by_environment, { dev: 2, prod: 1 })
    assert.deepEqual(impact.endpoints, {
      'platform-components': { clusters: 2, added: 0, removed: 0, changed: 2 },
      namespaces: { clusters: 2, added: 2, removed: 0, changed: 0 },
    })
    const recorded = await get(service, '/revisions/2')
    assert.equal(recorded.change_count, 5)
    const told = recorded.changes.map(
      ({ op, type, id }: { op: string; type: string; id: string }) => `${op} ${type}/${id}`,
    )
    assert.deepEqual(told.toSorted(), [
      'create namespaces/new',
      'update clusters/four',
      'update clusters/one',
      'update clusters/two',
      'update platform_components/a',
    ])
    assert.deepEqual(recorded.impact, impact)
    assert.equal(service.engine.state.revision, 2)
    for (const id of ['one', 'two', 'four']) {
      assert.equal((await service.call('GET', `/clusters/${id}`)).headers.etag, '"2"')
    }
    assert.equal((await service.call('GET', '/clusters/three')).headers.etag, '"1"')
  })

  test('and the details of its impact are the differences of the polls', async () => {
    const service = await start()
    const operations = [
      { op: 'patch', type: 'platform_components', id: 'a', patch: { oci_tag: 'v1.1.0' } },
      { op: 'unassign', type: 'platform_components', id: 'b', clusters: ['one'] },
      {
        op: 'assign',
        type: 'platform_components',
        ref: { id: 'a', oci_tag: 'v9' },
        clusters: ['three', 'two'],
      },
    ]
    const { impact } = await done(service, 2, operations)
    const field = (before: string, after: string) => [
      { id: 'a', fields: [{ path: '/source/oci_tag', before, after }] },
    ]
    const none = { added: [], removed: [], changed: [] }
    const endpoint = 'platform-components'
    assert.deepEqual(impact.details, [
      {
        ...none,
        cluster: 'one',
        environment: 'dev',
        endpoint,
        removed: ['b'],
        changed: field('v1.0.0', 'v1.1.0'),
      },
      { ...none, cluster: 'three', environment: 'dev', endpoint, changed: field('v1.0.0', 'v9') },
      { ...none, cluster: 'two', environment: 'prod', endpoint, added: ['a'] },
    ])
  })

  test('or nothing at all, whatever goes wrong and wherever', async () => {
    const service = await start()
    const before = await everything(service)
    const good = [
      { op: 'create', type: 'namespaces', document: { id: 'new' } },
      { op: 'assign', type: 'namespaces', ref: { id: 'new' }, selector: 'id' },
      { op: 'delete', type: 'rolebindings', id: 'admins', cascade: true },
      { op: 'patch', type: 'clusters', id: 'two', patch: { node_count: 1 } },
    ]
    for (const [bad, status] of [
      [{ op: 'create', type: 'namespaces', document: { id: 'team-a' } }, 409],
      [{ op: 'patch', type: 'clusters', id: 'nobody', patch: {} }, 404],
      [{ op: 'assign', type: 'namespaces', ref: { id: 'nobody' }, clusters: ['one'] }, 400],
      [{ op: 'delete', type: 'clusters', selector: 'id=nobody' }, 400],
      [{ op: 'patch', type: 'clusters', id: 'one', patch: {}, if_revision: 9 }, 412],
      [{ op: 'patch_values', component: 'a', values: { x: 1 }, clusters: ['one'] }, 400],
      [{ op: 'patch', type: 'clusters', id: 'one', patch: { cluster_dns: 'two.k8s.example.com' } }, 409],
    ] as const) {
      for (const operations of [
        [...good, bad],
        [bad, ...good],
        [...good.slice(0, 2), bad, ...good.slice(2)],
      ]) {
        const answer = await batch(service, operations as Json)
        assert.equal(answer.status, status, answer.text)
        assert.equal(service.engine.state.revision, 1)
      }
    }
    assert.deepEqual(await everything(service), before)
    assert.equal((await batch(service, good, CONFIRMED)).status, 200)
  })

  test('even when each of its operations would be refused alone', async () => {
    const service = await start()
    const swap = [
      { op: 'patch', type: 'clusters', id: 'one', patch: { cluster_dns: 'two.k8s.example.com' } },
      { op: 'patch', type: 'clusters', id: 'two', patch: { cluster_dns: 'one.k8s.example.com' } },
    ]
    for (const operation of swap) assertProblem(await batch(service, [operation]), 409, 'conflict')
    await done(service, 2, swap)
    assert.equal((await get(service, '/clusters/one')).cluster_dns, 'two.k8s.example.com')
    const drop = [
      { op: 'delete', type: 'namespaces', id: 'team-a' },
      { op: 'unassign', type: 'namespaces', id: 'team-a', clusters: ['one'] },
    ]
    assertProblem(await batch(service, drop.slice(0, 1)), 409, 'conflict')
    await done(service, 3, drop, CONFIRMED)
  })

  test('whose message, actor and operation are kept', async () => {
    const service = await start()
    const operations = [
      { op: 'patch', type: 'clusters', selector: 'region=eu', patch: { node_count: 1 } },
      { op: 'delete', type: 'rolebindings', id: 'admins', cascade: true },
    ]
    await done(service, 2, operations, { message: 'Größer für Zoë → 🚀', ...CONFIRMED })
    const { message, actor, operation } = await get(service, '/revisions/2')
    assert.equal(message, 'Größer für Zoë → 🚀')
    assert.equal(actor, 'writer')
    assert.match(operation, /patch clusters\/\(region=eu\); delete rolebindings\/admins/)
    const change = (node_count: number) => [
      { op: 'patch', type: 'clusters', id: 'one', patch: { node_count } },
    ]
    const headers = { 'x-change-message': 'from the header' }
    await batch(service, change(2), {}, { headers })
    assert.equal((await get(service, '/revisions/3')).message, 'from the header')
    await service.call('POST', '/batch', {
      body: { operations: change(3), message: 'from the body' },
      headers,
    })
    assert.equal((await get(service, '/revisions/4')).message, 'from the body')
    await done(service, 5, change(4))
    assert.equal((await get(service, '/revisions/5')).message, null)
    const many = Array.from({ length: 50 }, (_, i) => ({
      op: 'create',
      type: 'namespaces',
      document: { id: `n${i}` },
    }))
    await done(service, 6, many)
    assert.match((await get(service, '/revisions/6')).operation, /^create namespaces\/n0; .* and 45 more$/)
  })

  test('or none when it changes nothing', async () => {
    const service = await start()
    for (const operations of [
      [{ op: 'patch', type: 'clusters', selector: 'id', patch: {} }],
      [{ op: 'patch', type: 'clusters', id: 'one', patch: { environment: 'dev' } }],
      [{ op: 'replace', type: 'namespaces', id: 'team-a', document: { labels: { team: 'a' } } }],
      [{ op: 'assign', type: 'platform_components', ref: { id: 'a' }, clusters: ['one', 'three'] }],
      [{ op: 'patch_values', component: 'a', values: { replicas: '2', gone: null }, clusters: ['one'] }],
      [
        { op: 'patch', type: 'clusters', id: 'one', patch: { node_count: 5 } },
        { op: 'patch', type: 'clusters', id: 'one', patch: { node_count: null } },
      ],
      [
        { op: 'create', type: 'namespaces', document: { id: 'new' } },
        { op: 'delete', type: 'namespaces', id: 'new' },
      ],
      [
        { op: 'delete', type: 'clusters', id: 'two' },
        { op: 'restore', type: 'clusters', id: 'two' },
      ],
      [
        { op: 'assign', type: 'namespaces', ref: { id: 'team-b' }, selector: 'id' },
        { op: 'unassign', type: 'namespaces', id: 'team-b', selector: 'id' },
      ],
    ]) {
      const { changes, impact } = await done(service, 1, operations)
      assert.equal(changes, 0)
      const { touched, clusters, endpoints, inputs, details } = impact
      assert.deepEqual([touched, clusters, endpoints, inputs, details], [0, 0, {}, [], []])
    }
    assert.equal(service.engine.state.revision, 1)
    assert.equal((await service.call('GET', '/clusters/two')).headers.etag, '"1"')
  })
})

test('later operations see what earlier ones did', async () => {
  const service = await start()
  const { changes } = await done(service, 2, [
    { op: 'create', type: 'platform_components', document: component('base') },
    { op: 'create', type: 'platform_components', document: component('top', { depends_on: ['base'] }) },
    { op: 'create', type: 'clusters', document: cluster('new', { labels: { wave: '1' } }) },
    { op: 'patch', type: 'clusters', id: 'two', patch: { labels: { wave: '1' } } },
    { op: 'assign', type: 'platform_components', ref: { id: 'base' }, selector: 'wave=1' },
    {
      op: 'assign',
      type: 'platform_components',
      ref: { id: 'top' },
      selector: 'uses.platform_components=base',
    },
    { op: 'patch_values', component: 'top', values: { replicas: '3' }, selector: 'wave=1' },
    { op: 'patch_values', component: 'top', values: { color: 'red' }, clusters: ['new'] },
    {
      op: 'assign',
      type: 'platform_components',
      ref: { id: 'top', oci_tag: 'v2' },
      merge: true,
      clusters: ['two'],
    },
    { op: 'patch', type: 'clusters', selector: 'wave=1', patch: [{ op: 'remove', path: '/labels/wave' }] },
  ])
  assert.equal(changes, 4)
  const made = await get(service, '/clusters/new')
  assert.deepEqual(made.labels, {})
  assert.deepEqual(ids(made.platform_components), ['base', 'top'])
  assert.deepEqual(made.patches, { top: { replicas: '3', color: 'red' } })
  const two = await get(service, '/clusters/two')
  assert.deepEqual(two.platform_components, [
    { id: 'base', enabled: true },
    { id: 'top', enabled: true, oci_tag: 'v2' },
  ])
  assert.deepEqual(two.patches, { top: { replicas: '3' } })
  const { body } = await service.call('GET', `${POLLS}/new.k8s.example.com/platform-components`)
  assert.deepEqual(ids(body.inputs), ['base', 'top'])
})

test('a document can be deleted and made anew in one batch', async () => {
  const service = await start()
  const operations = [
    { op: 'delete', type: 'namespaces', id: 'team-a', cascade: true },
    { op: 'create', type: 'namespaces', document: { id: 'team-a', labels: { team: 'new' } } },
    { op: 'assign', type: 'namespaces', ref: { id: 'team-a' }, clusters: ['two'] },
    { op: 'delete', type: 'clusters', id: 'four' },
    { op: 'create', type: 'clusters', document: cluster('four', { environment: 'uat' }) },
  ]
  await done(service, 2, operations, CONFIRMED)
  assert.deepEqual((await get(service, '/namespaces/team-a')).labels, { team: 'new' })
  assert.deepEqual(await references(service, 'one', 'namespaces'), [])
  assert.deepEqual(ids(await references(service, 'two', 'namespaces')), ['team-a'])
  assert.equal((await get(service, '/clusters/four')).environment, 'uat')
})

describe('an operation does what its own route does', () => {
  for (const [operation, method, url, body, headers] of [
    [
      { op: 'create', type: 'clusters', document: cluster('new', { platform_components: [{ id: 'c' }] }) },
      'POST',
      '/clusters',
      cluster('new', { platform_components: [{ id: 'c' }] }),
    ],
    [
      { op: 'create', type: 'platform_components', document: component('d') },
      'POST',
      '/platform_components',
      component('d'),
    ],
    [{ op: 'create', type: 'namespaces', document: { id: 'new' } }, 'POST', '/namespaces', { id: 'new' }],
    [
      { op: 'create', type: 'rolebindings', document: { id: 'new', role: 'view', subjects: [] } },
      'POST',
      '/rolebindings',
      { id: 'new', role: 'view', subjects: [] },
    ],
    [
      { op: 'replace', type: 'namespaces', id: 'team-a', document: { labels: { x: 'y' } } },
      'PUT',
      '/namespaces/team-a',
      { labels: { x: 'y' } },
    ],
    [
      { op: 'replace', type: 'clusters', id: 'one', document: cluster('one') },
      'PUT',
      '/clusters/one?confirm=removals',
      cluster('one'),
    ],
    [
      {
        op: 'patch',
        type: 'clusters',
        id: 'one',
        patch: { node_count: 3, labels: { a: 'b' }, patches: null },
      },
      'PATCH',
      '/clusters/one',
      { node_count: 3, labels: { a: 'b' }, patches: null },
    ],
    [
      { op: 'patch', type: 'clusters', clusters: ['four'], patch: { labels: { tier: null } } },
      'PATCH',
      '/clusters/four',
      { labels: { tier: null } },
    ],
    [
      { op: 'patch', type: 'clusters', id: 'one', patch: [{ op: 'remove', path: '/platform_components/1' }] },
      'PATCH',
      '/clusters/one',
      [{ op: 'remove', path: '/platform_components/1' }],
      { 'content-type': 'application/json-patch+json' },
    ],
    [
      { op: 'patch', type: 'rolebindings', id: 'admins', patch: { role: 'edit' } },
      'PATCH',
      '/rolebindings/admins',
      { role: 'edit' },
    ],
    [{ op: 'delete', type: 'clusters', id: 'one' }, 'DELETE', '/clusters/one'],
    [
      { op: 'delete', type: 'clusters', selector: 'id=one', purge: true },
      'DELETE',
      '/clusters/one?purge=true',
    ],
    [{ op: 'delete', type: 'namespaces', id: 'team-b' }, 'DELETE', '/namespaces/team-b'],
    [
      { op: 'delete', type: 'platform_components', id: 'a', cascade: true },
      'DELETE',
      '/platform_components/a?cascade=true&confirm=removals',
    ],
    [
      { op: 'assign', type: 'platform_components', ref: { id: 'a', oci_tag: 'v9' }, clusters: ['one'] },
      'PUT',
      '/clusters/one/platform_components/a',
      { oci_tag: 'v9' },
    ],
    [
      { op: 'assign', type: 'namespaces', ref: { id: 'team-b', labels: { x: 'y' } }, selector: 'id=two' },
      'PUT',
      '/clusters/two/namespaces/team-b',
      { labels: { x: 'y' } },
    ],
    [
      {
        op: 'assign',
        type: 'platform_components',
        ref: { id: 'b', oci_tag: null, enabled: false },
        merge: true,
        clusters: ['one'],
      },
      'PATCH',
      '/clusters/one/platform_components/b',
      { oci_tag: null, enabled: false },
    ],
    [
      { op: 'unassign', type: 'platform_components', id: 'a', clusters: ['one'] },
      'DELETE',
      '/clusters/one/platform_components/a',
    ],
    [
      { op: 'patch_values', component: 'a', values: { replicas: null, color: 'red' }, clusters: ['one'] },
      'PATCH',
      '/clusters/one/patches/a',
      { replicas: null, color: 'red' },
    ],
    [
      { op: 'patch_values', component: 'a', values: { color: 'red' }, replace: true, selector: 'id=one' },
      'PUT',
      '/clusters/one/patches/a',
      { color: 'red' },
    ],
    [
      { op: 'patch_values', component: 'a', values: {}, replace: true, clusters: ['one'] },
      'DELETE',
      '/clusters/one/patches/a',
    ],
  ] as readonly (readonly [JsonObject, string, string, Json?, Record<string, string>?])[]) {
    test(`${operation.op} and ${method} ${url}`, async () => {
      const [batched, single] = await Promise.all([start(), start()])
      const answer = await single.call(method, url, { body, ...(headers && { headers }) })
      assert.ok(answer.status < 300, answer.text)
      await done(batched, 2, [operation], url.includes('confirm=removals') ? CONFIRMED : {})
      assert.deepEqual(await everything(batched), await everything(single))
      const [one, other] = await Promise.all([batched, single].map((service) => get(service, '/revisions/2')))
      assert.deepEqual(one.changes, other.changes)
      assert.deepEqual(one.impact, other.impact)
    })
  }

  test('restore and POST /clusters/{id}/restore', async () => {
    const [batched, single] = await Promise.all([start(), start()])
    for (const service of [batched, single]) await service.call('DELETE', '/clusters/one')
    await single.call('POST', '/clusters/one/restore')
    await done(batched, 3, [{ op: 'restore', type: 'clusters', id: 'one' }])
    assert.deepEqual(await everything(batched), await everything(single))
  })
})

describe('operations on several clusters', () => {
  test('patch: by ids, by selector, merging or as a JSON patch', async () => {
    const service = await start()
    const named = await done(service, 2, [
      { op: 'patch', type: 'clusters', clusters: ['two', 'four'], patch: { node_count: 2 } },
    ])
    assert.equal(named.changes, 2)
    const selected = await done(service, 3, [
      {
        op: 'patch',
        type: 'clusters',
        selector: 'region=eu',
        patch: [{ op: 'add', path: '/labels/zone', value: 'a' }],
      },
    ])
    assert.equal(selected.changes, 2)
    const { body } = await service.call('GET', '/clusters')
    assert.deepEqual(
      body.map(({ id, node_count, labels }: { id: string; node_count?: number; labels: JsonObject }) => [
        id,
        node_count,
        labels,
      ]),
      [
        ['four', 2, { region: 'eu', tier: '2', zone: 'a' }],
        ['one', undefined, {}],
        ['three', undefined, { region: 'eu', zone: 'a' }],
        ['two', 2, {}],
      ],
    )
  })

  test('each gets lists of its own from a JSON patch that goes on building them', async () => {
    const service = await start()
    const patch = [
      { op: 'add', path: '/namespaces', value: [] },
      { op: 'add', path: '/namespaces/-', value: { id: 'team-a' } },
      { op: 'add', path: '/namespaces/0/labels', value: {} },
      { op: 'remove', path: '/namespaces/0/labels' },
    ]
    await done(service, 2, [{ op: 'patch', type: 'clusters', clusters: ['two', 'four'], patch }])
    for (const id of ['two', 'four'])
      assert.deepEqual((await service.call('GET', `/clusters/${id}`)).body.namespaces, [{ id: 'team-a' }])
  })

  test('a JSON patch that one of them cannot take is refused for all', async () => {
    const service = await start()
    const patch = [{ op: 'remove', path: '/labels/tier' }]
    const answer = await batch(service, [{ op: 'patch', type: 'clusters', selector: 'region=eu', patch }])
    assertProblem(answer, 400, 'validation_error', '/operations/0/patch/0')
    assert.equal(service.engine.state.revision, 1)
  })

  test('assign: where it is assigned already it is replaced, in its place', async () => {
    const service = await start()
    const { changes } = await done(service, 2, [
      { op: 'assign', type: 'platform_components', ref: { id: 'a', oci_tag: 'v5' }, selector: 'id' },
    ])
    assert.equal(changes, 4)
    const a = { id: 'a', enabled: true, oci_tag: 'v5' }
    assert.deepEqual(await references(service, 'one'), [a, { id: 'b', enabled: true, oci_tag: 'v2.0.0' }])
    for (const id of ['two', 'three', 'four']) assert.deepEqual(await references(service, id), [a])
    assert.deepEqual((await get(service, '/clusters/one')).patches, { a: { replicas: '2' } })
  })

  test('assign with merge: changes what the reference says, and only where there is one', async () => {
    const service = await start()
    const { changes, warnings } = await done(service, 2, [
      {
        op: 'assign',
        type: 'platform_components',
        ref: { id: 'a', oci_tag: 'v5' },
        merge: true,
        selector: 'id',
      },
      {
        op: 'assign',
        type: 'platform_components',
        ref: { id: 'b', enabled: false },
        merge: true,
        clusters: ['one'],
      },
    ])
    assert.equal(changes, 2)
    assert.equal(warnings.length, 1)
    assertLeftAlone(warnings[0], '2 of the clusters that match (id)', 'a')
    assert.deepEqual(await references(service, 'one'), [
      { id: 'a', enabled: true, oci_tag: 'v5' },
      { id: 'b', enabled: false, oci_tag: 'v2.0.0' },
    ])
    assert.deepEqual(await references(service, 'two'), [])
    await done(service, 3, [
      {
        op: 'assign',
        type: 'platform_components',
        ref: { id: 'a', oci_tag: null },
        merge: true,
        selector: 'region=eu',
      },
    ])
    assert.deepEqual(await references(service, 'three'), [{ id: 'a', enabled: true }])
  })

  test('unassign: takes the values for it away too, and leaves alone those that lack it', async () => {
    const service = await start()
    const operations = [{ op: 'unassign', type: 'platform_components', id: 'a', selector: 'id' }]
    const answer = await batch(service, operations, CONFIRMED)
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.body.changes, 2)
    assertLeftAlone(answer.body.warnings[0], '2 of the clusters that match (id)', 'a')
    assert.match(String(answer.headers.warning), /^299 .*2 of the clusters that match/)
    const one = await get(service, '/clusters/one')
    assert.deepEqual(ids(one.platform_components), ['b'])
    assert.deepEqual(one.patches, {})
  })

  test('patch_values: null removes, replace forgets the others, and those that lack it are left alone', async () => {
    const service = await start()
    const values = async () => [
      (await get(service, '/clusters/one')).patches,
      (await get(service, '/clusters/three')).patches,
      (await get(service, '/clusters/two')).patches,
    ]
    const first = await done(service, 2, [
      { op: 'patch_values', component: 'a', values: { color: 'red', replicas: null }, selector: 'id' },
    ])
    assert.match(first.warnings[0], /2 of the clusters/)
    assert.deepEqual(await values(), [{ a: { color: 'red' } }, { a: { color: 'red' } }, {}])
    await done(service, 3, [
      { op: 'patch_values', component: 'a', values: { size: 'xl' }, clusters: ['one'] },
    ])
    assert.deepEqual((await values())[0], { a: { color: 'red', size: 'xl' } })
    await done(service, 4, [
      {
        op: 'patch_values',
        component: 'a',
        values: { only: 'this', not: null },
        replace: true,
        clusters: ['one', 'three'],
      },
    ])
    assert.deepEqual(await values(), [{ a: { only: 'this' } }, { a: { only: 'this' } }, {}])
    await done(service, 5, [
      { op: 'patch_values', component: 'a', values: {}, replace: true, clusters: ['one'] },
    ])
    assert.deepEqual((await values())[0], {})
  })

  test('delete, restore and purge', async () => {
    const service = await start()
    const before = (await service.call('GET', '/clusters')).text
    const poll = (id: string) => service.call('GET', `${POLLS}/${id}.k8s.example.com/platform-components`)
    await done(service, 2, [{ op: 'delete', type: 'clusters', selector: 'environment=dev' }])
    assert.deepEqual(ids(await get(service, '/clusters')), ['four', 'two'])
    for (const id of ['one', 'three']) assert.equal((await poll(id)).text, '{"inputs":[]}')
    await done(service, 3, [{ op: 'restore', type: 'clusters', clusters: ['three', 'one'] }])
    assert.equal((await service.call('GET', '/clusters')).text, before)
    await done(service, 4, [{ op: 'delete', type: 'clusters', clusters: ['one', 'two'], purge: true }])
    for (const id of ['one', 'two']) assert.equal((await poll(id)).status, 404)
    await done(service, 5, [{ op: 'delete', type: 'clusters', id: 'three' }])
    await done(service, 6, [{ op: 'delete', type: 'clusters', id: 'three', purge: true }])
    assert.equal((await poll('three')).status, 404)
    assertProblem(await batch(service, [{ op: 'restore', type: 'clusters', id: 'three' }]), 404, 'not_found')
  })

  test('delete with cascade takes a definition from all clusters and definitions that name it', async () => {
    const service = await start()
    const operations = [
      { op: 'delete', type: 'platform_components', id: 'a', cascade: true },
      { op: 'delete', type: 'namespaces', id: 'team-a', cascade: true },
    ]
    const { changes } = await done(service, 2, operations, CONFIRMED)
    assert.equal(changes, 5)
    assert.deepEqual(ids(await references(service, 'one')), ['b'])
    assert.deepEqual(await references(service, 'three'), [])
    assert.deepEqual((await get(service, '/platform_components/b')).depends_on, [])
  })
})

describe('selectors choose', () => {
  for (const [selector, expected] of [
    ['id', ['four', 'one', 'three', 'two']],
    ['id=one', ['one']],
    ['environment=dev', ['one', 'three']],
    ['environment == dev , region', ['three']],
    ['environment in (qa,prod)', ['four', 'two']],
    ['environment notin (qa, prod)', ['one', 'three']],
    ['environment!=dev', ['four', 'two']],
    ['region', ['four', 'three']],
    ['!region', ['one', 'two']],
    ['region!=eu', ['one', 'two']],
    ['tier>1', ['four']],
    ['tier<2', []],
    ['cluster_dns=ONE.k8s.example.com', ['one']],
    ['cluster_name=two', ['two']],
    ['uses.platform_components=a', ['one', 'three']],
    ['uses.platform_components!=a', ['four', 'two']],
    ['uses.namespaces', ['one']],
    ['!uses.platform_components', ['four', 'two']],
    ['uses.platform_components>1', ['one']],
    ['region=eu,uses.platform_components in (a,b)', ['three']],
    ['region=us', []],
  ] as const) {
    test(`${selector}: the same in a batch and in a list`, async () => {
      const service = await start()
      const list = await service.call('GET', `/clusters?selector=${encodeURIComponent(selector)}`)
      assert.deepEqual(ids(list.body), expected)
      assert.equal(list.headers['x-total-count'], String(expected.length))
      const operations = [{ op: 'patch', type: 'clusters', selector, patch: { node_count: 77 } }]
      const { changes } = await done(service, expected.length > 0 ? 2 : 1, operations, { allow_empty: true })
      assert.equal(changes, expected.length)
      const { body } = await service.call('GET', '/clusters')
      const changed = body.filter(({ node_count }: { node_count?: number }) => node_count === 77)
      assert.deepEqual(ids(changed), expected)
    })
  }

  const ON_CLUSTERS: readonly JsonObject[] = [
    { op: 'patch', type: 'clusters', patch: { node_count: 1 } },
    { op: 'delete', type: 'clusters' },
    { op: 'assign', type: 'namespaces', ref: { id: 'team-b' } },
    { op: 'assign', type: 'namespaces', ref: { id: 'team-a' }, merge: true },
    { op: 'unassign', type: 'namespaces', id: 'team-a' },
    { op: 'patch_values', component: 'a', values: { x: '1' } },
  ]

  test('nothing only where that is said to be fine', async () => {
    const service = await start()
    const also = { op: 'create', type: 'namespaces', document: { id: 'new' } }
    for (const operation of ON_CLUSTERS) {
      const empty = { ...operation, selector: 'region=us' }
      const refused = await batch(service, [also, empty])
      assertProblem(refused, 400, 'validation_error', '/operations/1/selector')
      assert.match(refused.body.message, /matches no cluster: correct it, or set allow_empty to true/)
      assertProblem(await batch(service, [{ ...empty, allow_empty: false }]), 400, 'validation_error')
      assert.equal((await done(service, 1, [{ ...empty, allow_empty: true }])).changes, 0)
      assert.equal((await done(service, 1, [empty], { allow_empty: true })).changes, 0)
    }
    const [empty = {}] = ON_CLUSTERS.map((operation) => ({ ...operation, selector: 'region=us' }))
    assertProblem(
      await batch(service, [{ ...empty, allow_empty: true }, empty]),
      400,
      'validation_error',
      '/operations/1/selector',
    )
    assert.equal((await done(service, 2, [{ ...empty, allow_empty: true }, also])).changes, 1)
  })

  for (const operation of [
    { op: 'unassign', type: 'platform_components', id: 'c' },
    { op: 'assign', type: 'platform_components', ref: { id: 'c', enabled: false }, merge: true },
    { op: 'patch_values', component: 'c', values: { x: '1' } },
  ]) {
    test(`${operation.op}: none that has it is like none at all`, async () => {
      const service = await start()
      const refused = await batch(service, [{ ...operation, selector: 'region=eu' }])
      assertProblem(refused, 400, 'validation_error', '/operations/0/selector')
      assert.match(refused.body.message, /matches 2 clusters, none of which is assigned "c"/)
      const fine = await done(service, 1, [{ ...operation, selector: 'region=eu', allow_empty: true }])
      assertLeftAlone(fine.warnings[0], '2 of the clusters that match (region=eu)', 'c')
      const named = await batch(service, [{ ...operation, clusters: ['two'] }])
      assertProblem(named, 404, 'not_found')
      assert.match(named.body.message, /\/operations\/0.*"c" is not assigned to cluster "two"/)
      assertProblem(
        await batch(service, [{ ...operation, clusters: ['two'] }], { allow_empty: true }),
        404,
        'not_found',
      )
    })
  }

  test('only live clusters', async () => {
    const service = await start()
    await service.call('DELETE', '/clusters/three')
    const { changes } = await done(service, 3, [
      { op: 'patch', type: 'clusters', selector: 'region=eu', patch: { node_count: 1 } },
    ])
    assert.equal(changes, 1)
  })
})

describe('if_revision', () => {
  test('lets an operation pass only on the revision that was read', async () => {
    const service = await start()
    await service.call('PATCH', '/clusters/one', { body: { node_count: 1 } })
    const other = { op: 'create', type: 'namespaces', document: { id: 'new' } }
    for (const operation of [
      { op: 'replace', type: 'clusters', id: 'one', document: cluster('one') },
      { op: 'patch', type: 'clusters', id: 'one', patch: { node_count: 2 } },
      { op: 'delete', type: 'clusters', id: 'one' },
    ]) {
      const refused = await batch(service, [other, { ...operation, if_revision: 1 }])
      assertProblem(refused, 412, 'precondition_failed', '/operations/1')
      assert.match(refused.body.message, /^\/operations\/1: cluster "one" is at revision 2/)
      assert.equal(service.engine.state.revision, 2)
      const previewed = await service.call('POST', '/batch?dry_run=true', {
        body: { operations: [other, { ...operation, if_revision: 2 }] },
      })
      assert.equal(previewed.status, 200, previewed.text)
    }
    await done(service, 3, [other, { op: 'delete', type: 'clusters', id: 'one', if_revision: 2 }])
  })

  test('of many batches that read the same revision lets one pass', async () => {
    const service = await start()
    for (let round = 1; round <= 5; round++) {
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, i) =>
          batch(service, [
            {
              op: 'patch',
              type: 'clusters',
              id: 'one',
              patch: { node_count: round * 10 + i },
              if_revision: round,
            },
            { op: 'create', type: 'namespaces', document: { id: `r${round}-${i}` } },
          ]),
        ),
      )
      assert.equal(answers.filter(({ status }) => status === 200).length, 1)
      assert.equal(answers.filter(({ status }) => status === 412).length, 9)
    }
    assert.equal((await get(service, '/namespaces')).length, 2 + 5)
    assert.equal(service.engine.state.revision, 6)
  })
})

test('batches and single writes at the same time are all kept, each a revision', async () => {
  const service = await start()
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => [
      batch(service, [
        { op: 'create', type: 'namespaces', document: { id: `n${i}` } },
        { op: 'assign', type: 'namespaces', ref: { id: `n${i}` }, selector: 'id' },
      ]),
      service.call('PATCH', '/clusters/one', { body: { labels: { [`l${i}`]: 'x' } } }),
    ]).flat(),
  )
  for (const { status, text } of answers) assert.equal(status, 200, text)
  const revisions = answers.map(({ headers }) => Number(headers['x-revision']))
  assert.deepEqual(
    revisions.toSorted((a, b) => a - b),
    Array.from({ length: 40 }, (_, i) => i + 2),
  )
  const one = await get(service, '/clusters/one')
  assert.equal(one.namespaces.length, 1 + 20)
  assert.equal(Object.keys(one.labels).length, 20)
})

test('a component that comes without its dependency draws a warning', async () => {
  const service = await start()
  const { warnings } = await done(service, 2, [
    { op: 'assign', type: 'platform_components', ref: { id: 'b' }, clusters: ['two', 'three'] },
  ])
  assert.deepEqual(warnings, ['cluster "two": "b" depends on "a", which is not assigned'])
  const again = await done(service, 3, [
    { op: 'assign', type: 'namespaces', ref: { id: 'team-b' }, clusters: ['two'] },
    { op: 'assign', type: 'platform_components', ref: { id: 'c' }, clusters: ['one', 'two'] },
  ])
  assert.deepEqual(
    again.warnings,
    [],
    'what was missing before is not of this write, and what depends on it is there',
  )
})

test('what many clusters come to lack is one warning', async () => {
  const clusters = Array.from({ length: 6 }, (_, i) => ({
    id: `c${i}`,
    cluster_name: `c${i}`,
    cluster_dns: `c${i}.k8s.example.com`,
    environment: 'dev',
  }))
  const { clusters: _ours, ...definitions } = smallFleet()
  const service = await startService({ fleet: { ...definitions, clusters } })
  const { warnings } = await done(service, 2, [
    { op: 'assign', type: 'platform_components', ref: { id: 'b' }, selector: 'id' },
  ])
  assert.deepEqual(warnings, [
    '6 clusters ("c0", "c1", "c2" and 3 more): "b" depends on "a", which is not assigned',
  ])
})

describe('large batches', () => {
  const CLUSTERS = 20_000
  const large = () => ({
    ...smallFleet(),
    clusters: Array.from({ length: CLUSTERS }, (_, i) =>
      cluster(`c${i}`, { environment: i % 4 === 0 ? 'prod' : 'dev', platform_components: [{ id: 'a' }] }),
    ),
  })

  test('20,000 documents change at one moment, while polls go on', async () => {
    const service = await startService({ fleet: large(), types })
    const operations = [
      { op: 'patch', type: 'clusters', selector: 'id', patch: { labels: { wave: '1' } } },
      { op: 'assign', type: 'namespaces', ref: { id: 'team-a' }, selector: 'id' },
    ]
    const writing = batch(service, operations)
    let finished = false
    writing.then(() => {
      finished = true
    })
    const counts = new Set<string>()
    let polls = 0
    while (!finished) {
      const [list, poll] = await Promise.all([
        service.call('GET', '/clusters?selector=wave&limit=0'),
        service.call('GET', `${POLLS}/c${CLUSTERS - 1}.k8s.example.com/namespaces`),
      ])
      counts.add(String(list.headers['x-total-count']))
      assert.equal(poll.status, 200)
      polls++
      await sleep(20)
    }
    const { status, body } = await writing
    assert.equal(status, 200)
    assert.equal(body.changes, CLUSTERS)
    assert.deepEqual(body.impact.by_environment, { dev: CLUSTERS * 0.75, prod: CLUSTERS * 0.25 })
    assert.equal(body.impact.endpoints.namespaces.added, CLUSTERS)
    assert.equal(body.impact.details.length, 100)
    assert.ok(polls > 1, `${polls} polls were answered meanwhile`)
    for (const count of counts)
      assert.ok(count === '0' || count === String(CLUSTERS), `${count} at some moment`)
    assert.equal((await get(service, '/revisions/2?limit=0&impact_limit=0')).change_count, CLUSTERS)
    const { text } = await service.call('GET', `${POLLS}/c777.k8s.example.com/namespaces`)
    assert.match(text, /"id":"team-a"/)
    await service.stop()
  })

  test('10,000 operations are one revision', async () => {
    const service = await startService({ fleet: large(), types })
    const operations = Array.from({ length: 10_000 }, (_, i) =>
      i % 2 === 0
        ? { op: 'create', type: 'namespaces', document: { id: `n${i}` } }
        : { op: 'assign', type: 'namespaces', ref: { id: `n${i - 1}` }, clusters: [`c${i}`] },
    )
    const { changes } = await done(service, 2, operations)
    assert.equal(changes, 10_000)
    assert.equal(service.engine.state.count('namespaces'), 2 + 5000)
    const { text } = await service.call('GET', `${POLLS}/c9999.k8s.example.com/namespaces`)
    assert.match(text, /"id":"n9998"/)
    const last = { op: 'create', type: 'namespaces', document: { id: 'n0' } }
    const fresh = operations.map(({ document, ...rest }) =>
      document
        ? { ...rest, document: { id: `x${document.id}` } }
        : { op: 'patch', type: 'clusters', id: 'c1', patch: {} },
    )
    const refused = await batch(service, [...fresh, last])
    assertProblem(refused, 409, 'conflict', '/operations/10000')
    assert.equal(service.engine.state.count('namespaces'), 2 + 5000)
    await service.stop()
  })
})

describe('the size of a body', () => {
  const operations = [{ op: 'create', type: 'namespaces', document: { id: 'new' } }]
  const small = JSON.stringify({ operations })

  test('may be more than 4 MiB for a batch', async () => {
    const service = await startService({ types })
    const annotations = { text: 'x'.repeat(50_000) }
    const many = Array.from({ length: 150 }, (_, i) => ({
      op: 'create',
      type: 'namespaces',
      document: { id: `n${i}`, annotations },
    }))
    const raw = JSON.stringify({ operations: many })
    assert.ok(raw.length > 7 * MiB)
    const answer = await service.call('POST', '/batch', { raw })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.body.changes, 150)
    assert.equal((await get(service, '/namespaces/n149')).annotations.text.length, 50_000)
  })

  test('may be 32 MiB for a batch', async () => {
    const service = await startService({ types })
    const { status } = await service.call('POST', '/batch', { raw: small.padEnd(32 * MiB) })
    assert.equal(status, 200)
    assert.equal(service.engine.state.revision, 2)
  })

  test('may not be more than that, nor more than 4 MiB elsewhere', async () => {
    const service = await startService({ types })
    const { port } = service.app.server.address() as AddressInfo
    for (const [method, path, size] of [
      ['POST', '/batch', 32 * MiB + 1],
      ['POST', '/batch?dry_run=true', 33 * MiB],
      ['POST', '/revisions/1/revert', 5 * MiB],
      ['POST', '/namespaces', 5 * MiB],
      ['PUT', '/namespaces/team-a', 5 * MiB],
      ['PATCH', '/clusters/one', 5 * MiB],
      ['PUT', '/clusters/one/platform_components/c', 5 * MiB],
      ['PATCH', '/clusters/one/patches/a', 5 * MiB],
    ] as const) {
      // The answer may come while the body is still being sent; fetch takes it even so.
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { authorization: `Bearer ${WRITE_TOKEN}`, 'content-type': 'application/json' },
        body: small.padEnd(size),
      })
      assert.equal(response.status, 413, path)
      const { error, message } = (await response.json()) as { error: string; message: string }
      assert.equal(error, 'payload_too_large')
      assert.match(message, /larger/)
    }
    assert.equal(service.engine.state.revision, 1)
  })
})

describe('who may send a batch', () => {
  const operations = [{ op: 'delete', type: 'clusters', id: 'one' }]

  test('only those with the write token; its preview, those who read', async () => {
    const service = await startService({ types })
    for (const [url, asReader] of [
      ['/batch', 403],
      ['/batch?dry_run=true', 200],
    ] as const) {
      for (const [token, status] of [
        [null, 401],
        ['wrong', 401],
        [READ_TOKEN, asReader],
      ] as const) {
        assert.equal((await service.call('POST', url, { body: { operations }, token })).status, status)
      }
    }
    assert.equal(service.engine.state.revision, 1)
  })

  test('nobody where the service is read-only', async () => {
    const service = await startService({ mode: 'read-only', types })
    for (const url of ['/batch', '/rollback', '/revisions/1/revert']) {
      assertProblem(await service.call('POST', url, { body: { operations } }), 405, 'method_not_allowed')
    }
  })
})

test('what a batch has acknowledged survives a kill, whole', async (t) => {
  const env = { API_MODE: 'crud', DATABASE_URL: `sqlite://${join(temporaryFolder(t), 'fleet.db')}` }
  const service = await spawnService(env)
  t.after(() => service.stop('SIGKILL'))
  const many = Array.from({ length: 3000 }, (_, i) => ({
    op: 'create',
    type: 'namespaces',
    document: { id: `n${i}` },
  }))
  await done(service, 1, [
    ...many,
    { op: 'create', type: 'clusters', document: cluster('one') },
    { op: 'assign', type: 'namespaces', ref: { id: 'n2999' }, selector: 'id' },
  ])
  await service.stop('SIGKILL')
  const again = await spawnService(env)
  t.after(() => again.stop('SIGKILL'))
  assert.equal((await get(again, '/revisions/1')).change_count, 3001)
  const { headers } = await again.call('GET', '/namespaces?limit=0')
  assert.equal(headers['x-total-count'], '3000')
  const { body } = await again.call('GET', `${POLLS}/one.k8s.example.com/namespaces`)
  assert.deepEqual(ids(body.inputs), ['n2999'])
})

test('assign with ensure assigns where it is missing, and changes only what is named where it is not', async () => {
  const service = await startService()
  const ensure = (ref: JsonObject, targets: JsonObject) =>
    service.call('POST', '/batch', {
      body: { operations: [{ op: 'assign', type: 'platform_components', ensure: true, ref, ...targets }] },
    })
  assert.equal((await ensure({ id: 'b', enabled: false }, { clusters: ['one', 'two'] })).status, 200)
  const referenceOf = async (cluster: string) =>
    (await service.call('GET', `/clusters/${cluster}/platform_components/b`)).body
  assert.deepEqual(await referenceOf('one'), { id: 'b', enabled: false, oci_tag: 'v2.0.0' })
  assert.deepEqual(await referenceOf('two'), { id: 'b', enabled: false })
  const again = await ensure({ id: 'b' }, { selector: 'id' })
  assert.equal(again.body.changes, 0)
  const both = await service.call('POST', '/batch', {
    body: {
      operations: [
        {
          op: 'assign',
          type: 'namespaces',
          ensure: true,
          merge: true,
          ref: { id: 'team-a' },
          clusters: ['two'],
        },
      ],
    },
  })
  assert.equal(both.status, 400, both.text)
  assert.match(both.body.message, /^\/operations\/0\/ensure does not go with merge/)
})

test('a warning that names what no header can hold is spelt out in it', async () => {
  const service = await startService({ types })
  const operation = { op: 'patch_values', component: 'b', values: {}, selector: 'environment,\u3000id' }
  const answer = await service.call('POST', '/batch', { body: { operations: [operation] } })
  assert.equal(answer.status, 200, answer.text)
  assert.match(String(answer.headers.warning), /environment,\\\\u3000id/)
  assert.match(answer.body.warnings[0], /environment,\u3000id/)
})

test('a message in a header is held to its length whatever the body says', async () => {
  const service = await startService({ types })
  const headers = { 'x-change-message': 'x'.repeat(1001) }
  const body = { message: '', operations: [{ op: 'create', type: 'namespaces', document: { id: 'new' } }] }
  assertProblem(await service.call('POST', '/batch', { body, headers }), 400, 'validation_error')
})

describe('a selector with a label that no cluster has is warned of', () => {
  const SAID = 'no cluster has the label "regoin": did you mean "region"?'
  const HEADER = `299 flux-resourceset "${SAID.replaceAll('"', '\\"')}"`
  const labelled = () => {
    const { clusters, ...rest } = smallFleet()
    return { ...rest, clusters: clusters.map((each) => ({ ...each, labels: { region: 'eu' } })) }
  }

  test('by a batch, with what it did', async () => {
    const service = await startService({ fleet: labelled() })
    const operations = [{ op: 'patch', type: 'clusters', selector: '!regoin', patch: { node_count: 3 } }]
    const { status, body } = await service.call('POST', '/batch', { body: { operations } })
    assert.deepEqual([status, body.warnings], [200, [SAID]])
  })

  test('where it matches nothing, in the refusal', async () => {
    const service = await startService({ fleet: labelled() })
    const operations = [{ op: 'patch', type: 'clusters', selector: 'regoin=eu', patch: { node_count: 3 } }]
    for (const [url, body] of [
      ['/batch', { operations }],
      ['/rollback', { to_revision: 1, selector: 'regoin=eu' }],
    ] as const) {
      const answer = await service.call('POST', url, { body })
      assertProblem(answer, 400, 'validation_error')
      assert.ok(answer.body.message.endsWith(`matches no cluster: ${SAID}`), answer.text)
    }
  })

  test('by a rollback', async () => {
    const service = await startService({ fleet: labelled() })
    await service.call('PATCH', '/clusters/one', { body: { node_count: 3 } })
    const body = { to_revision: 1, selector: 'regoin!=us' }
    assert.deepEqual((await service.call('POST', '/rollback', { body })).body.warnings, [SAID])
  })

  test('by a list, of now and of then, and by a new token', async () => {
    const service = await startService({ fleet: labelled() })
    for (const query of ['selector=regoin=eu', 'selector=!regoin&at=1', 'selector=!regoin&limit=1'])
      assert.equal((await service.call('GET', `/clusters?${query}`)).headers.warning, HEADER, query)
    for (const query of ['', '?selector=region=eu', '?selector=environment=dev,uses.namespaces,id'])
      assert.equal((await service.call('GET', `/clusters${query}`)).headers.warning, undefined, query)
    const body = { name: 'team', role: 'editor', selector: 'regoin=eu' }
    const made = await service.call('POST', '/tokens', { body })
    assert.deepEqual([made.status, made.headers.warning], [201, HEADER])
  })
})

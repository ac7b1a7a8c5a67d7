import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json, JsonObject } from '../src/base/json.ts'
import { assertProblem } from './every-store.ts'
import { type Answer, READ_TOKEN, smallFleet, startService, type TestService } from './service.ts'

const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' }
const JSON_PATCH = { 'content-type': 'application/json-patch+json' }

interface TypeCase {
  readonly type: string
  readonly document: JsonObject & { readonly id: string }
  /** What the service adds to it. */
  readonly defaults: JsonObject
  readonly change: JsonObject
}

const TYPES: readonly TypeCase[] = [
  {
    type: 'clusters',
    document: {
      id: 'three',
      cluster_name: 'three',
      cluster_dns: 'three.k8s.example.com',
      environment: 'qa',
      labels: { region: 'eu' },
      node_count: 3,
      platform_components: [{ id: 'a', enabled: false }],
      patches: { a: { replicas: '1' } },
    },
    defaults: { deletion_protection: false, namespaces: [], rolebindings: [] },
    change: { environment: 'uat' },
  },
  {
    type: 'platform_components',
    document: {
      id: 'd',
      component_path: 'core/d/1.0.0',
      component_version: '1.0.0',
      oci_url: 'oci://registry.example.com/components',
      oci_tag: 'v1.0.0',
      depends_on: ['a', 'c'],
    },
    defaults: { cluster_env_enabled: false },
    change: { oci_tag: 'v1.1.0' },
  },
  {
    type: 'namespaces',
    document: { id: 'team-c', labels: { team: 'c' } },
    defaults: { annotations: {} },
    change: { annotations: { owner: 'c' } },
  },
  {
    type: 'rolebindings',
    document: { id: 'system.viewers', role: 'view', subjects: [{ kind: 'User', name: 'ann' }] },
    defaults: {},
    change: { role: 'edit' },
  },
]

function revisionOf(service: TestService): number {
  return service.engine.state.revision
}

/** Every write that makes a revision says which, in its headers too. */
function assertWritten(answer: Answer, status: number, revision: number): void {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.headers.etag, `"${revision}"`)
  assert.equal(answer.headers['x-revision'], String(revision))
}

function ids({ body }: Answer): string[] {
  return body.map(({ id }: { id: string }) => id)
}

function fleetOfClusters(count: number, more: JsonObject = {}) {
  return Array.from({ length: count }, (_, i) => ({
    id: `c${String(i).padStart(2, '0')}`,
    cluster_name: `c${i}`,
    cluster_dns: `c${i}.k8s.example.com`,
    environment: 'dev',
    ...more,
  }))
}

for (const { type, document, defaults, change } of TYPES) {
  const url = `/${type}/${document.id}`

  test(`${type}: a created document is answered with its place, ETag and revision, and can be read`, async () => {
    const service = await startService()
    const created = await service.call('POST', `/${type}`, { body: document })
    assertWritten(created, 201, 2)
    assert.equal(created.headers.location, url)
    assert.deepEqual(created.body, { ...document, ...defaults })
    const read = await service.call('GET', url, { token: READ_TOKEN })
    assert.equal(read.status, 200)
    assert.equal(read.text, created.text)
    assert.equal(read.headers.etag, created.headers.etag)
    const list = await service.call('GET', `/${type}`, { token: READ_TOKEN })
    assert.ok(ids(list).includes(document.id))
    assert.equal(list.headers['x-total-count'], String(list.body.length))
  })

  test(`${type}: PUT replaces the whole document`, async () => {
    const service = await startService()
    await service.call('POST', `/${type}`, { body: document })
    const replaced = await service.call('PUT', url, { body: { ...document, ...change } })
    assertWritten(replaced, 200, 3)
    assert.deepEqual(replaced.body, { ...document, ...defaults, ...change })
    assert.equal((await service.call('GET', url)).text, replaced.text)
  })

  test(`${type}: PATCH merges into the document, with either content type`, async () => {
    for (const headers of [{}, MERGE_PATCH]) {
      const service = await startService()
      await service.call('POST', `/${type}`, { body: document })
      const patched = await service.call('PATCH', url, { body: change, headers })
      assertWritten(patched, 200, 3)
      assert.deepEqual(patched.body, { ...document, ...defaults, ...change })
      assert.equal((await service.call('GET', url)).text, patched.text)
    }
  })

  test(`${type}: a JSON patch is applied in its own content type`, async () => {
    const service = await startService()
    await service.call('POST', `/${type}`, { body: document })
    const steps = Object.entries(change).map(([key, value]) => ({ op: 'replace', path: `/${key}`, value }))
    const patched = await service.call('PATCH', url, { body: steps, headers: JSON_PATCH })
    assertWritten(patched, 200, 3)
    assert.deepEqual(patched.body, { ...document, ...defaults, ...change })
  })

  test(`${type}: DELETE answers what it deleted, and the document is gone`, async () => {
    const service = await startService()
    const created = await service.call('POST', `/${type}`, { body: document })
    const deleted = await service.call('DELETE', url)
    assert.equal(deleted.status, 200)
    assert.equal(deleted.headers['x-revision'], '3')
    assert.deepEqual(deleted.body, created.body)
    assertProblem(await service.call('GET', url), 404, 'not_found')
    assert.ok(!ids(await service.call('GET', `/${type}`)).includes(document.id))
    assertProblem(await service.call('DELETE', url), 404, 'not_found')
    assert.equal(revisionOf(service), 3)
  })

  test(`${type}: nothing but creating can be done to an unknown id`, async () => {
    const service = await startService()
    assertProblem(await service.call('GET', url), 404, 'not_found')
    assertProblem(await service.call('PUT', url, { body: document }), 404, 'not_found')
    assertProblem(await service.call('PATCH', url, { body: change }), 404, 'not_found')
    assertProblem(await service.call('DELETE', url), 404, 'not_found')
    assert.equal(revisionOf(service), 1)
  })

  test(`${type}: If-None-Match: * makes PUT create, and only create`, async () => {
    const service = await startService()
    const headers = { 'if-none-match': '*' }
    const created = await service.call('PUT', url, { body: document, headers })
    assertWritten(created, 201, 2)
    assert.equal(created.headers.location, url)
    assert.deepEqual(created.body, { ...document, ...defaults })
    const again = await service.call('PUT', url, { body: { ...document, ...change }, headers })
    assertProblem(again, 412, 'precondition_failed')
    assert.equal((await service.call('GET', url)).text, created.text)
    assert.equal(revisionOf(service), 2)
  })

  test(`${type}: If-Match lets a write pass only on the state that its caller has seen`, async () => {
    const service = await startService()
    await service.call('POST', `/${type}`, { body: document })
    const stale = { 'if-match': '"1"' }
    for (const [method, body] of [
      ['PUT', { ...document, ...change }],
      ['PATCH', change],
      ['DELETE', undefined],
    ] as const) {
      assertProblem(await service.call(method, url, { body, headers: stale }), 412, 'precondition_failed')
    }
    assert.equal(revisionOf(service), 2)
    const patched = await service.call('PATCH', url, { body: change, headers: { 'if-match': '"2"' } })
    assertWritten(patched, 200, 3)
    const seen = { 'if-match': `"2", ${patched.headers.etag}` }
    assertWritten(await service.call('PUT', url, { body: document, headers: seen }), 200, 4)
    const any = { 'if-match': '*' }
    assert.equal((await service.call('DELETE', url, { headers: any })).status, 200)
    assertProblem(
      await service.call('PUT', url, { body: document, headers: any }),
      412,
      'precondition_failed',
    )
  })

  test(`${type}: a write that changes nothing answers 200 and makes no revision`, async () => {
    const service = await startService()
    const created = await service.call('POST', `/${type}`, { body: document })
    const reversed = Object.fromEntries(Object.entries(document).reverse())
    const steps = Object.entries(document).map(([key, value]) => ({ op: 'replace', path: `/${key}`, value }))
    const writes: [string, Json, Record<string, string>?][] = [
      ['PUT', document],
      ['PUT', reversed],
      ['PUT', created.body],
      ['PATCH', {}],
      ['PATCH', document],
      ['PATCH', [], JSON_PATCH],
      ['PATCH', steps, JSON_PATCH],
    ]
    for (const [method, body, headers = {}] of writes) {
      const answer = await service.call(method, url, { body, headers })
      assertWritten(answer, 200, 2)
      assert.equal(answer.text, created.text)
    }
    assert.equal(revisionOf(service), 2)
  })

  test(`${type}: a second document with the same id is a conflict`, async () => {
    const service = await startService()
    const created = await service.call('POST', `/${type}`, { body: document })
    const again = await service.call('POST', `/${type}`, { body: { ...document, ...change } })
    assertProblem(again, 409, 'conflict')
    assert.match(again.body.message, new RegExp(document.id))
    assert.equal((await service.call('GET', url)).text, created.text)
    assert.equal(revisionOf(service), 2)
  })

  test(`${type}: the list is ordered by id and read in pages that link to each other`, async () => {
    const service = await startService()
    await service.call('POST', `/${type}`, { body: document })
    const all = ids(await service.call('GET', `/${type}`))
    assert.deepEqual(all, all.toSorted())
    const seen: string[] = []
    let next: string | undefined = `/${type}?limit=1`
    while (next) {
      const page = await service.call('GET', next)
      assert.equal(page.status, 200)
      assert.equal(page.body.length, 1)
      assert.equal(page.headers['x-total-count'], String(all.length))
      seen.push(...ids(page))
      next = linkTo(page, 'next')
      assert.equal(linkTo(page, 'prev') === undefined, seen.length === 1)
    }
    assert.deepEqual(seen, all)
    const beyond = await service.call('GET', `/${type}?offset=${all.length}`)
    assert.deepEqual(beyond.body, [])
    assert.equal(beyond.headers['x-total-count'], String(all.length))
    assert.equal(linkTo(beyond, 'next'), undefined)
  })
}

function linkTo({ headers }: Answer, rel: string): string | undefined {
  const links = [...String(headers.link ?? '').matchAll(/<([^>]*)>; rel="(\w+)"/g)]
  return links.find(([, , name]) => name === rel)?.[1]
}

test('PUT puts fields that are not sent back to their defaults', async () => {
  const service = await startService()
  const { id, cluster_name, cluster_dns, environment } = (await service.call('GET', '/clusters/one')).body
  const body = { cluster_name, cluster_dns, environment }
  const replaced = await service.call('PUT', '/clusters/one?confirm=removals', { body })
  assert.deepEqual(replaced.body, {
    id,
    ...body,
    labels: {},
    deletion_protection: false,
    patches: {},
    platform_components: [],
    namespaces: [],
    rolebindings: [],
  })
})

test('a merge patch changes nested values, takes null for "remove" and leaves the rest alone', async () => {
  const service = await startService()
  const before = (await service.call('GET', '/clusters/one')).body
  await service.call('PATCH', '/clusters/one', {
    body: { labels: { region: 'eu', tier: 'gold' }, node_count: 3 },
  })
  const patched = await service.call('PATCH', '/clusters/one', {
    body: { labels: { tier: null, zone: 'b' }, node_count: null },
  })
  assert.deepEqual(patched.body, { ...before, labels: { region: 'eu', zone: 'b' } })
})

test('a JSON patch whose test does not hold is a conflict and changes nothing', async () => {
  const service = await startService()
  const steps = [
    { op: 'replace', path: '/environment', value: 'qa' },
    { op: 'test', path: '/cluster_name', value: 'another' },
  ]
  const refused = await service.call('PATCH', '/clusters/one', { body: steps, headers: JSON_PATCH })
  assertProblem(refused, 409, 'conflict')
  assert.equal(refused.body.details[0].path, '/1')
  assert.equal(revisionOf(service), 1)
  assert.equal((await service.call('GET', '/clusters/one')).body.environment, 'dev')
  const holding = [{ op: 'test', path: '/cluster_name', value: 'one' }, ...steps.slice(0, 1)]
  const passed = await service.call('PATCH', '/clusters/one', { body: holding, headers: JSON_PATCH })
  assertWritten(passed, 200, 2)
  assert.equal(passed.body.environment, 'qa')
})

test('a JSON patch adds, removes, moves and copies', async () => {
  const service = await startService()
  const body = [
    { op: 'add', path: '/platform_components/-', value: { id: 'c' } },
    { op: 'move', from: '/platform_components/2', path: '/platform_components/0' },
    { op: 'add', path: '/labels/region', value: 'eu' },
    { op: 'copy', from: '/labels/region', path: '/labels/example.com~1zone' },
    { op: 'remove', path: '/patches/a' },
  ]
  const { body: cluster } = await service.call('PATCH', '/clusters/one', { body, headers: JSON_PATCH })
  const order = cluster.platform_components.map(({ id }: { id: string }) => id)
  assert.deepEqual(order, ['c', 'a', 'b'])
  assert.deepEqual(cluster.labels, { region: 'eu', 'example.com/zone': 'eu' })
  assert.deepEqual(cluster.patches, {})
})

test('a JSON patch with the empty pointer replaces the whole document', async () => {
  const service = await startService()
  const { body: before } = await service.call('GET', '/namespaces/team-a')
  const value = { ...before, labels: { team: 'z' } }
  const body = [
    { op: 'test', path: '', value: before },
    { op: 'replace', path: '', value },
  ]
  const patched = await service.call('PATCH', '/namespaces/team-a', { body, headers: JSON_PATCH })
  assertWritten(patched, 200, 2)
  assert.deepEqual(patched.body, value)
})

test('a content type may carry parameters and any case', async () => {
  const service = await startService()
  const headers = { 'content-type': 'Application/JSON; charset=UTF-8' }
  const created = await service.call('POST', '/namespaces', { raw: '{"id":"new"}', headers })
  assert.equal(created.status, 201)
})

test('lists are narrowed by the filters of their type, and the total counts what matches', async () => {
  const fleet = smallFleet()
  const service = await startService({
    fleet: {
      ...fleet,
      clusters: [...fleet.clusters, ...fleetOfClusters(3)],
      rolebindings: [...fleet.rolebindings, { id: 'viewers', role: 'view', subjects: [] }],
    },
  })
  await service.call('PATCH', '/platform_components/c', {
    body: { component_version: '2.0.0', oci_url: 'https://charts.example.com' },
  })
  const expected: [string, string[]][] = [
    ['/clusters?environment=prod', ['two']],
    ['/clusters?environment=uat', []],
    ['/clusters?cluster_name=one', ['one']],
    ['/clusters?cluster_dns=ONE.k8s.example.com.', ['one']],
    ['/clusters?environment=dev', ['c00', 'c01', 'c02', 'one']],
    ['/clusters?environment=dev&cluster_name=two', []],
    ['/platform_components?component_version=2.0.0', ['c']],
    ['/platform_components?oci_url=https%3A%2F%2Fcharts.example.com', ['c']],
    ['/rolebindings?role=view', ['viewers']],
  ]
  for (const [url, wanted] of expected) {
    const answer = await service.call('GET', url)
    assert.equal(answer.status, 200, url)
    assert.deepEqual(ids(answer), wanted, url)
    assert.equal(answer.headers['x-total-count'], String(wanted.length), url)
  }
})

test('a page of a filtered list keeps the filter in its links and counts all matches', async () => {
  const service = await startService({ fleet: { clusters: fleetOfClusters(5) } })
  await service.call('PATCH', '/clusters/c02', { body: { environment: 'prod' } })
  const page = await service.call('GET', '/clusters?environment=dev&limit=2&offset=2')
  assert.deepEqual(ids(page), ['c03', 'c04'])
  assert.equal(page.headers['x-total-count'], '4')
  assert.equal(linkTo(page, 'next'), undefined)
  assert.deepEqual(ids(await service.call('GET', linkTo(page, 'prev') as string)), ['c00', 'c01'])
})

test('a list longer than a page without a limit says where the rest is', async () => {
  const namespaces = Array.from({ length: 1200 }, (_, i) => ({ id: `n${i}` }))
  const service = await startService({ fleet: { namespaces } })
  const first = await service.call('GET', '/namespaces')
  assert.equal(first.headers['x-total-count'], '1200')
  const rest = await service.call('GET', linkTo(first, 'next') as string)
  assert.equal(new Set([...ids(first), ...ids(rest)]).size, 1200)
})

test('a document that was read already is 304', async () => {
  const service = await startService()
  const { headers } = await service.call('GET', '/clusters/one')
  const again = await service.call('GET', '/clusters/one', {
    headers: { 'if-none-match': String(headers.etag) },
  })
  assert.equal(again.status, 304)
  assert.equal(again.text, '')
})

test('a definition in use is not deleted: the refusal names its users', async () => {
  const service = await startService()
  for (const [url, users] of [
    ['/namespaces/team-a', ['/clusters/one']],
    ['/rolebindings/admins', ['/clusters/one']],
    ['/platform_components/b', ['/clusters/one', '/platform_components/c']],
  ] as const) {
    const answer = await service.call('DELETE', url)
    assertProblem(answer, 409, 'conflict')
    assert.deepEqual(
      answer.body.details.map(({ path }: { path: string }) => path),
      users,
    )
    assert.equal((await service.call('GET', url)).status, 200)
    assert.equal(revisionOf(service), 1)
  }
})

test('of many users the first 20 are named, with how many there are', async () => {
  const clusters = fleetOfClusters(25, { namespaces: [{ id: 'team-a' }] })
  const service = await startService({ fleet: { namespaces: [{ id: 'team-a' }], clusters } })
  const { status, body } = await service.call('DELETE', '/namespaces/team-a')
  assert.equal(status, 409)
  assert.match(body.message, /\b25\b/)
  const first = clusters.slice(0, 20).map(({ id }) => `/clusters/${id}`)
  assert.deepEqual(
    body.details.map(({ path }: { path: string }) => path),
    first,
  )
  for (const { id } of clusters.slice(0, 20)) assert.match(body.message, new RegExp(`\\b${id}\\b`))
  assert.doesNotMatch(JSON.stringify(body), /c20/)
})

test('cascade removes a definition with every reference to it in one revision', async () => {
  const clusters = fleetOfClusters(25, { namespaces: [{ id: 'team-b' }, { id: 'team-a' }] })
  const service = await startService({
    fleet: { namespaces: [{ id: 'team-a' }, { id: 'team-b' }], clusters },
  })
  const deleted = await service.call('DELETE', '/namespaces/team-a?cascade=true&confirm=removals')
  assert.equal(deleted.status, 200)
  assert.equal(deleted.body.id, 'team-a')
  assert.equal(revisionOf(service), 2)
  for (const { namespaces } of (await service.call('GET', '/clusters')).body) {
    assert.deepEqual(namespaces, [{ id: 'team-b' }])
  }
  const { changes, change_count } = (await service.call('GET', '/revisions/2')).body
  assert.equal(change_count, 26)
  assert.deepEqual(
    changes.map(({ type, id }: { type: string; id: string }) => `${type}/${id}`).toSorted(),
    [...clusters.map(({ id }) => `clusters/${id}`), 'namespaces/team-a'].toSorted(),
  )
})

test('cascade takes patches and dependencies of the removed component with it', async () => {
  const service = await startService()
  const deleted = await service.call('DELETE', '/platform_components/a?cascade=true')
  assert.equal(deleted.status, 200)
  assert.equal(revisionOf(service), 2)
  const { body: one } = await service.call('GET', '/clusters/one')
  assert.deepEqual(one.platform_components, [{ id: 'b', enabled: true, oci_tag: 'v2.0.0' }])
  assert.deepEqual(one.patches, {})
  assert.deepEqual((await service.call('GET', '/platform_components/b')).body.depends_on, [])
  const url = '/api/v2/flux/clusters/one.k8s.example.com/platform-components'
  const { inputs } = (await service.call('GET', url)).body
  assert.deepEqual(
    inputs.map(({ id }: { id: string }) => id),
    ['b'],
  )
})

test('200 concurrent patches of different fields of one cluster are all kept', async () => {
  const service = await startService()
  const keys = Array.from({ length: 200 }, (_, i) => `k${i}`)
  const answers = await Promise.all(
    keys.map((key) => service.call('PATCH', '/clusters/one', { body: { labels: { [key]: key } } })),
  )
  for (const { status } of answers) assert.equal(status, 200)
  const { labels } = (await service.call('GET', '/clusters/one')).body
  assert.deepEqual(labels, Object.fromEntries(keys.map((key) => [key, key])))
  assert.equal(revisionOf(service), 201)
})

test('of concurrent patches on one ETag exactly one wins, round after round', async () => {
  const service = await startService()
  for (let round = 0; round < 10; round++) {
    const { headers } = await service.call('GET', '/clusters/one')
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        service.call('PATCH', '/clusters/one', {
          body: { node_count: round * 100 + i },
          headers: { 'if-match': String(headers.etag) },
        }),
      ),
    )
    const winners = answers.filter(({ status }) => status === 200)
    assert.equal(winners.length, 1)
    assert.equal(answers.filter(({ status }) => status === 412).length, 19)
    const { body } = await service.call('GET', '/clusters/one')
    assert.equal(body.node_count, winners[0]?.body.node_count)
  }
  assert.equal(revisionOf(service), 11)
})

test('a document that is created has no state that its caller could expect', async () => {
  const service = await startService()
  for (const tag of ['"1"', '*']) {
    const headers = { 'if-match': tag }
    const answer = await service.call('POST', '/namespaces', { body: { id: 'new' }, headers })
    assert.equal(answer.status, 412, answer.text)
  }
  const headers = { 'if-none-match': '*' }
  assert.equal((await service.call('POST', '/namespaces', { body: { id: 'new' }, headers })).status, 201)
  assert.equal((await service.call('POST', '/namespaces', { body: { id: 'new' }, headers })).status, 412)
})

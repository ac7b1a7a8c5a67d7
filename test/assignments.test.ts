import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from './every-store.ts'
import { type Answer, chartFleet, READ_TOKEN, smallFleet, startService, type TestService } from './service.ts'

const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' }
const CLUSTERS = '/api/v2/flux/clusters'

async function cluster(service: TestService, id = 'one') {
  return (await service.call('GET', `/clusters/${id}`)).body
}

async function inputs(service: TestService, dns = 'one.k8s.example.com') {
  return (await service.call('GET', `${CLUSTERS}/${dns}/platform-components`)).body.inputs
}

function ids(list: readonly { id: string }[]): string[] {
  return list.map(({ id }) => id)
}

/** Every write answers what it wrote, with the cluster's ETag and the revision. */
function assertWritten(answer: Answer, status: number, revision: number, body: unknown): void {
  assert.equal(answer.status, status, answer.text)
  assert.deepEqual(answer.body, body)
  assert.equal(answer.headers.etag, `"${revision}"`)
  assert.equal(answer.headers['x-revision'], String(revision))
}

test('PUT assigns at the end of the list and answers 201 with the place of the reference', async () => {
  const service = await startService()
  const url = '/clusters/one/platform_components/c'
  const assigned = await service.call('PUT', url, { body: { oci_tag: 'v3.0.0' } })
  assertWritten(assigned, 201, 2, { id: 'c', enabled: true, oci_tag: 'v3.0.0' })
  assert.equal(assigned.headers.location, url)
  const read = await service.call('GET', url, { token: READ_TOKEN })
  assert.deepEqual(read.body, assigned.body)
  assert.deepEqual(ids((await cluster(service)).platform_components), ['a', 'b', 'c'])
  assert.deepEqual(ids(await inputs(service)), ['a', 'b', 'c'])
})

test('a document of every type can be assigned with an empty or no body', async () => {
  const service = await startService()
  for (const [list, id, reference] of [
    ['platform_components', 'a', { id: 'a', enabled: true }],
    ['namespaces', 'team-b', { id: 'team-b' }],
    ['rolebindings', 'admins', { id: 'admins' }],
  ] as const) {
    const answer = await service.call('PUT', `/clusters/two/${list}/${id}`)
    assert.equal(answer.status, 201, list)
    assert.deepEqual(answer.body, reference)
    assert.deepEqual((await cluster(service, 'two'))[list], [reference])
  }
})

test('assigning again replaces the reference, keeps its place and answers 200', async () => {
  const service = await startService()
  const body = { component_path: 'core/a/canary', enabled: false }
  const again = await service.call('PUT', '/clusters/one/platform_components/a', { body })
  assertWritten(again, 200, 2, { id: 'a', ...body })
  const { platform_components, patches } = await cluster(service)
  assert.deepEqual(ids(platform_components), ['a', 'b'])
  assert.deepEqual(patches, { a: { replicas: '2' } })
  const cleared = await service.call('PUT', '/clusters/one/platform_components/b', { body: {} })
  assertWritten(cleared, 200, 3, { id: 'b', enabled: true })
})

test('assigning what is assigned just so makes no revision', async () => {
  const service = await startService()
  for (const [url, body] of [
    ['/clusters/one/platform_components/a', {}],
    ['/clusters/one/platform_components/b', { oci_tag: 'v2.0.0' }],
    ['/clusters/one/platform_components/b', { oci_tag: 'v2.0.0', enabled: true, id: 'b' }],
    ['/clusters/one/namespaces/team-a', {}],
  ] as const) {
    const answer = await service.call('PUT', url, { body })
    assert.equal(answer.status, 200, url)
    assert.equal(answer.headers['x-revision'], '1')
  }
  assert.equal(service.engine.state.revision, 1)
})

test('PATCH sets an override beside what the reference says already', async () => {
  const service = await startService()
  const url = '/clusters/one/platform_components/b'
  for (const headers of [{}, MERGE_PATCH]) {
    const patched = await service.call('PATCH', url, { body: { component_path: 'core/b/canary' }, headers })
    assertWritten(patched, 200, 2, {
      id: 'b',
      enabled: true,
      component_path: 'core/b/canary',
      oci_tag: 'v2.0.0',
    })
  }
  const [a, b] = await inputs(service)
  assert.equal(a.component_path, 'core/a/1.0.0')
  assert.equal(b.component_path, 'core/b/canary')
  assert.equal(b.source.oci_tag, 'v2.0.0')
})

test('null clears an override, and the catalog speaks again', async () => {
  const service = await startService()
  const url = '/clusters/one/platform_components/b'
  const cleared = await service.call('PATCH', url, { body: { oci_tag: null } })
  assertWritten(cleared, 200, 2, { id: 'b', enabled: true })
  assert.equal((await inputs(service))[1].source.oci_tag, 'v1.0.0')
})

test('overrides of namespaces and role bindings reach only their own cluster', async () => {
  const service = await startService()
  await service.call('PUT', '/clusters/two/namespaces/team-a', { body: {} })
  await service.call('PATCH', '/clusters/one/namespaces/team-a', { body: { labels: { team: 'x' } } })
  const labels = async (dns: string) =>
    (await service.call('GET', `${CLUSTERS}/${dns}/namespaces`)).body.inputs[0].labels
  assert.deepEqual(await labels('one.k8s.example.com'), { team: 'x' })
  assert.deepEqual(await labels('two.k8s.example.com'), { team: 'a' })
})

test('what is not assigned cannot be overridden, read or taken away', async () => {
  const service = await startService()
  for (const url of [
    '/clusters/one/platform_components/c',
    '/clusters/one/platform_components/nope',
    '/clusters/nobody/platform_components/a',
  ]) {
    assertProblem(await service.call('GET', url), 404, 'not_found')
    assertProblem(await service.call('PATCH', url, { body: { enabled: false } }), 404, 'not_found')
    assertProblem(await service.call('DELETE', url), 404, 'not_found')
  }
  assertProblem(
    await service.call('PUT', '/clusters/nobody/namespaces/team-a', { body: {} }),
    404,
    'not_found',
  )
  assert.equal(service.engine.state.revision, 1)
})

test('DELETE unassigns, answers the reference as it was and drops the patches in the same revision', async () => {
  const service = await startService()
  await service.call('PATCH', '/clusters/one/platform_components/a', { body: { oci_tag: 'v1.2.3' } })
  const removed = await service.call('DELETE', '/clusters/one/platform_components/a')
  assertWritten(removed, 200, 3, { id: 'a', enabled: true, oci_tag: 'v1.2.3' })
  const after = await cluster(service)
  assert.deepEqual(ids(after.platform_components), ['b'])
  assert.deepEqual(after.patches, {})
  assert.deepEqual(ids(await inputs(service)), ['b'])
  const { changes } = (await service.call('GET', '/revisions/3')).body
  assert.equal(changes.length, 1)
  assert.deepEqual(changes[0].before.patches, { a: { replicas: '2' } })
  assert.deepEqual(changes[0].after, after)
})

test('unassigning keeps the patches of the other components', async () => {
  const service = await startService()
  await service.call('PUT', '/clusters/one/patches/b', { body: { color: 'red' } })
  await service.call('DELETE', '/clusters/one/platform_components/a')
  assert.deepEqual((await cluster(service)).patches, { b: { color: 'red' } })
  await service.call('DELETE', '/clusters/one/namespaces/team-a')
  assert.deepEqual((await cluster(service)).patches, { b: { color: 'red' } })
})

test('the values of one component are read, replaced, changed and removed on their own', async () => {
  const service = await startService({ fleet: chartFleet() })
  const url = '/clusters/one/patches/a'
  const read = await service.call('GET', url, { token: READ_TOKEN })
  assert.equal(read.status, 200)
  assert.deepEqual(read.body, { replicas: '2' })
  assert.equal(read.headers.etag, '"1"')
  const put = await service.call('PUT', url, { body: { 'ui.color': 'red', 'ui.title': 'hello' } })
  assertWritten(put, 200, 2, { 'ui.color': 'red', 'ui.title': 'hello' })
  const patched = await service.call('PATCH', url, { body: { 'ui.color': null, replicas: '3' } })
  assertWritten(patched, 200, 3, { 'ui.title': 'hello', replicas: '3' })
  assert.deepEqual((await inputs(service))[0].patches, { 'ui.title': 'hello', replicas: '3' })
  const removed = await service.call('DELETE', url)
  assertWritten(removed, 200, 4, { 'ui.title': 'hello', replicas: '3' })
  assert.deepEqual((await service.call('GET', url)).body, {})
  assert.deepEqual((await inputs(service))[0].patches, {})
  assert.deepEqual(ids((await cluster(service)).platform_components), ['a', 'b'])
})

test('patches that change nothing make no revision', async () => {
  const service = await startService()
  for (const [method, url, body] of [
    ['PUT', '/clusters/one/patches/a', { replicas: '2' }],
    ['PATCH', '/clusters/one/patches/a', { replicas: '2', gone: null }],
    ['PATCH', '/clusters/one/patches/a', {}],
    ['PUT', '/clusters/one/patches/b', {}],
    ['DELETE', '/clusters/one/patches/b', undefined],
  ] as const) {
    assert.equal((await service.call(method, url, { body })).status, 200, `${method} ${url}`)
  }
  assert.equal(service.engine.state.revision, 1)
})

test('patches of a component that is not assigned are 404', async () => {
  const service = await startService()
  for (const url of ['/clusters/one/patches/c', '/clusters/one/patches/nope', '/clusters/nobody/patches/a']) {
    assertProblem(await service.call('GET', url), 404, 'not_found')
    assertProblem(await service.call('PUT', url, { body: { x: '1' } }), 404, 'not_found')
    assertProblem(await service.call('PATCH', url, { body: { x: '1' } }), 404, 'not_found')
    assertProblem(await service.call('DELETE', url), 404, 'not_found')
  }
  assert.equal(service.engine.state.revision, 1)
})

test('If-Match on these routes is the ETag of the cluster', async () => {
  const service = await startService()
  await service.call('PATCH', '/clusters/one', { body: { labels: { region: 'eu' } } })
  const stale = { 'if-match': '"1"' }
  for (const [method, url, body] of [
    ['PUT', '/clusters/one/platform_components/c', {}],
    ['PATCH', '/clusters/one/platform_components/a', { enabled: false }],
    ['DELETE', '/clusters/one/platform_components/a', undefined],
    ['PUT', '/clusters/one/patches/a', { x: '1' }],
    ['PATCH', '/clusters/one/patches/a', { x: '1' }],
    ['DELETE', '/clusters/one/patches/a', undefined],
  ] as const) {
    const answer = await service.call(method, url, { body, headers: stale })
    assertProblem(answer, 412, 'precondition_failed')
  }
  assert.equal(service.engine.state.revision, 2)
  const { headers } = await service.call('GET', '/clusters/one')
  const current = { 'if-match': String(headers.etag) }
  const passed = await service.call('PUT', '/clusters/one/platform_components/c', {
    body: {},
    headers: current,
  })
  assert.equal(passed.status, 201)
})

test('concurrent assignments and patches of one cluster are all kept', async () => {
  const service = await startService()
  await Promise.all([
    service.call('PUT', '/clusters/one/platform_components/c', { body: {} }),
    service.call('PATCH', '/clusters/one/platform_components/a', { body: { oci_tag: 'v7.0.0' } }),
    service.call('PATCH', '/clusters/one/patches/a', { body: { color: 'red' } }),
    service.call('PATCH', '/clusters/one', { body: { labels: { region: 'eu' } } }),
    service.call('PUT', '/clusters/one/namespaces/team-b', { body: {} }),
    service.call('DELETE', '/clusters/one/rolebindings/admins?confirm=removals'),
  ])
  const { labels, platform_components, namespaces, rolebindings, patches } = await cluster(service)
  assert.deepEqual(labels, { region: 'eu' })
  assert.deepEqual(platform_components, [
    { id: 'a', enabled: true, oci_tag: 'v7.0.0' },
    { id: 'b', enabled: true, oci_tag: 'v2.0.0' },
    { id: 'c', enabled: true },
  ])
  assert.deepEqual(ids(namespaces), ['team-a', 'team-b'])
  assert.deepEqual(rolebindings, [])
  assert.deepEqual(patches, { a: { replicas: '2', color: 'red' } })
  assert.equal(service.engine.state.revision, 7)
})

test('a component assigned without one of its dependencies is accepted with a warning', async () => {
  const service = await startService()
  const assigned = await service.call('PUT', '/clusters/two/platform_components/c', { body: {} })
  assert.equal(assigned.status, 201)
  assert.match(String(assigned.headers.warning), /^299 \S+ ".*c.* depends on .*b.*"$/)
  const body = { platform_components: [{ id: 'b' }] }
  const patched = await service.call('PATCH', '/clusters/two', { body })
  assert.equal(patched.status, 200)
  assert.match(String(patched.headers.warning), /b.* depends on .*a/)
  const removed = await service.call('DELETE', '/clusters/one/platform_components/a')
  assert.equal(removed.status, 200)
  assert.match(String(removed.headers.warning), /b.* depends on .*a/)
})

test('a component assigned with all of its dependencies draws no warning', async () => {
  const service = await startService()
  const assigned = await service.call('PUT', '/clusters/one/platform_components/c', { body: {} })
  assert.equal(assigned.status, 201)
  assert.equal(assigned.headers.warning, undefined)
})

test('the inputs of a cluster by its id are the very bytes of its polls', async () => {
  const service = await startService()
  for (const [id, dns] of [
    ['one', 'one.k8s.example.com'],
    ['two', 'two.k8s.example.com'],
  ]) {
    for (const { delivery } of service.types.delivered) {
      const polled = await service.call('GET', `${CLUSTERS}/${dns}/${delivery.endpoint}`)
      const shown = await service.call('GET', `/clusters/${id}/inputs/${delivery.endpoint}`, {
        token: READ_TOKEN,
      })
      assert.equal(shown.status, 200)
      assert.equal(shown.text, polled.text)
      assert.equal(shown.headers['content-type'], polled.headers['content-type'])
    }
  }
  assertProblem(await service.call('GET', '/clusters/nobody/inputs/namespaces'), 404, 'not_found')
  assertProblem(await service.call('GET', '/clusters/one/inputs/nope'), 404, 'not_found')
})

describe('what does not exist is said not to exist, with names that are near', () => {
  const fleet = () => {
    const { platform_components, ...rest } = smallFleet()
    const [a] = platform_components
    return { ...rest, platform_components: [...platform_components, { ...a, id: 'podinfo', depends_on: [] }] }
  }
  const MEANT = /no platform component "podnfo": did you mean "podinfo"\?$/

  for (const [method, url, body] of [
    ['GET', '/clusters/one/platform_components/podnfo'],
    ['PATCH', '/clusters/one/platform_components/podnfo', { enabled: false }],
    ['DELETE', '/clusters/one/platform_components/podnfo'],
    ['GET', '/clusters/one/patches/podnfo'],
    ['PATCH', '/clusters/one/patches/podnfo', { x: '1' }],
    ['DELETE', '/clusters/one/patches/podnfo'],
  ] as const) {
    test(`${method} ${url}`, async () => {
      const service = await startService({ fleet: fleet() as never })
      const answer = await service.call(method, url, body ? { body } : {})
      assertProblem(answer, 404, 'not_found')
      assert.match(answer.body.message, MEANT)
      const other = await service.call(method, url.replace('podnfo', 'podinfo'), body ? { body } : {})
      assert.match(other.body.message, /^platform component "podinfo" is not assigned to cluster "one"$/)
    })
  }

  test('in a batch, by id and by selector, and in a cluster itself', async () => {
    const service = await startService({ fleet: fleet() as never })
    const batch = (more: object) =>
      service.call('POST', '/batch', {
        body: { operations: [{ op: 'unassign', type: 'platform_components', id: 'podnfo', ...more }] },
      })
    assert.match((await batch({ clusters: ['one'] })).body.message, MEANT)
    const selected = await batch({ selector: 'id' })
    assert.match(selected.body.message, /none of which is assigned "podnfo": /)
    assert.match(selected.body.message, MEANT)
    const allowed = await batch({ selector: 'id', allow_empty: true })
    assert.match(allowed.body.warnings[0], MEANT)
    const body = { patches: { podnfo: { x: '1' } } }
    assert.match((await service.call('PATCH', '/clusters/one', { body })).body.message, MEANT)
  })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openMemoryStore } from '../src/store/memory.ts'
import { assertProblem } from './every-store.ts'
import { READ_TOKEN, startService, type TestService } from './service.ts'

const DNS = 'one.k8s.example.com'
const EMPTY = '{"inputs":[]}'

async function polls(service: TestService, dns = DNS): Promise<{ status: number; text: string }[]> {
  const endpoints = service.types.delivered.map(({ delivery }) => delivery.endpoint)
  assert.ok(endpoints.length >= 3)
  const urls = endpoints.map((endpoint) => `/api/v2/flux/clusters/${dns}/${endpoint}`)
  const answers = await Promise.all(urls.map((url) => service.call('GET', url, { token: READ_TOKEN })))
  return answers.map(({ status, text }) => ({ status, text }))
}

async function assertEmptied(service: TestService, dns = DNS): Promise<void> {
  for (const answer of await polls(service, dns)) assert.deepEqual(answer, { status: 200, text: EMPTY })
}

async function assertUnknown(service: TestService, dns = DNS): Promise<void> {
  for (const { status } of await polls(service, dns)) assert.equal(status, 404)
}

/** Runs what must be refused and leave everything as it is. */
async function assertChangesNothing(service: TestService, run: () => Promise<void>): Promise<void> {
  const { revision } = service.engine.state
  const before = await polls(service)
  const listed = (await service.call('GET', '/clusters')).text
  await run()
  assert.equal(service.engine.state.revision, revision)
  assert.deepEqual(await polls(service), before)
  assert.equal((await service.call('GET', '/clusters')).text, listed)
}

const namesake = { id: 'three', cluster_name: 'three', cluster_dns: DNS, environment: 'qa' }

test('a deleted cluster is answered with no inputs on every endpoint, from the next poll on', async () => {
  const service = await startService()
  const { body } = await service.call('GET', '/clusters/one')
  const deleted = await service.call('DELETE', '/clusters/one')
  assert.equal(deleted.status, 200)
  assert.deepEqual(deleted.body, body)
  assert.equal(deleted.headers['x-revision'], '2')
  await assertEmptied(service)
  await assertEmptied(service, 'ONE.k8s.Example.com.')
})

test('a deleted cluster is gone from lists and from every route below its id', async () => {
  const service = await startService()
  await service.call('DELETE', '/clusters/one')
  const list = await service.call('GET', '/clusters')
  assert.deepEqual(
    list.body.map(({ id }: { id: string }) => id),
    ['two'],
  )
  assert.equal(list.headers['x-total-count'], '1')
  const { inputs } = (await service.call('GET', '/api/v2/flux/clusters')).body
  assert.deepEqual(
    inputs.map(({ id }: { id: string }) => id),
    ['two'],
  )
  for (const [method, url, body] of [
    ['GET', '/clusters/one', undefined],
    ['PUT', '/clusters/one', { cluster_name: 'one', cluster_dns: DNS, environment: 'dev' }],
    ['PATCH', '/clusters/one', { environment: 'qa' }],
    ['DELETE', '/clusters/one', undefined],
    ['PUT', '/clusters/one/platform_components/c', {}],
    ['DELETE', '/clusters/one/platform_components/a', undefined],
    ['PATCH', '/clusters/one/patches/a', { x: '1' }],
    ['GET', '/clusters/one/patches/a', undefined],
    ['GET', '/clusters/one/platform_components/a', undefined],
  ] as const) {
    assertProblem(await service.call(method, url, { body }), 404, 'not_found')
  }
  assert.equal(service.engine.state.revision, 2)
  await assertEmptied(service)
})

test('a restored cluster is back as it was, to the byte', async () => {
  const service = await startService()
  await service.call('PATCH', '/clusters/one', { body: { labels: { region: 'eu' } } })
  const before = await polls(service)
  const { text } = await service.call('GET', '/clusters/one')
  await service.call('DELETE', '/clusters/one')
  const restored = await service.call('POST', '/clusters/one/restore')
  assert.equal(restored.status, 200)
  assert.equal(restored.text, text)
  assert.equal(restored.headers.etag, '"4"')
  assert.equal(restored.headers['x-revision'], '4')
  assert.equal((await service.call('GET', '/clusters/one')).text, text)
  assert.deepEqual(await polls(service), before)
  assert.equal((await service.call('GET', '/clusters')).body.length, 2)
})

test('only a deleted cluster can be restored', async () => {
  const service = await startService()
  await assertChangesNothing(service, async () => {
    assertProblem(await service.call('POST', '/clusters/one/restore'), 409, 'conflict')
    assertProblem(await service.call('POST', '/clusters/nobody/restore'), 404, 'not_found')
  })
})

test('a purged cluster is forgotten: its polls are 404', async () => {
  const service = await startService()
  await service.call('DELETE', '/clusters/one')
  const purged = await service.call('DELETE', '/clusters/one?purge=true')
  assert.equal(purged.status, 200)
  assert.equal(purged.body.id, 'one')
  await assertUnknown(service)
  assertProblem(await service.call('POST', '/clusters/one/restore'), 404, 'not_found')
  assertProblem(await service.call('DELETE', '/clusters/one?purge=true'), 404, 'not_found')
})

test('a live cluster can be purged at once', async () => {
  const service = await startService()
  assert.equal((await service.call('DELETE', '/clusters/one?purge=true')).status, 200)
  await assertUnknown(service)
  assert.equal((await service.call('GET', '/clusters')).body.length, 1)
})

test('a protected cluster is neither deleted nor purged until its protection is switched off', async () => {
  const service = await startService()
  await service.call('PATCH', '/clusters/one', { body: { deletion_protection: true } })
  await assertChangesNothing(service, async () => {
    for (const url of ['/clusters/one', '/clusters/one?purge=true']) {
      const refused = await service.call('DELETE', url)
      assertProblem(refused, 409, 'conflict')
      assert.match(refused.body.message, /deletion_protection/)
    }
  })
  await service.call('PATCH', '/clusters/one', { body: { deletion_protection: false } })
  assert.equal((await service.call('DELETE', '/clusters/one')).status, 200)
  await assertEmptied(service)
})

test('creating the id of a deleted cluster again starts it anew, and its polls are answered', async () => {
  for (const create of [
    (service: TestService, body: typeof namesake) => service.call('POST', '/clusters', { body }),
    (service: TestService, body: typeof namesake) =>
      service.call('PUT', '/clusters/one', { body, headers: { 'if-none-match': '*' } }),
  ]) {
    const service = await startService()
    await service.call('DELETE', '/clusters/one')
    const body = { ...namesake, id: 'one', namespaces: [{ id: 'team-b' }] }
    const created = await create(service, body)
    assert.equal(created.status, 201)
    assert.equal(created.body.environment, 'qa')
    assert.deepEqual(created.body.platform_components, [])
    assert.deepEqual(created.body.patches, {})
    const { inputs } = (await service.call('GET', `/api/v2/flux/clusters/${DNS}/namespaces`)).body
    assert.deepEqual(
      inputs.map(({ id }: { id: string }) => id),
      ['team-b'],
    )
    assertProblem(await service.call('POST', '/clusters/one/restore'), 409, 'conflict')
  }
})

test('the DNS name of a deleted cluster is free for another one, which is then answered', async () => {
  const service = await startService()
  await service.call('DELETE', '/clusters/one')
  const body = { ...namesake, namespaces: [{ id: 'team-b' }] }
  assert.equal((await service.call('POST', '/clusters', { body })).status, 201)
  const { inputs } = (await service.call('GET', `/api/v2/flux/clusters/${DNS}/namespaces`)).body
  assert.equal(inputs[0].id, 'team-b')
  assert.deepEqual(inputs[0].cluster, { name: 'three', dns: DNS, environment: 'qa' })
})

test('purging a deleted cluster does not touch a live one that took its DNS name over', async () => {
  const service = await startService()
  await service.call('DELETE', '/clusters/one')
  await service.call('POST', '/clusters', { body: { ...namesake, namespaces: [{ id: 'team-b' }] } })
  const before = await polls(service)
  assert.equal((await service.call('DELETE', '/clusters/one?purge=true')).status, 200)
  assert.deepEqual(await polls(service), before)
})

test('a DNS name stays emptied as long as one deleted cluster still has it', async () => {
  const service = await startService()
  await service.call('DELETE', '/clusters/one')
  await service.call('POST', '/clusters', { body: namesake })
  await service.call('DELETE', '/clusters/three')
  await assertEmptied(service)
  await service.call('DELETE', '/clusters/three?purge=true')
  await assertEmptied(service)
  await service.call('DELETE', '/clusters/one?purge=true')
  await assertUnknown(service)
})

test('a cluster whose DNS name has been taken is not restored until the name is free', async () => {
  const service = await startService()
  const before = await polls(service)
  await service.call('DELETE', '/clusters/one')
  await service.call('POST', '/clusters', { body: namesake })
  await assertChangesNothing(service, async () => {
    const refused = await service.call('POST', '/clusters/one/restore')
    assertProblem(refused, 409, 'conflict')
    assert.match(refused.body.message, /one\.k8s\.example\.com/)
    assert.match(refused.body.message, /three/)
  })
  await service.call('PATCH', '/clusters/three', { body: { cluster_dns: 'three.k8s.example.com' } })
  assert.equal((await service.call('POST', '/clusters/one/restore')).status, 200)
  assert.deepEqual(await polls(service), before)
})

test('a cluster whose definition is gone is not restored until the definition is back', async () => {
  const service = await startService()
  const before = await polls(service)
  const { body: namespace } = await service.call('GET', '/namespaces/team-a')
  await service.call('DELETE', '/clusters/one')
  assert.equal((await service.call('DELETE', '/namespaces/team-a')).status, 200)
  await assertChangesNothing(service, async () => {
    const refused = await service.call('POST', '/clusters/one/restore')
    assert.ok([400, 409].includes(refused.status), refused.text)
    assert.match(refused.body.message, /team-a/)
  })
  await assertEmptied(service)
  await service.call('POST', '/namespaces', { body: namespace })
  assert.equal((await service.call('POST', '/clusters/one/restore')).status, 200)
  assert.deepEqual(await polls(service), before)
})

test('deleting, restoring and purging stand in the history of the cluster', async () => {
  const service = await startService()
  await service.call('DELETE', '/clusters/one')
  await service.call('POST', '/clusters/one/restore')
  await service.call('DELETE', '/clusters/one')
  await service.call('DELETE', '/clusters/one?purge=true')
  const { body } = await service.call('GET', '/clusters/one/history')
  assert.deepEqual(
    body.map(({ changes }: { changes: { op: string }[] }) => changes[0]?.op),
    ['purge', 'delete', 'restore', 'delete', 'create'],
  )
})

test('a service started anew on the same store keeps deleted clusters emptied and restorable', async () => {
  const store = openMemoryStore()
  const first = await startService({ store })
  const before = await polls(first)
  await first.call('DELETE', '/clusters/one')
  const second = await startService({ store })
  await assertEmptied(second)
  assert.equal((await second.call('POST', '/clusters/one/restore')).status, 200)
  assert.deepEqual(await polls(second), before)
})

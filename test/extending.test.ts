import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { openMemoryStore } from '../src/store/memory.ts'
import { type Answer, builtInTypes, READ_TOKEN, smallFleet, startService } from './service.ts'
import { withoutDigests } from './without-digests.ts'

const EXAMPLE = join(import.meta.dirname, '../examples/network-policies')
const POLL = '/api/v2/flux/clusters/one.k8s.example.com/network-policies'
const IDENTITY = '"cluster":{"name":"one","dns":"one.k8s.example.com","environment":"dev"}'

const policy = {
  id: 'allow-traefik',
  target_namespace: 'podinfo',
  ingress_rules: [{ from_namespace: 'traefik', port: 9898 }],
}

function startExtended() {
  return startService({ types: builtInTypes(EXAMPLE) })
}

/** The policy exists and cluster one has it. */
async function startAssigned() {
  const service = await startExtended()
  await service.call('POST', '/network_policies', { body: policy })
  await service.call('PUT', `/clusters/one/network_policies/${policy.id}`, { body: {} })
  return service
}

function assertProblem(answer: Answer, status: number, error: string, path?: string): void {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.body.error, error)
  if (path === undefined) return
  const paths = answer.body.details.map((detail: { path: string }) => detail.path)
  assert.ok(paths.includes(path), answer.text)
}

test('without the file there is no such type', async () => {
  const service = await startService()
  assertProblem(await service.call('GET', '/network_policies'), 404, 'not_found')
  assertProblem(await service.call('GET', POLL), 404, 'not_found')
  const body = { network_policies: [] }
  assertProblem(
    await service.call('PATCH', '/clusters/one', { body }),
    400,
    'validation_error',
    '/network_policies',
  )
})

test('a type added by one file can be created, read, listed, changed and deleted', async () => {
  const service = await startExtended()
  const url = '/network_policies/allow-traefik'
  const created = await service.call('POST', '/network_policies', { body: policy })
  assert.equal(created.status, 201)
  assert.equal(created.headers.location, url)
  assert.equal(created.headers.etag, '"2"')
  assert.deepEqual(created.body, policy)
  assert.deepEqual((await service.call('GET', url, { token: READ_TOKEN })).body, policy)

  const plain = await service.call('POST', '/network_policies', {
    body: { id: 'deny-all', target_namespace: 'vault' },
  })
  assert.deepEqual(plain.body, { id: 'deny-all', target_namespace: 'vault', ingress_rules: [] })
  const list = await service.call('GET', '/network_policies?target_namespace=vault')
  assert.deepEqual(list.body, [plain.body])
  assert.equal(list.headers['x-total-count'], '1')

  const patched = await service.call('PATCH', url, { body: { target_namespace: 'web' } })
  assert.deepEqual(patched.body, { ...policy, target_namespace: 'web' })
  const replaced = await service.call('PUT', url, { body: { target_namespace: 'api' } })
  assert.deepEqual(replaced.body, { id: policy.id, target_namespace: 'api', ingress_rules: [] })
  const deleted = await service.call('DELETE', url)
  assert.deepEqual(deleted.body, replaced.body)
  assertProblem(await service.call('GET', url), 404, 'not_found')
  const history = await service.call('GET', `${url}/history`)
  assert.deepEqual(
    history.body.map(({ changes }: { changes: { op: string }[] }) => changes[0]?.op),
    ['delete', 'update', 'update', 'create'],
  )
})

test('documents of the added type are validated by its file', async () => {
  const service = await startExtended()
  const rule = (more: object) => [{ from_namespace: 'traefik', port: 80, ...more }]
  for (const [fields, path] of [
    [{ id: 'Not A Name' }, '/id'],
    [{ target_namespace: undefined }, '/target_namespace'],
    [{ target_namespace: 'Upper' }, '/target_namespace'],
    [{ ingress_rules: {} }, '/ingress_rules'],
    [{ ingress_rules: rule({ port: 0 }) }, '/ingress_rules/0/port'],
    [{ ingress_rules: rule({ port: 65536 }) }, '/ingress_rules/0/port'],
    [{ ingress_rules: rule({ port: '80' }) }, '/ingress_rules/0/port'],
    [{ ingress_rules: rule({ port: undefined }) }, '/ingress_rules/0/port'],
    [{ ingress_rules: rule({ protocol: 'TCP' }) }, '/ingress_rules/0/protocol'],
    [{ egress_rules: [] }, '/egress_rules'],
  ] as const) {
    const raw = JSON.stringify({ ...policy, ...fields })
    assertProblem(await service.call('POST', '/network_policies', { raw }), 400, 'validation_error', path)
  }
  assertProblem(
    await service.call('GET', '/network_policies?namespace=x'),
    400,
    'validation_error',
    '?namespace',
  )
  assert.equal(service.engine.state.revision, 1)
})

test('clusters gain the list of the added type, with whole references', async () => {
  const service = await startExtended()
  assert.deepEqual((await service.call('GET', '/clusters/one')).body.network_policies, [])
  const body = { network_policies: [{ id: policy.id }] }
  assertProblem(
    await service.call('PATCH', '/clusters/one', { body }),
    400,
    'validation_error',
    '/network_policies/0/id',
  )
  await service.call('POST', '/network_policies', { body: policy })
  const patched = await service.call('PATCH', '/clusters/one', { body })
  assert.equal(patched.status, 200)
  assert.deepEqual(patched.body.network_policies, [{ id: policy.id }])
  const twice = { network_policies: [{ id: policy.id }, { id: policy.id }] }
  assertProblem(
    await service.call('PATCH', '/clusters/one', { body: twice }),
    400,
    'validation_error',
    '/network_policies/1/id',
  )
})

test('documents of the added type are assigned, overridden and unassigned one by one', async () => {
  const service = await startExtended()
  await service.call('POST', '/network_policies', { body: policy })
  const url = `/clusters/one/network_policies/${policy.id}`
  assert.equal((await service.call('PUT', url, { body: {} })).status, 201)
  const ingress_rules = [{ from_namespace: 'istio', port: 443 }]
  const overridden = await service.call('PATCH', url, { body: { ingress_rules } })
  assert.deepEqual(overridden.body, { id: policy.id, ingress_rules })
  assert.deepEqual((await service.call('GET', POLL)).body.inputs[0].ingress_rules, ingress_rules)
  assertProblem(
    await service.call('PATCH', url, { body: { target_namespace: 'x' } }),
    400,
    'validation_error',
    '/target_namespace',
  )
  assert.equal((await service.call('DELETE', `${url}?confirm=removals`)).status, 200)
  assert.equal((await service.call('GET', POLL)).text, '{"inputs":[]}')
})

test('clusters poll the added type on its own endpoint, in the order that its file gives', async () => {
  const service = await startAssigned()
  const polled = await service.call('GET', POLL, { token: READ_TOKEN })
  assert.equal(polled.status, 200)
  assert.equal(
    withoutDigests(polled.text),
    `{"inputs":[{"id":"allow-traefik","target_namespace":"podinfo","ingress_rules":[{"from_namespace":"traefik","port":9898}],${IDENTITY}}]}`,
  )
  assert.deepEqual(Object.keys(polled.body.inputs[0]).slice(-2), ['digest', 'answer_digest'])
  assert.equal((await service.call('GET', '/clusters/one/inputs/network-policies')).text, polled.text)
  const other = await service.call('GET', POLL.replace('one.', 'two.'))
  assert.equal(other.text, '{"inputs":[]}')
  const unknown = await service.call('GET', POLL.replace('one.', 'nobody.'))
  assertProblem(unknown, 404, 'not_found')
})

test('the added type is served in read-only mode too', async () => {
  const types = builtInTypes(EXAMPLE)
  const fleet = smallFleet()
  const clusters = fleet.clusters.map((cluster) => ({ ...cluster, network_policies: [{ id: policy.id }] }))
  const seeded = { ...fleet, network_policies: [policy], clusters }
  const service = await startService({ mode: 'read-only', types, fleet: seeded })
  const { body } = await service.call('GET', POLL, { token: READ_TOKEN })
  assert.equal(body.inputs[0].id, policy.id)
})

test('a definition of the added type in use is protected, and cascade removes it everywhere', async () => {
  const service = await startAssigned()
  const refused = await service.call('DELETE', `/network_policies/${policy.id}`)
  assertProblem(refused, 409, 'conflict', '/clusters/one')
  const cascade = `/network_policies/${policy.id}?cascade=true&confirm=removals`
  assert.equal((await service.call('DELETE', cascade)).status, 200)
  assert.deepEqual((await service.call('GET', '/clusters/one')).body.network_policies, [])
})

test('a decommissioned cluster is emptied on the endpoint of the added type as well', async () => {
  const service = await startAssigned()
  await service.call('DELETE', '/clusters/one')
  assert.equal((await service.call('GET', POLL)).text, '{"inputs":[]}')
})

test('polls of the added type are counted under its endpoint', async () => {
  const service = await startAssigned()
  await service.call('GET', POLL)
  const { text } = await service.call('GET', '/metrics')
  assert.match(text, /^flux_resourceset_polls_total\{endpoint="network-policies",code="2xx"\} 1$/m)
})

test('the added type has its place in the description of the API', async () => {
  const service = await startExtended()
  const { body: document } = await service.call('GET', '/openapi.json')
  for (const [path, methods] of [
    ['/network_policies', ['get', 'post']],
    ['/network_policies/{id}', ['get', 'put', 'patch', 'delete']],
    ['/network_policies/{id}/history', ['get']],
    ['/clusters/{cluster}/network_policies/{id}', ['get', 'put', 'patch', 'delete']],
    ['/api/v2/flux/clusters/{dns}/network-policies', ['get']],
  ] as const) {
    for (const method of methods) assert.ok(document.paths[path]?.[method], `${method} ${path}`)
  }
  const { schemas } = document.components
  assert.deepEqual(Object.keys(schemas.network_policy.properties), [
    'id',
    'target_namespace',
    'ingress_rules',
  ])
  assert.equal(schemas.cluster.properties.network_policies.type, 'array')
  const { summary } = document.paths['/network_policies'].get
  assert.equal(summary, 'List network policies.')
  assert.deepEqual(parse((await service.call('GET', '/openapi.yaml')).text), document)
})

test('a fleet stored before the type was added is served as before, and can use it', async () => {
  const store = openMemoryStore()
  const before = await startService({ store })
  const { text } = await before.call('GET', POLL.replace('network-policies', 'platform-components'))
  const service = await startService({ store, types: builtInTypes(EXAMPLE) })
  const after = await service.call('GET', POLL.replace('network-policies', 'platform-components'))
  assert.equal(after.text, text)
  assert.equal((await service.call('GET', POLL)).text, '{"inputs":[]}')
  await service.call('POST', '/network_policies', { body: policy })
  const assigned = await service.call('PUT', `/clusters/one/network_policies/${policy.id}`)
  assert.equal(assigned.status, 201)
  assert.equal((await service.call('GET', POLL)).body.inputs.length, 1)
})

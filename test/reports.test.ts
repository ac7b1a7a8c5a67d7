// What mirrors forward to their upstream: who may, and that nothing in it does harm.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json } from '../src/base/json.ts'
import { start } from './every-store.ts'
import { createToken } from './mirrors.ts'
import { READ_TOKEN, type TestService } from './service.ts'

const DIGEST = '0123456789abcdef'

function poll(cluster: string, age_ms = 1000) {
  return {
    kind: 'polls',
    key: `${cluster} namespaces`,
    age_ms,
    value: [DIGEST, 1, -age_ms - 60_000, 1, 300_000, '0.58.1', 'mirror'],
  }
}

function send(service: TestService, reports: Json, token?: string) {
  return service.call('POST', '/reports', { body: { reports }, ...(token !== undefined && { token }) })
}

async function statusOf(service: TestService, cluster: string) {
  const { status, body, text } = await service.call('GET', `/clusters/${cluster}/status`)
  assert.equal(status, 200, text)
  return body
}

test('what a mirror has noted counts, in times of the clock here', async (t) => {
  const time = Date.parse('2026-01-01T00:00:00Z')
  const service = await start(t, { now: () => new Date(time) })
  const token = await createToken(service, { name: 'm', role: 'mirror' })
  const answer = await send(service, [poll('one')], token)
  assert.deepEqual([answer.status, answer.body], [202, {}])
  const { contact, endpoints, operator_version } = await statusOf(service, 'one')
  assert.equal(contact.state, 'current')
  assert.equal(contact.last_seen, '2025-12-31T23:59:59.000Z')
  assert.equal(endpoints.namespaces.served.since, '2025-12-31T23:58:59.000Z')
  assert.equal(operator_version, '0.58.1')
  await send(service, [{ ...poll('one', 5000), value: [DIGEST, 9, -1, 9, 0, '1.0.0', ''] }])
  assert.equal((await statusOf(service, 'one')).operator_version, '0.58.1', 'older ones do not count')
})

test('a mirror reports on the clusters of its selector alone, and nobody else reports at all', async (t) => {
  const service = await start(t)
  const dev = await createToken(service, { name: 'dev', role: 'mirror', selector: 'environment=dev' })
  const own = await createToken(service, { name: 'one', role: 'cluster', cluster: 'one' })
  const refused = await send(service, [poll('one'), poll('two')], dev)
  assert.deepEqual([refused.status, refused.body.reason], [403, 'out_of_scope'])
  assert.match(refused.body.message, /^\/reports\/1\/key is of cluster "two"/)
  assert.equal((await statusOf(service, 'one')).contact.state, 'never', 'all are taken, or none')
  assert.equal((await send(service, [poll('one')], dev)).status, 202)
  assert.equal((await statusOf(service, 'one')).contact.state, 'current')
  for (const token of [own, READ_TOKEN]) {
    const { status, body } = await send(service, [poll('one')], token)
    assert.deepEqual([status, body.reason], [403, 'needs_mirror'])
  }
  assert.equal((await service.call('POST', '/reports', { token: null, body: {} })).status, 401)
})

test('what no mirror sends is refused, and what is of no cluster is ignored', async (t) => {
  const service = await start(t)
  const good = poll('one')
  const wrong: Record<string, Json> = {
    kind: { ...good, kind: 'tokens' },
    key: { ...good, key: 'one' },
    age_ms: { ...good, age_ms: -1 },
    value: { ...good, value: 'x' },
  }
  for (const [field, report] of Object.entries(wrong)) {
    const { status, body } = await send(service, [good, report])
    assert.equal(status, 400)
    assert.deepEqual(
      body.details.map(({ path }: { path: string }) => path),
      [`/reports/1/${field}`],
    )
  }
  for (const age_ms of [1.5, 1e300, '1', null])
    assert.equal((await send(service, [{ ...good, age_ms }])).status, 400)
  for (const key of ['one\n', 'one a b', `one ${'x'.repeat(700)}`, ''])
    assert.equal((await send(service, [{ ...good, key }])).status, 400, key)
  for (const body of [[], { reports: {} }, { reports: [5] }, { reports: Array(5001).fill(good) }] as Json[])
    assert.equal((await service.call('POST', '/reports', { body })).status, 400)
  const raw = JSON.stringify({ reports: ['x'.repeat(4 * 1024 * 1024)] })
  assert.equal((await service.call('POST', '/reports', { raw })).status, 413)
  assert.equal((await service.call('POST', '/reports?dry_run=true', { body: { reports: [] } })).status, 400)
  assert.equal((await send(service, [poll('unknown'), { ...good, key: 'one nowhere' }])).status, 202)
  assert.equal((await statusOf(service, 'one')).contact.state, 'never')
})

test('values of any shape leave a status that can be read', async (t) => {
  const service = await start(t)
  const odd: Json[] = [
    null,
    [],
    [9e15, 'x', {}, [], null, -5],
    [{}, { namespaces: [DIGEST, 'x', {}] }, { x: { b: DIGEST } }],
  ]
  const keys = {
    polls: 'one namespaces',
    reports: 'one',
    refusals: 'one',
    failures: 'one Kustomization/a',
  }
  let age_ms = 10_000
  for (const value of odd)
    for (const [kind, key] of Object.entries(keys)) {
      age_ms -= 10
      const sent = await send(service, [{ kind, key, age_ms, value }])
      assert.equal(sent.status, 202, sent.text)
      await statusOf(service, 'one')
    }
  const future = [9e12, DIGEST, '\u001b[31m\nreason', 'x'.repeat(9000), { component: 'a' }]
  await send(service, [{ kind: 'failures', key: keys.failures, age_ms: 0, value: future }])
  await send(service, [
    { ...poll('one', 0), value: [DIGEST, 1, 9e12, 1, 0, 'v'.repeat(9000), 'b'.repeat(7000)] },
  ])
  const { endpoints, operator_version } = await statusOf(service, 'one')
  assert.ok(Date.parse(endpoints.namespaces.served.since) <= Date.now(), 'nothing is in the future')
  assert.equal(operator_version.length, 64)
})

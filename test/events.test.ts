// Events of Flux on clusters: who may send them, what they come to, and that nothing in them does harm.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pino from 'pino'
import type { Json } from '../src/base/json.ts'
import { start } from './every-store.ts'
import { createToken } from './mirrors.ts'
import { READ_TOKEN, type ServiceOptions, type TestService } from './service.ts'

const BASE = '/api/v2/flux/clusters/one.k8s.example.com'
const EVENTS = `${BASE}/events`

const FAILED = {
  involvedObject: { kind: 'Kustomization', name: 'a', namespace: 'flux-system' },
  severity: 'error',
  reason: 'HealthCheckFailed',
  message: 'timeout waiting for: [Deployment/a status: InProgress]',
}

/** A service whose cluster `one` was served everything a moment ago. */
async function served(t: TestContext, options: ServiceOptions = {}): Promise<TestService> {
  const service = await start(t, options)
  for (const { delivery } of service.types.delivered)
    assert.equal((await service.call('GET', `${BASE}/${delivery.endpoint}`)).status, 200)
  return service
}

async function statusOf(service: TestService) {
  return (await service.call('GET', '/clusters/one/status')).body
}

async function metricOf(service: TestService, name: string): Promise<number> {
  const { text } = await service.call('GET', '/metrics', { token: null })
  const line = text.split('\n').find((each) => each.startsWith(`flux_resourceset_${name} `))
  return Number(line?.split(' ')[1] ?? 0)
}

for (const mode of ['crud', 'read-only'] as const) {
  test(`in ${mode} mode an event makes a component failed, and a success ends that`, async (t) => {
    const service = await served(t, { mode })
    const answer = await service.call('POST', EVENTS, { body: FAILED })
    assert.equal(answer.status, 202)
    assert.deepEqual(answer.body, {})
    const { health, components } = await statusOf(service)
    assert.equal(health, 'failed')
    const { digest: _digest, since, ...failed } = components.a
    assert.ok(since)
    assert.deepEqual(failed, {
      health: 'failed',
      source: 'event',
      reason: FAILED.reason,
      message: FAILED.message,
    })
    await service.call('POST', EVENTS, {
      body: { ...FAILED, severity: 'info', reason: 'ReconciliationSucceeded' },
    })
    assert.equal((await statusOf(service)).components.a.health, 'progressing')
    for (const [verdict, count] of Object.entries({ failed: 1, succeeded: 1 }))
      assert.equal(await metricOf(service, `events_total{verdict="${verdict}"}`), count)
  })
}

test('an event is sent by the token of its cluster, or one that may poll any', async (t) => {
  const service = await served(t)
  const own = await createToken(service, { name: 'one', role: 'cluster', cluster: 'one' })
  const other = await createToken(service, { name: 'two', role: 'cluster', cluster: 'two' })
  const copies = await createToken(service, { name: 'm', role: 'mirror', selector: 'id=one' })
  for (const token of [own, READ_TOKEN])
    assert.equal((await service.call('POST', EVENTS, { token, body: FAILED })).status, 202)
  const foreign = await service.call('POST', EVENTS, { token: other, body: FAILED })
  assert.deepEqual([foreign.status, foreign.body.reason], [403, 'other_cluster'])
  const copying = await service.call('POST', EVENTS, { token: copies, body: FAILED })
  assert.deepEqual([copying.status, copying.body.reason], [403, 'copies_only'])
  for (const token of [null, 'wrong'])
    assert.equal((await service.call('POST', EVENTS, { token, body: FAILED })).status, 401)
})

test('a refused event is noted as a refusal of its cluster', async (t) => {
  const service = await start(t)
  const two = '/api/v2/flux/clusters/two.k8s.example.com/events'
  await service.call('POST', two, { token: 'wrong', body: FAILED })
  const { contact } = (await service.call('GET', '/clusters/two/status')).body
  assert.equal(contact.state, 'refused')
  assert.match(contact.reason, /^401 /)
})

test('a cluster that is unknown fails with 404, and one that is deleted is ignored', async (t) => {
  const service = await served(t)
  const unknown = await service.call('POST', '/api/v2/flux/clusters/x.example.com/events', { body: FAILED })
  assert.deepEqual([unknown.status, unknown.body.reason], [404, 'unknown_cluster'])
  const deleted = await service.call('DELETE', '/clusters/one?confirm=removals')
  assert.ok(deleted.status < 300, deleted.text)
  assert.equal((await service.call('POST', EVENTS, { body: FAILED })).status, 202)
  assert.equal(await metricOf(service, 'events_total{verdict="ignored"}'), 1)
})

test('objects of any shape are taken, and what says nothing is ignored', async (t) => {
  const service = await served(t)
  const deep = `{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`
  const shapes: (string | Json)[] = [
    {},
    { involvedObject: null, severity: 5, reason: [], metadata: 'x' },
    { involvedObject: { kind: ['HelmRelease'], name: {} } },
    { involvedObject: { kind: 'HelmRelease', name: 'c' }, severity: 'error' },
    { involvedObject: { kind: 'HelmRelease', name: '__proto__' }, severity: 'error' },
    { ...FAILED, reason: 'DependencyNotReady' },
    '{"__proto__":{"kind":"HelmRelease"},"constructor":1}',
    '{"a\\\\b":1}',
    deep,
  ]
  for (const shape of shapes) {
    const raw = typeof shape === 'string' ? shape : JSON.stringify(shape)
    const { status, text } = await service.call('POST', EVENTS, { raw })
    assert.equal(status, 202, `${raw.slice(0, 80)}: ${text}`)
  }
  assert.equal(await metricOf(service, 'events_total{verdict="ignored"}'), shapes.length)
  assert.notEqual((await statusOf(service)).health, 'failed')
})

test('odd values of an event that counts are taken as text, or left out', async (t) => {
  const service = await served(t)
  const body = {
    ...FAILED,
    reason: { a: 1 },
    message: `\ud800 one\n\u001b[31mtwo\u0000`,
    metadata: { digest: 5 },
  }
  assert.equal((await service.call('POST', EVENTS, { body })).status, 202)
  const { reason, message } = (await statusOf(service)).components.a
  assert.deepEqual([reason, message], ['', '\ufffd one [31mtwo'])
})

test('only what is no JSON object fails with 400', async (t) => {
  const service = await served(t)
  for (const raw of ['', '[]', 'null', '"x"', '5', '{', `{"a":1}{`, '\u0000', '[[[['.repeat(1000)]) {
    const { status, body, text } = await service.call('POST', EVENTS, { raw })
    assert.equal(status, 400, `${raw.slice(0, 20)}: ${text}`)
    assert.equal(body.message, 'the body is not a JSON object')
  }
  assert.equal((await service.call('POST', EVENTS)).status, 400)
})

test('the content type does not matter, nor do parameters', async (t) => {
  const service = await served(t)
  const raw = JSON.stringify(FAILED)
  for (const type of ['application/json; charset=utf-8', 'text/plain', 'garbage', 'a/b/c', ';', ''])
    assert.equal(
      (await service.call('POST', EVENTS, { raw, headers: { 'content-type': type } })).status,
      202,
      type,
    )
  const token = { authorization: `Bearer ${READ_TOKEN}` }
  // fetch sends no content type with bytes.
  const answer = await fetch(service.url + EVENTS, { method: 'POST', headers: token, body: Buffer.from(raw) })
  assert.equal(answer.status, 202)
  assert.equal((await service.call('POST', `${EVENTS}?cluster=x&dry_run=true`, { raw })).status, 202)
})

test('an event of more than 64 KiB fails with 413', async (t) => {
  const service = await served(t)
  const body = (size: number): string => JSON.stringify({ a: '' }).replace('""', `"${'x'.repeat(size - 8)}"`)
  assert.equal((await service.call('POST', EVENTS, { raw: body(65_536) })).status, 202)
  const refused = await service.call('POST', EVENTS, { raw: body(65_537) })
  assert.equal(refused.status, 413)
  assert.match(refused.body.message, /64 KiB/)
  const huge = await service.call('POST', EVENTS, { raw: body(2_000_000) })
  assert.equal(huge.status, 413)
})

test('a cluster beyond its budget fails with 429 while others go on, and it recovers', async (t) => {
  let time = Date.parse('2026-01-01T00:00:00Z')
  const service = await start(t, { now: () => new Date(time) })
  const send = () => service.call('POST', EVENTS, { body: {} })
  for (let i = 0; i < 300; i++) assert.equal((await send()).status, 202)
  const { status, headers, body } = await send()
  assert.deepEqual([status, headers['retry-after'], body.reason], [429, '10', 'too_many_events'])
  const two = '/api/v2/flux/clusters/two.k8s.example.com/events'
  assert.equal((await service.call('POST', two, { body: {} })).status, 202)
  assert.equal(await metricOf(service, 'dropped_events_total'), 1)
  time += 2000
  assert.deepEqual([(await send()).status, (await send()).status, (await send()).status], [202, 202, 429])
})

test('no event is a line of the log at info, and none can add a line of its own', async (t) => {
  const lines: string[] = []
  const stream = { write: (line: string) => void lines.push(line) }
  const service = await served(t, { log: pino({ level: 'debug' }, stream) })
  lines.length = 0
  await service.call('POST', EVENTS, { body: { ...FAILED, message: 'x\n{"level":60,"msg":"forged"}' } })
  await service.call('POST', `${EVENTS}?a=%0a%7b%22level%22:60%7d`, { body: FAILED })
  assert.equal(lines.length, 2)
  for (const line of lines) {
    assert.equal(JSON.parse(line).level, 20)
    assert.doesNotMatch(line, /forged|%0a/)
  }
})

test('the description lists the events and acknowledgements, without what writes take', async (t) => {
  const { body } = await (await start(t)).call('GET', '/openapi.json')
  const { post } = body.paths['/api/v2/flux/clusters/{dns}/events']
  assert.deepEqual(
    post.parameters.map(({ name }: { name: string }) => name),
    ['dns'],
  )
  const { get } = body.paths['/api/v2/flux/clusters/{dns}/ack']
  const names = get.parameters.map(({ name }: { name: string }) => name)
  assert.deepEqual(names.slice(0, 5), ['dns', 'v', 'every', 'part', 'ready'])
  assert.ok(names.includes('platform-components'))
})

// Clusters that poll a mirror: their status is known upstream, too.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Upstream } from '../src/transfer/upstream.ts'
import {
  becomesReady,
  createToken,
  type MirrorProcess,
  mirrorOf,
  POLL,
  upstreamOf,
  wayTo,
} from './mirrors.ts'
import { serve } from './own-server.ts'
import { type ServiceProcess, type TestService, waitFor } from './service.ts'

async function readyMirror(
  t: TestContext,
  { url }: { readonly url: string },
  env: Record<string, string> = {},
): Promise<MirrorProcess> {
  const mirror = await mirrorOf(t, url, env)
  await becomesReady(mirror)
  return mirror
}

async function statusOf(service: Pick<TestService | ServiceProcess, 'call'>, cluster = 'k0') {
  return (await service.call('GET', `/clusters/${cluster}/status`)).body
}

const EVENT = {
  involvedObject: { kind: 'Kustomization', name: 'a' },
  severity: 'error',
  reason: 'BuildFailed',
  message: 'no such file',
}

test('a cluster that polls a mirror is current upstream, with its failures', async (t) => {
  const upstream = await upstreamOf(t)
  const mirror = await readyMirror(t, upstream)
  const components = POLL.replace('namespaces', 'platform-components')
  const agent = { 'user-agent': 'flux-operator/v0.58.1' }
  for (const url of [POLL, components])
    assert.equal((await mirror.call('GET', url, { headers: agent })).status, 200)
  const ack = `${POLL.replace('namespaces', 'ack')}?v=1&every=60&namespaces=0123456789abcdef`
  assert.equal((await mirror.call('GET', ack, { headers: agent })).status, 200)
  const events = POLL.replace('namespaces', 'events')
  assert.equal((await mirror.call('POST', events, { body: EVENT })).status, 202)
  const there = await statusOf(mirror)
  assert.equal(await mirror.stop(), 0)
  const here = await statusOf(upstream)
  assert.equal(here.contact.state, 'current')
  assert.equal(here.health, 'failed')
  assert.equal(here.operator_version, '0.58.1')
  assert.equal(here.contact.expected_interval_s, 60)
  assert.equal(here.components.a.reason, 'BuildFailed')
  assert.equal(here.endpoints.namespaces.delivery, there.endpoints.namespaces.delivery)
  assert.equal(here.endpoints.namespaces.served.digest, there.endpoints.namespaces.served.digest)
})

test('a mirror of a mirror tells both, and what it has left when it stops', async (t) => {
  const upstream = await upstreamOf(t)
  const middle = await readyMirror(t, upstream)
  const far = await readyMirror(t, middle)
  assert.equal((await far.call('GET', POLL)).status, 200)
  assert.equal(await far.stop(), 0)
  assert.equal((await statusOf(middle)).contact.state, 'current')
  assert.equal(await middle.stop(), 0)
  assert.equal((await statusOf(upstream)).contact.state, 'current')
})

test('a mirror of some clusters reports on those, with a token for those', async (t) => {
  const upstream = await upstreamOf(t)
  const selector = 'environment=dev'
  const UPSTREAM_TOKEN = await createToken(upstream, { name: 'dev', role: 'mirror', selector })
  const mirror = await readyMirror(t, upstream, { UPSTREAM_TOKEN })
  assert.equal((await mirror.call('GET', POLL)).status, 200)
  assert.equal(await mirror.stop(), 0)
  assert.equal((await statusOf(upstream)).contact.state, 'current')
  assert.equal((await statusOf(upstream, 'k1')).contact.state, 'never')
})

test('an upstream that was away is told the newest when it is back', async (t) => {
  const upstream = await upstreamOf(t)
  const way = await wayTo(t, upstream)
  const mirror = await readyMirror(t, way)
  way.proxy.cut()
  assert.equal((await mirror.call('GET', POLL)).status, 200)
  await waitFor('the mirror says so', () => mirror.output().includes('the upstream does not accept reports'))
  assert.equal((await statusOf(upstream)).contact.state, 'never')
  way.proxy.heal()
  await becomesReady(mirror)
  assert.equal(await mirror.stop(), 0)
  assert.equal((await statusOf(upstream)).contact.state, 'current')
  assert.equal(mirror.output().split('the upstream does not accept reports').length, 2, 'and it said so once')
})

test('an upstream that takes no reports is left alone for a while', async (t) => {
  for (const status of [404, 405]) {
    let asked = 0
    const { url } = await serve(t, (_request, response) => {
      asked++
      response.writeHead(status).end('{}')
    })
    const upstream = new Upstream({ url, token: () => 'x', signal: new AbortController().signal })
    const report = { kind: 'reports', key: 'one', age_ms: 0, value: null }
    for (let i = 0; i < 3; i++) await assert.rejects(upstream.report([report]), /is it an older version\?/)
    assert.equal(asked, 1)
  }
})

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { READ_TOKEN, startService } from './service.ts'

const service = await startService({ hasProfiles: true })
after(() => service.stop())

test('an admin takes a profile of what runs; polls are answered meanwhile, and a second profile has to wait', async () => {
  const first = service.call('GET', '/debug/profiles/cpu?seconds=1')
  const poll = await service.call('GET', '/api/v2/flux/clusters/one.k8s.example.com/namespaces', {
    token: READ_TOKEN,
  })
  assert.equal(poll.status, 200)
  const second = await service.call('GET', '/debug/profiles/heap?seconds=1')
  assert.equal(second.status, 503)
  assert.equal(second.body.reason, 'too_many_requests')
  const { status, body } = await first
  assert.equal(status, 200)
  assert.ok(body.nodes.length > 0)
  assert.equal(body.samples.length, body.timeDeltas.length)
  assert.equal(typeof body.nodes[0].callFrame.functionName, 'string')
})

test('an admin takes a profile of what allocates memory', async () => {
  const { status, body } = await service.call('GET', '/debug/profiles/heap?seconds=1')
  assert.equal(status, 200)
  assert.ok(body.head.callFrame)
  assert.ok(Array.isArray(body.head.children))
})

test('only admins take profiles, for a minute at most', async () => {
  const path = '/debug/profiles/cpu'
  assert.equal((await service.call('GET', path, { token: null })).status, 401)
  assert.equal((await service.call('GET', path, { token: READ_TOKEN })).status, 403)
  assert.equal((await service.call('GET', `${path}?seconds=61`)).status, 400)
})

test('without the setting there is no such route, and no description of it', async () => {
  const plain = await startService()
  const { status } = await plain.call('GET', '/debug/profiles/cpu')
  const { body } = await plain.call('GET', '/openapi.json', { token: null })
  await plain.stop()
  assert.equal(status, 404)
  assert.ok(!Object.keys(body.paths).some((path) => path.startsWith('/debug')))
})

// What is known of clusters when processes and databases are killed: at most the last seconds of it are lost.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterStatus } from '../../src/api/status-schema.ts'
import { startPostgres } from '../postgres-server.ts'
import { READ_TOKEN, type ServiceProcess, spawnService, temporaryFolder, waitFor } from '../service.ts'
import { dnsOf, ENDPOINTS, pollUrl } from './fleet-load.ts'

const SEED_FILE = join(import.meta.dirname, '../../data/seed.json')
const HEARD = 'demo-cluster-01'
const LATER = 'dev-us-01'
/** How often notes are written, and some time for it. */
const SYNC_MS = 12_000

async function start(t: TestContext, env: Record<string, string>): Promise<ServiceProcess> {
  const service = await spawnService({ SEED_FILE, API_MODE: 'crud', ...env })
  t.after(() => service.stop('SIGKILL'))
  return service
}

async function statusOf(service: ServiceProcess, cluster: string): Promise<ClusterStatus> {
  const { status, body, text } = await service.call('GET', `/clusters/${cluster}/status`)
  assert.equal(status, 200, text)
  return body
}

/** Polls everything, and reports all of it as applied and ready, perhaps to another replica. */
async function settle(service: ServiceProcess, cluster: string, reportTo = service): Promise<void> {
  const query = new URLSearchParams({ v: '1', every: '300' })
  for (const endpoint of ENDPOINTS) {
    const url = pollUrl(dnsOf(cluster), endpoint)
    const { status, body } = await service.call('GET', url, { token: READ_TOKEN })
    assert.equal(status, 200)
    for (const [i, { id, digest, answer_digest }] of body.inputs.entries()) {
      if (i === 0) query.set(endpoint, answer_digest)
      if (endpoint === 'platform-components') query.append('ready', `${id}:${digest}`)
    }
  }
  const report = `${pollUrl(dnsOf(cluster), 'ack')}?${query}`
  assert.equal((await reportTo.call('GET', report, { token: READ_TOKEN })).status, 200)
}

async function pendingOf(service: ServiceProcess): Promise<number> {
  const { text } = await service.call('GET', '/metrics', { token: null })
  return Number(/^flux_resourceset_notes_pending (\S+)$/m.exec(text)?.[1] ?? assert.fail(text))
}

function logged(service: ServiceProcess, doing: string): number {
  return service.output().split(`"doing":"${doing}"`).length - 1
}

async function killAndRestart(t: TestContext, DATABASE_URL: string): Promise<void> {
  const first = await start(t, { DATABASE_URL })
  await settle(first, HEARD)
  await waitFor('all is in the store', async () => (await pendingOf(first)) === 0)
  const before = await statusOf(first, HEARD)
  assert.deepEqual([before.contact.state, before.delivery, before.health], ['current', 'applied', 'healthy'])
  const made = await first.call('POST', '/namespaces', { body: { id: 'made' } })
  assert.equal(made.status, 201, made.text)
  await settle(first, LATER)
  await first.stop('SIGKILL')
  await sleep(2000)
  const second = await start(t, { DATABASE_URL })
  assert.equal((await second.call('GET', '/namespaces/made')).status, 200)
  await waitFor('what was noted is known', async () => (await statusOf(second, HEARD)).delivery === 'applied')
  const after = await statusOf(second, HEARD)
  assert.equal(after.contact.last_seen, before.contact.last_seen)
  assert.deepEqual(after.endpoints, before.endpoints)
  const { contact, delivery, health } = await statusOf(second, LATER)
  assert.deepEqual(
    [contact.state, contact.last_seen, delivery, health],
    ['never', null, 'behind', 'unknown'],
    'nothing is claimed that was not stored',
  )
}

test('a process on SQLite that is killed loses what it heard in the last seconds, and no document', (t) =>
  killAndRestart(t, `sqlite://${join(temporaryFolder(t), 'fleet.db')}`))

test('so does one on PostgreSQL', async (t) => {
  const server = await startPostgres()
  t.after(() => server.stop())
  await killAndRestart(t, await server.createDatabase())
})

test('replicas whose database is killed answer clusters, and tell each other what they heard when it is back', async (t) => {
  const server = await startPostgres({ durable: true })
  t.after(() => server.stop())
  const DATABASE_URL = await server.createDatabase()
  const crud = await start(t, { DATABASE_URL })
  const reader = await start(t, { DATABASE_URL, API_MODE: 'read-only' })
  await server.kill()
  for (let i = 0; i < 5; i++) {
    await settle(crud, HEARD, reader)
    await settle(reader, LATER)
    await sleep(SYNC_MS / 2)
  }
  assert.equal((await statusOf(reader, LATER)).health, 'healthy')
  assert.deepEqual((await statusOf(reader, LATER)).transitions, [])
  assert.ok((await pendingOf(reader)) <= 2 * ENDPOINTS.length + 2)
  for (const service of [crud, reader])
    for (const doing of ['status', 'follow']) assert.equal(logged(service, doing), 1, service.output())
  await server.start()
  const states = async (service: ServiceProcess) =>
    (await Promise.all([HEARD, LATER].map((cluster) => statusOf(service, cluster)))).map(
      ({ contact, delivery, health }) => `${contact.state} ${delivery} ${health}`,
    )
  const settled = ['current applied healthy', 'current applied healthy']
  const begun = performance.now()
  for (const service of [crud, reader])
    while (String(await states(service)) !== String(settled)) {
      assert.ok(performance.now() - begun < 4 * SYNC_MS, `${await states(service)}`)
      await sleep(500)
    }
})

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type PostgresServer, runSql, startPostgres } from '../postgres-server.ts'
import { spawnService, waitFor } from '../service.ts'
import {
  checkEqual,
  checkLog,
  isReady,
  type Replica,
  ready,
  SEED_FILE,
  startPollers,
  startReplica,
  startWriters,
  write,
} from './proven-load.ts'

async function startPrimary(t: TestContext): Promise<PostgresServer> {
  const server = await startPostgres({ durable: true })
  t.after(() => server.stop())
  return server
}

async function startStandby(
  t: TestContext,
  primary: PostgresServer,
  synchronous: boolean,
): Promise<PostgresServer> {
  const server = await primary.standby({ synchronous })
  t.after(() => server.stop())
  return server
}

/** Two that write and one that reads. */
async function startReplicas(t: TestContext, url: string): Promise<Replica[]> {
  const first = await startReplica(t, url)
  return [
    first,
    ...(await Promise.all([startReplica(t, url), startReplica(t, url, { API_MODE: 'read-only' })])),
  ]
}

/** As a Service of Kubernetes does. */
function lead(replicas: readonly Replica[], { port }: PostgresServer): void {
  for (const { proxy } of replicas) proxy.target('127.0.0.1', port)
}

function on(server: PostgresServer, url: string): string {
  return server.url(new URL(url).pathname.slice(1))
}

test('a primary that is lost under load takes no acknowledged write with it when its standby was synchronous', async (t) => {
  let primary = await startPrimary(t)
  const url = await primary.createDatabase()
  const replicas = await startReplicas(t, url)
  const services = replicas.map(({ service }) => service)
  const pollers = services.map((service) => startPollers(t, service))
  const writers = startWriters(t, () => services.slice(0, 2), 6)
  for (let round = 1; round <= 2; round++) {
    const standby = await startStandby(t, primary, true)
    const before = writers.acknowledged
    await waitFor('writes wait for the standby', () => writers.acknowledged > before + 30)
    await primary.kill()
    await standby.promote()
    lead(replicas, standby)
    primary = standby
    for (const service of services) await waitFor('it follows the new one', () => isReady(service))
    const after = writers.acknowledged
    await waitFor('writes go on', () => writers.acknowledged > after + 30)
  }
  await writers.stop()
  for (const poller of pollers) await poller.stop()
  await writers.check(on(primary, url))
  await checkEqual(services, on(primary, url))
  await checkLog(services[0] as (typeof services)[0])
  const polls = pollers.reduce((sum, { count }) => sum + count, 0)
  t.diagnostic(
    `2 failovers, ${writers.acknowledged} writes acknowledged, ${writers.unknown} unknown, ${polls} polls`,
  )
})

test('a standby without the last revisions is refused by whoever has seen them, while polls go on', async (t) => {
  const primary = await startPrimary(t)
  const url = await primary.createDatabase()
  const replicas = await startReplicas(t, url)
  const [crud, , readOnly] = replicas.map(({ service }) => service)
  assert.ok(crud && readOnly)
  const services = replicas.map(({ service }) => service)
  const standby = await startStandby(t, primary, false)
  const kept = await write(crud, 'kept')
  await waitFor('the standby has it', async () => {
    const [row] = await runSql(on(standby, url), 'select revision from flux_resourceset.head')
    return Number(row?.revision) === kept
  })
  await standby.query(`alter system set primary_conninfo = ''`)
  await standby.query('select pg_reload_conf()')
  await waitFor('the standby is cut off', async () => {
    return (await primary.query('select 1 from pg_stat_replication')).length === 0
  })
  const lost = await write(crud, 'lost too')
  await checkEqual(services, url)
  const known = await Promise.all(services.map(pollAll))
  const pollers = services.map((service) => startPollers(t, service))
  await primary.kill()
  await standby.promote()
  lead(replicas, standby)
  for (const service of services) await refuses(service, /it was set back/)
  const fresh = await spawnService({ DATABASE_URL: on(standby, url), SEED_FILE, API_MODE: 'crud' })
  t.after(() => fresh.stop('SIGKILL'))
  for (const value of ['other', 'other too', 'and more']) await write(fresh, value)
  for (const service of services) await refuses(service, new RegExp(`another revision ${lost}`))
  assert.equal((await ready(crud)).status, 503)
  assert.equal((await ready(readOnly)).body.status, 'degraded')
  const refused = await crud.call('POST', '/namespaces', { body: { id: 'mixed' } })
  assert.equal(refused.status, 503)
  assert.match(refused.body.message, /another revision/)
  for (const poller of pollers) await poller.stop()
  assert.deepEqual(await Promise.all(services.map(pollAll)), known, 'nothing went back')
  assert.equal((await fresh.call('GET', '/namespaces/mixed')).status, 404)
  await checkLog(fresh)
  const restarted = await startReplica(t, on(standby, url), { API_MODE: 'read-only' })
  await checkEqual([fresh, restarted.service], on(standby, url))
})

type Called = Replica['service']

async function pollAll(service: Called): Promise<string[]> {
  const { body } = await service.call('GET', '/api/v2/flux/clusters')
  assert.ok(body.clusters?.length ?? body.inputs?.length)
  const path = '/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/platform-components'
  const { text, headers } = await service.call('GET', path)
  return [text, String(headers.etag), String(headers['x-revision'])]
}

async function refuses(service: Called, why: RegExp): Promise<void> {
  await waitFor('it refuses the other history', async () => {
    const { body } = await ready(service)
    return why.test(`${body.reason} ${body.message}`)
  })
}

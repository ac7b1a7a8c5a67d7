import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, before, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { put, revisionOf } from '../../src/store/fixtures-for-contract.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres.ts'
import { type PostgresServer, runSql, startPostgres } from '../postgres-server.ts'
import { startService, waitFor } from '../service.ts'
import type { TcpProxy } from '../tcp-proxy.ts'
import {
  checkEqual,
  checkLog,
  isReady,
  ready,
  startPollers,
  startReplica,
  startWriters,
  write,
} from './proven-load.ts'

const ROUNDS = 30

let server: PostgresServer
before(async () => {
  server = await startPostgres()
})
after(() => server.stop())

const FAULTS: Record<string, (proxy: TcpProxy) => void> = {
  stall: (proxy) => proxy.stall(),
  cut: (proxy) => proxy.cut(),
  'drop up': (proxy) => proxy.drop('up'),
  'drop down': (proxy) => proxy.drop('down'),
  'halve up': (proxy) => proxy.halve('up'),
  'halve down': (proxy) => proxy.halve('down'),
  halve: (proxy) => proxy.halve(),
  delay: (proxy) => proxy.delay(50),
}

test('a network that breaks in any way loses no acknowledged write, doubles none and stops no poll', async (t) => {
  const url = await server.createDatabase()
  const first = await startReplica(t, url)
  const replicas = [first, await startReplica(t, url), await startReplica(t, url, { API_MODE: 'read-only' })]
  const services = replicas.map(({ service }) => service)
  const writers = startWriters(t, () => services.slice(0, 2), 6)
  const pollers = services.map((service) => startPollers(t, service))
  const names = Object.keys(FAULTS)
  const done: string[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const name = names[round < names.length ? round : randomInt(names.length)] as string
    const chosen = replicas.filter(() => randomInt(2) === 1)
    done.push(`${name} ×${chosen.length}`)
    for (const { proxy } of chosen) FAULTS[name]?.(proxy)
    await sleep(randomInt(50, 900))
    for (const { proxy } of chosen) proxy.heal()
    await sleep(randomInt(0, 400))
  }
  for (const service of services) await waitFor('all is well again', () => isReady(service))
  const before = writers.acknowledged
  // One whose query was swallowed is given up after half a minute, and those behind it wait.
  const goOn = () => waitFor('writes go on', () => writers.acknowledged > before + 10)
  await goOn().catch(goOn).catch(goOn)
  await writers.stop()
  for (const poller of pollers) await poller.stop()
  await writers.check(url).catch((cause: Error) => {
    throw new Error(`after ${done.join(', ')}: ${cause.message}`, { cause })
  })
  await checkEqual(services, url)
  await checkLog(first.service)
  const polls = pollers.reduce((sum, { count }) => sum + count, 0)
  t.diagnostic(
    `${ROUNDS} rounds, ${writers.acknowledged} writes acknowledged, ${writers.unknown} unknown, ${polls} polls`,
  )
})

/** Whatever happens to the network, these come back. */
async function checkAnswers(t: TestContext, break_: (proxy: TcpProxy) => void): Promise<void> {
  const url = await server.createDatabase()
  const replicas = [await startReplica(t, url), await startReplica(t, url, { API_MODE: 'read-only' })]
  const [crud, readOnly] = replicas.map(({ service }) => service) as [
    typeof first.service,
    typeof first.service,
  ]
  const [first] = replicas as [(typeof replicas)[0]]
  const pollers = [crud, readOnly].map((service) => startPollers(t, service))
  const writing = Array.from({ length: 5 }, (_, i) => write(crud, `before ${i}`))
  for (const { proxy } of replicas) break_(proxy)
  await Promise.allSettled(writing)
  await waitFor('the database is missed', async () => {
    const answers = await Promise.all([ready(crud), ready(readOnly)])
    for (const service of [crud, readOnly])
      assert.equal((await service.call('GET', '/health', { token: null })).status, 200)
    return answers[0]?.status === 503 && answers[1]?.body.status === 'degraded'
  })
  const refused = await crud.call('POST', '/namespaces', { body: { id: 'late' } })
  assert.equal(refused.status, 503)
  assert.equal((await crud.call('GET', '/revisions')).status, 503)
  for (const { proxy } of replicas) proxy.heal()
  for (const service of [crud, readOnly]) await waitFor('it is ready again', () => isReady(service))
  await write(crud, 'after')
  await checkEqual([crud, readOnly], url)
  for (const poller of pollers) await poller.stop()
}

for (const [name, break_] of Object.entries(FAULTS).filter(([name]) => /stall|drop|cut/.test(name))) {
  test(`a database behind a ${name} lets nobody wait without an end, and is followed again after it`, (t) =>
    checkAnswers(t, break_))
}

test('a commit that gets no answer keeps neither probes nor other writes waiting', async (t) => {
  const url = await server.createDatabase()
  const { service, proxy } = await startReplica(t, url)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.after(() => client.end())
  await client.query('begin; select * from flux_resourceset.head for update')
  let isOver = false
  const stuck = service.call('POST', '/namespaces', { body: { id: 'stuck' } }).finally(() => {
    isOver = true
  })
  await waitFor('the commit waits', async () => {
    const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    return (await runSql(url, waiting)).length > 0
  })
  proxy.stall()
  await client.query('rollback')
  await waitFor('the database is missed', async () => (await ready(service)).status === 503)
  const late = await service.call('POST', '/namespaces', { body: { id: 'late' } })
  assert.equal(late.status, 503)
  assert.equal(isOver, false, 'all that was before the stuck one had its end')
  proxy.heal()
  const { status, headers } = await stuck
  assert.ok(status === 201 || status === 503, String(status))
  if (status === 201) assert.equal(headers['x-revision'], '2')
  await waitFor('it is ready again', () => isReady(service))
  assert.equal(await write(service, 'after'), 3)
  assert.equal((await service.call('GET', '/namespaces/stuck')).status, 200)
  assert.equal((await service.call('GET', '/namespaces/late')).status, 404)
})

test('commits that another one is in the way of for too long leave nothing waiting in the database', async (t) => {
  const url = await server.createDatabase()
  const store = openPostgresStore({ url, write: true })
  t.after(() => store.close())
  await store.head()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.after(() => client.end())
  await client.query('begin; update flux_resourceset.head set revision = revision')
  const large = Array.from({ length: 1000 }, (_, i) => put(`n${i}`))
  await Promise.all(
    [[put('a')], large].map((changes) =>
      assert.rejects(store.commit(0, revisionOf(...changes)), /another commit is in the way/),
    ),
  )
  const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  assert.deepEqual(await runSql(url, waiting), [])
  await client.query('rollback')
  assert.equal((await store.head()).revision, 0)
})

test('a service whose database is stalled stops when it is told to', async (t) => {
  const url = await server.createDatabase()
  for (const API_MODE of ['crud', 'read-only']) {
    const { service, proxy } = await startReplica(t, url, { API_MODE })
    proxy.stall()
    await waitFor('the database is missed', async () => !(await isReady(service)))
    assert.equal(await service.stop('SIGTERM'), 0, service.output())
  }
})

test('a flood of notifications neither stops polls nor the following', async (t) => {
  const url = await server.createDatabase()
  const { service: crud } = await startReplica(t, url)
  const { service: readOnly } = await startReplica(t, url, { API_MODE: 'read-only' })
  const pollers = [crud, readOnly].map((service) => startPollers(t, service))
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.after(() => client.end())
  const flood = (async () => {
    for (let i = 0; i < 40; i++)
      await client.query(
        `select pg_notify('flux_resourceset', n || ' x' || ${i}) from generate_series(1, 1000) n`,
      )
  })()
  let last = 0
  for (let i = 0; i < 20; i++) last = await write(crud, `flood ${i}`)
  await flood
  const late = await readOnly.call('GET', `/whoami?min_revision=${last}`)
  assert.equal(late.status, 200, late.text)
  await client.query(
    `select pg_notify('flux_resourceset', repeat('x', 7999)), pg_notify('flux_resourceset', '')`,
  )
  await write(crud, 'after')
  await checkEqual([crud, readOnly], url)
  for (const poller of pollers) await poller.stop()
})

/** Revisions beside the service, in commits of many. */
async function commitMany(url: string, count: number): Promise<void> {
  const store = openPostgresStore({ url, write: true })
  const namespace = (i: number) => {
    const json = JSON.stringify({ id: `many-${i % 50}`, labels: { n: String(i) }, annotations: {} })
    return revisionOf({ type: 'namespaces', id: `many-${i % 50}`, after: { json, deleted: false } })
  }
  for (let at = 0; at < count; at += 500) {
    const { revision } = await store.head()
    const revisions = Array.from({ length: Math.min(500, count - at) }, (_, i) => namespace(at + i))
    assert.equal((await store.commit(revision, ...revisions)).ok, true)
  }
  await store.close()
}

test('a replica that is 10,000 revisions behind catches up, whether it slept or was cut off', async (t) => {
  const url = await server.createDatabase()
  const { service: crud } = await startReplica(t, url)
  const sleeper = await startReplica(t, url, { API_MODE: 'read-only' })
  const cutOff = await startReplica(t, url, { API_MODE: 'read-only' })
  const poller = startPollers(t, cutOff.service)
  sleeper.service.child.kill('SIGSTOP')
  cutOff.proxy.cut()
  await commitMany(url, 10_000)
  sleeper.service.child.kill('SIGCONT')
  cutOff.proxy.heal()
  await write(crud, 'last')
  const { service: late } = await startReplica(t, url, { API_MODE: 'read-only' })
  await checkEqual([crud, sleeper.service, cutOff.service, late], url)
  await poller.stop()
  const metrics = await cutOff.service.call('GET', '/metrics', { token: null })
  assert.match(metrics.text, /^flux_resourceset_lag_revisions 0$/m)
})

test('clocks that jump by hours take no time back, end no lease early and forget no key', async (t) => {
  const url = await server.createDatabase()
  const jumps = [0, 0]
  const services = await Promise.all(
    jumps.map((_, i) => {
      const store = openPostgresStore({ url, write: true })
      return startService({ store, now: () => new Date(Date.now() + (jumps[i] as number)) })
    }),
  )
  t.after(() => Promise.all(services.map((service) => service.stop())))
  const store = openPostgresStore({ url, write: true })
  t.after(() => store.close())
  const lease = await store.leases.acquire('test', 'holder', 600_000)
  const patch = (i: number, value: string, headers = {}) =>
    (services[i] as (typeof services)[0]).call('PATCH', '/clusters/one', {
      body: { labels: { value } },
      headers,
    })
  const HOUR = 3_600_000
  for (let round = 0; round < 24; round++) {
    jumps[round % 2] = randomInt(-5, 6) * HOUR
    const headers = { 'idempotency-key': `round-${round}` }
    const made = await patch(round % 2, `v${round}`, headers)
    assert.equal(made.status, 200, made.text)
    jumps[(round + 1) % 2] = randomInt(-5, 6) * HOUR
    const again = await patch((round + 1) % 2, `v${round}`, headers)
    assert.equal(again.status, 200)
    assert.equal(again.text, made.text)
    assert.equal(again.headers['x-revision'], made.headers['x-revision'], 'it was done once')
    assert.deepEqual(await store.leases.acquire('test', 'other', 1000), lease)
    for (const service of services) {
      const { text } = await service.call('GET', '/metrics')
      const age = Number(/^flux_resourceset_state_age_seconds (\S+)$/m.exec(text)?.[1])
      assert.ok(age >= 0 && age < 60, `an age of ${age} s`)
    }
  }
  const rows = await runSql(url, 'select time from flux_resourceset.revisions order by revision')
  assert.equal(rows.length, 25)
  const times = rows.map(({ time }) => String(time))
  assert.deepEqual(times, times.toSorted())
  const [service] = services as [(typeof services)[0]]
  await checkLog(service)
})

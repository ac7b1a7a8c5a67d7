// What is known of clusters when the store fails, processes start and end, and clusters are purged.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { ClusterStatus } from '../src/api/status-schema.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import type { Note, Notes } from '../src/store/notes.ts'
import { openPostgresStore } from '../src/store/postgres/postgres.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import { type Store, StoreError } from '../src/store/store.ts'
import { run, STORES, start } from './every-store.ts'
import { runSql, temporaryPostgres } from './postgres-server.ts'
import { ReportingCluster } from './reporting-clusters.ts'
import { READ_TOKEN, type ServiceOptions, smallFleet, type TestService, temporaryFolder } from './service.ts'

const FAILED = {
  involvedObject: { kind: 'Kustomization', name: 'a', namespace: 'flux-system' },
  severity: 'error',
  reason: 'HealthCheckFailed',
  message: 'timeout',
}
const KINDS = ['polls', 'seen', 'reports', 'refusals', 'failures', 'transitions']

/** A clock that all services of a test share. */
function createClock() {
  let now = Date.parse('2026-03-01T12:00:00Z')
  return {
    now: () => new Date(now),
    pass(seconds: number) {
      now += seconds * 1000
    },
  }
}

/** A store of several processes, and views of it that fail while they are cut off. */
function openCuttable(store: Store = openMemoryStore()) {
  const { isPrivate: _, ...shared } = store
  return {
    open() {
      let isCut = false
      const use = <T>(run: () => T): T => {
        if (isCut) throw new StoreError('the database left', { isTransient: true })
        return run()
      }
      const notes: Notes = {
        record: async (kind, notes) => use(() => shared.notes.record(kind, notes)),
        read: (kind, keys) => use(() => shared.notes.read(kind, keys)),
        readSince: (kind, since) => use(() => shared.notes.readSince(kind, since)),
        remove: async (kind, keys) => use(() => shared.notes.remove(kind, keys)),
      }
      return {
        store: {
          ...shared,
          notes,
          head: async () => use(() => shared.head()),
          commit: async (...args: Parameters<Store['commit']>) => use(() => shared.commit(...args)),
          close: async () => {},
        },
        cut() {
          isCut = true
        },
        heal() {
          isCut = false
        },
      }
    },
  }
}

async function statusOf(service: TestService, cluster = 'one'): Promise<ClusterStatus> {
  const { status, body, text } = await service.call('GET', `/clusters/${cluster}/status`, {
    token: READ_TOKEN,
  })
  assert.equal(status, 200, text)
  return body
}

async function rowIn(service: TestService, cluster = 'one'): Promise<string[]> {
  const { contact, delivery, health } = await statusOf(service, cluster)
  return [contact.state, delivery, health]
}

async function sendEvent(service: TestService): Promise<number> {
  const url = '/api/v2/flux/clusters/one.k8s.example.com/events'
  return (await service.call('POST', url, { token: READ_TOKEN, body: FAILED })).status
}

async function notesIn({ notes }: Pick<Store, 'notes'>): Promise<(Note & { kind: string })[]> {
  const found = []
  for (const kind of KINDS) for await (const note of notes.read(kind)) found.push({ ...note, kind })
  return found
}

async function syncAll(...services: TestService[]): Promise<void> {
  for (const { engine } of services) await engine.fleet.sync()
}

/** With its stop, so that a test can end it before its own end. */
async function startOn(t: TestContext, store: Store, options: ServiceOptions): Promise<TestService> {
  const service = await start(t, { store, ...options })
  await service.engine.fleet.loaded
  return service
}

describe('while the store is unavailable', () => {
  test('clusters are answered, states are derived from memory, and it is logged once', async (t) => {
    const { now, pass } = createClock()
    const { store, cut, heal } = openCuttable().open()
    const logged: string[] = []
    const service = await startOn(t, store, { now, onStoreError: (_, doing) => logged.push(doing) })
    const cluster = new ReportingCluster(service, 'one')
    await service.engine.fleet.refresh()
    cut()
    for (let i = 0; i < 5; i++) {
      await cluster.settle()
      assert.equal(await sendEvent(service), 202)
      await service.engine.fleet.sync()
      await service.engine.fleet.refresh()
      pass(10)
    }
    const { transitions, contact, delivery, health } = await statusOf(service)
    assert.deepEqual([contact.state, delivery, health], ['current', 'applied', 'failed'])
    assert.deepEqual(transitions, [])
    assert.equal((await service.call('GET', '/status')).body.counts.contact.current, 1)
    assert.equal((await service.call('GET', '/status/attention')).body.total, 1)
    assert.equal(
      service.engine.fleet.pendingNotes,
      6,
      'three endpoints, when they were polled last, a report and a failure',
    )
    assert.equal((await service.call('GET', '/ready', { token: null })).status, 503)
    assert.deepEqual(logged.toSorted(), ['follow', 'status'])
    heal()
    assert.equal((await service.call('GET', '/ready', { token: null })).status, 200)
    await service.engine.fleet.sync()
    assert.equal(service.engine.fleet.pendingNotes, 0)
    assert.ok((await statusOf(service)).transitions.length > 0)
    cut()
    await service.engine.fleet.sync()
    assert.equal(logged.filter((doing) => doing === 'status').length, 2, 'a second outage is news')
  })

  test('what is noted is written when it is back, and other replicas learn of it whoever is first', async (t) => {
    const { now, pass } = createClock()
    const shared = openCuttable()
    const [left, right] = [shared.open(), shared.open()]
    const one = await startOn(t, left.store, { now })
    const other = await startOn(t, right.store, { now, fleet: {} })
    await syncAll(one, other)
    for (const { cut } of [left, right]) cut()
    pass(600)
    await new ReportingCluster(one, 'one').settle()
    await syncAll(one, other)
    pass(120)
    for (const { heal } of [left, right]) heal()
    await syncAll(other, one)
    assert.deepEqual(await rowIn(other), ['never', 'behind', 'unknown'])
    pass(10)
    await syncAll(other)
    assert.deepEqual(await rowIn(other), ['current', 'applied', 'healthy'])
  })

  test('for one replica alone, the others learn within an hour of what it noted', async (t) => {
    const { now, pass } = createClock()
    const shared = openCuttable()
    const left = shared.open()
    const one = await startOn(t, left.store, { now })
    const other = await startOn(t, shared.open().store, { now, fleet: {} })
    left.cut()
    await new ReportingCluster(one, 'one').settle()
    for (let i = 0; i < 30; i++) {
      pass(10)
      await syncAll(one, other)
    }
    left.heal()
    await syncAll(one, other)
    assert.deepEqual(await rowIn(other), ['never', 'behind', 'unknown'])
    await other.engine.fleet.tidy()
    assert.deepEqual(await rowIn(other), ['current', 'applied', 'healthy'])
  })
})

describe('a process that starts', () => {
  test('while notes cannot be read learns of them later, and of the time in which none ran', async (t) => {
    const { now, pass } = createClock()
    const shared = openCuttable()
    const first = await startOn(t, shared.open().store, { now })
    await new ReportingCluster(first, 'one').settle()
    await first.stop()
    pass(86_400)
    const { store, cut, heal } = shared.open()
    // What is served comes from elsewhere then, such as a snapshot.
    const notes: Notes = { ...store.notes }
    cut()
    const second = await startOn(t, { ...openMemoryStore(), notes }, { now })
    await syncAll(second)
    assert.deepEqual(await rowIn(second), ['never', 'behind', 'unknown'])
    pass(100)
    heal()
    await syncAll(second)
    assert.deepEqual(await rowIn(second), ['current', 'applied', 'unknown'])
  })

  test('after another knows, like it, of the time before both in which none ran', async (t) => {
    const { now, pass } = createClock()
    const shared = openCuttable()
    const first = await startOn(t, shared.open().store, { now })
    await new ReportingCluster(first, 'one').settle()
    await first.stop()
    pass(86_400)
    const second = await startOn(t, shared.open().store, { now })
    await syncAll(second)
    pass(15)
    const third = await startOn(t, shared.open().store, { now })
    for (const service of [second, third]) assert.equal((await rowIn(service))[0], 'current')
    await third.stop()
    pass(3600)
    const fourth = await startOn(t, shared.open().store, { now })
    assert.equal((await rowIn(fourth))[0], 'current', 'both gaps count')
    pass(900)
    assert.equal((await rowIn(fourth))[0], 'offline')
  })
})

describe('a cluster that is purged', () => {
  const again = smallFleet().clusters[0] as object

  for (const [name, open] of Object.entries(STORES)) {
    test(`leaves no notes, and one that is made anew has none of its evidence (${name})`, async (t) => {
      const store = await open(t)
      const service = await startOn(t, store, {})
      for (const id of ['one', 'two']) await new ReportingCluster(service, id).settle()
      await sendEvent(service)
      await service.engine.fleet.refresh()
      await syncAll(service)
      await run(service, ['DELETE', '/clusters/one?purge=true'])
      await syncAll(service)
      const left = await notesIn(store)
      assert.deepEqual([...new Set(left.map(({ key }) => key.split(' ')[0]))], ['two'])
      await run(service, ['POST', '/clusters', { ...again }])
      assert.deepEqual(await rowIn(service), ['never', 'behind', 'unknown'])
      const { contact, operator_version, transitions } = await statusOf(service)
      assert.deepEqual([contact.last_seen, operator_version, transitions], [null, null, []])
    })
  }

  test('leaves none of what other processes write afterwards either, from the next hour on', async (t) => {
    const store = openMemoryStore()
    const service = await startOn(t, store, {})
    await new ReportingCluster(service, 'one').settle()
    await service.engine.fleet.sync()
    const late = (await notesIn(store)).map((note) => ({ ...note, time: '2030-01-01T00:00:00.000Z' }))
    await run(service, ['DELETE', '/clusters/one?purge=true'])
    await syncAll(service)
    for (const { kind, ...note } of late) await store.notes.record(kind, [note])
    await service.engine.fleet.tidy()
    assert.deepEqual(await notesIn(store), [])
  })

  test('differs from one that is deleted and restored, which is the same cluster', async (t) => {
    const service = await startOn(t, openMemoryStore(), {})
    await new ReportingCluster(service, 'one').settle()
    await run(service, ['DELETE', '/clusters/one'])
    await syncAll(service)
    assert.equal((await rowIn(service))[0], 'deleted')
    await run(service, ['POST', '/clusters', { ...again }])
    assert.equal((await rowIn(service))[0], 'current')
  })
})

describe('processes on one store', () => {
  /** A cluster that polls one and reports to the other is healthy on both. */
  async function checkShared(one: TestService, other: TestService): Promise<void> {
    const cluster = new ReportingCluster(one, 'one')
    await cluster.poll()
    await syncAll(one, other)
    assert.deepEqual(await rowIn(other), ['current', 'served', 'progressing'])
    await cluster.report({}, other)
    await syncAll(other, one)
    for (const service of [one, other])
      assert.deepEqual(await rowIn(service), ['current', 'applied', 'healthy'])
  }

  test('share what they hear on one SQLite file, read-only ones too', async (t) => {
    const path = join(temporaryFolder(t), 'fleet.db')
    const crud = await startOn(t, openSqliteStore({ path, write: true }), {})
    const reader = await startOn(t, openSqliteStore({ path, write: false }), { mode: 'read-only', fleet: {} })
    await checkShared(crud, reader)
    const second = await startOn(t, openSqliteStore({ path, write: true }), { fleet: {} })
    assert.deepEqual(await rowIn(second), ['current', 'applied', 'healthy'])
  })

  test('note repeated polls by their times alone, and know them all whoever was asked', async (t) => {
    const { now, pass } = createClock()
    const shared = openCuttable()
    const { store } = shared.open()
    const open = () => startOn(t, shared.open().store, { now, fleet: {} })
    const [one, other] = [await startOn(t, store, { now }), await open()]
    await new ReportingCluster(one, 'one').settle()
    await syncAll(one, other)
    const full = async () =>
      (await notesIn(store)).flatMap(({ kind, key, time }) => (kind === 'polls' ? [[key, time]] : []))
    const noted = await full()
    const servedBy = async (service: TestService) =>
      Object.values((await statusOf(service)).endpoints).map(({ served }) => served)
    const [first] = await servedBy(one)
    pass(300)
    await new ReportingCluster(one, 'one').poll()
    await syncAll(one, other)
    assert.deepEqual(await full(), noted)
    const again = await servedBy(one)
    assert.deepEqual(
      again.map((served) => [served?.since, Date.parse(served?.at ?? '')]),
      again.map(() => [first?.since, now().getTime()]),
    )
    assert.deepEqual(await servedBy(other), again)
    pass(300)
    await new ReportingCluster(other, 'one').poll(['rolebindings'])
    pass(1)
    await new ReportingCluster(one, 'one').poll(['namespaces'])
    // Of their two notes the second stays, until the first process sees what is missing there.
    await syncAll(other, one, other, one)
    const last = await servedBy(one)
    assert.deepEqual(
      last.map((served) => now().getTime() - Date.parse(served?.at ?? '')),
      [0, 301_000, 1000],
    )
    for (const service of [other, await open()]) assert.deepEqual(await servedBy(service), last)
  })

  test('share what they hear on PostgreSQL, read-only ones too', async (t) => {
    const url = await temporaryPostgres(t)
    const crud = await startOn(t, openPostgresStore({ url, write: true }), {})
    const reader = await startOn(t, openPostgresStore({ url, write: false }), {
      mode: 'read-only',
      fleet: {},
    })
    await checkShared(crud, reader)
  })
})

describe('a reader of the database', () => {
  async function startReader(t: TestContext, ...grants: string[]) {
    const url = await temporaryPostgres(t)
    const crud = await startOn(t, openPostgresStore({ url, write: true }), {})
    const name = `reader_${new URL(url).pathname.slice(1)}_${grants.length}`
    const [schema, role] = ['flux_resourceset', `"${name}"`]
    await runSql(
      url,
      `drop role if exists ${role}; create role ${role} login password 'secret';
       grant usage on schema ${schema} to ${role}; grant select on all tables in schema ${schema} to ${role};
       ${grants.map((grant) => `${grant} to ${role};`).join('')}`,
    )
    t.after(() => runSql(url, `drop owned by ${role}; drop role ${role}`).catch(() => {}))
    const asReader = Object.assign(new URL(url), { username: name, password: 'secret' }).href
    const logged: string[] = []
    const reader = await startOn(t, openPostgresStore({ url: asReader, write: false }), {
      mode: 'read-only',
      fleet: {},
      onStoreError: (error, doing) => logged.push(`${doing}: ${error.message}`),
    })
    await new ReportingCluster(reader, 'one').settle()
    await reader.engine.fleet.refresh()
    await syncAll(reader, crud)
    return { crud, reader, logged }
  }

  test('that may only select knows what it hears itself, tells nobody, and logs nothing', async (t) => {
    const { crud, reader, logged } = await startReader(t)
    assert.deepEqual(await rowIn(reader), ['current', 'applied', 'healthy'])
    assert.deepEqual(await rowIn(crud), ['never', 'behind', 'unknown'])
    assert.deepEqual((await statusOf(reader)).transitions, [])
    await reader.engine.fleet.tidy()
    await run(crud, ['DELETE', '/clusters/one?purge=true'])
    await reader.engine.catchUp()
    await syncAll(reader)
    assert.deepEqual(logged, [])
  })

  test('with the rights that the documentation grants tells the others', async (t) => {
    const tables = 'flux_resourceset.token_uses, flux_resourceset.notes'
    const { crud, reader, logged } = await startReader(t, `grant insert, update, delete on ${tables}`)
    assert.deepEqual(await rowIn(crud), await rowIn(reader))
    assert.deepEqual(logged, [])
  })
})

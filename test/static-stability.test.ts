import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openMemoryStore } from '../src/store/memory.ts'
import { openPostgresStore } from '../src/store/postgres/postgres.ts'
import { type Store, StoreError } from '../src/store/store.ts'
import { type PostgresServer, runSql, startPostgres } from './postgres-server.ts'
import {
  type Answer,
  failToStart,
  READ_TOKEN,
  type ServiceOptions,
  type ServiceProcess,
  spawnService,
  startService,
  type TestService,
  temporaryFolder,
  WRITE_TOKEN,
  waitFor,
} from './service.ts'
import { startProxy, type TcpProxy } from './tcp-proxy.ts'

const SEED_FILE = join(import.meta.dirname, '../data/seed.json')
const DEMO = '/api/v2/flux/clusters/demo-cluster-01.k8s.example.com'
const POLLS = ['platform-components', 'namespaces', 'rolebindings'].map((endpoint) => `${DEMO}/${endpoint}`)

let server: PostgresServer
before(async () => {
  server = await startPostgres()
})
after(() => server.stop())

interface Place {
  /** Straight to the database. */
  readonly url: string
  /** The same through the proxy. */
  readonly throughProxy: string
  readonly proxy: TcpProxy
}

async function openPlace(t: TestContext, user?: { name: string; password: string }): Promise<Place> {
  const url = await server.createDatabase()
  const proxy = await startProxy({ host: '127.0.0.1', port: server.port })
  t.after(() => proxy.close())
  const through = Object.assign(new URL(url), { port: String(proxy.port) })
  if (user) Object.assign(through, { username: user.name, password: user.password })
  return { url, throughProxy: through.href, proxy }
}

type Callable = Pick<ServiceProcess, 'call'>

/** Inside this process, which takes less time than one of its own. */
async function startHere(t: TestContext, options: ServiceOptions & { url?: string }): Promise<TestService> {
  const { url, mode = 'crud' } = options
  const store = url === undefined ? {} : { store: openPostgresStore({ url, write: mode === 'crud' }) }
  const fleet = JSON.parse(readFileSync(SEED_FILE, 'utf8'))
  const service = await startService({ fleet, ...store, ...options })
  let stopping: Promise<void> | undefined
  const stop = () => {
    stopping ??= service.stop()
    return stopping
  }
  t.after(stop)
  return { ...service, stop }
}

/** As a process. */
async function start(
  t: TestContext,
  API_MODE: 'crud' | 'read-only',
  DATABASE_URL: string,
  more: Record<string, string> = {},
): Promise<ServiceProcess> {
  const service = await spawnService({ DATABASE_URL, API_MODE, SEED_FILE, ...more })
  t.after(() => service.stop('SIGKILL'))
  return service
}

function poll(service: Callable, path = POLLS[0] as string, query = ''): Promise<Answer> {
  return service.call('GET', `${path}${query}`, { token: READ_TOKEN })
}

function ready(service: Callable): Promise<Answer> {
  return service.call('GET', '/ready', { token: null })
}

async function write(service: Callable, value: string): Promise<number> {
  const body = { replicaCount: value }
  const answer = await service.call('PATCH', '/clusters/demo-cluster-01/patches/podinfo', { body })
  assert.equal(answer.status, 200, answer.text)
  return Number(answer.headers['x-revision'])
}

async function metric(service: Callable, name: string): Promise<number> {
  const { text } = await service.call('GET', '/metrics', { token: null })
  const [, value] = new RegExp(`^flux_resourceset_${name} (\\S+)$`, 'm').exec(text) ?? []
  return Number(value ?? assert.fail(`no ${name} in the metrics`))
}

function isDegraded({ status, body }: Answer): boolean {
  return status === 200 && body.status === 'degraded'
}

async function hasFailed(service: Callable): Promise<void> {
  await waitFor('the service knows that the database is away', async () => {
    const answer = await ready(service)
    return answer.status === 503 || isDegraded(answer)
  })
}

async function reaches(service: Callable, revision: number): Promise<void> {
  await waitFor(`revision ${revision} is served`, async () => {
    const { status, headers } = await poll(service)
    return status === 200 && Number(headers['x-revision']) === revision
  })
}

/** Polls without a pause, until told to stop; answers how often that was, once every answer was as it should be. */
function pollOn(t: TestContext, service: Callable, isRight: (answer: Answer, path: string) => boolean) {
  let stopped = false
  t.after(() => {
    stopped = true
  })
  const wrong: string[] = []
  let count = 0
  const polling = (async () => {
    while (!stopped) {
      const path = POLLS[count++ % POLLS.length] as string
      const answer = await poll(service, path).catch((error: unknown) => String(error))
      if (typeof answer === 'string') wrong.push(answer)
      else if (answer.status !== 200 || !isRight(answer, path)) wrong.push(`${answer.status} ${answer.text}`)
      await sleep(10)
    }
  })()
  return async () => {
    stopped = true
    await polling
    assert.deepEqual(wrong, [])
    return count
  }
}

async function answersTo(service: Callable): Promise<Map<string, string>> {
  const answers = new Map<string, string>()
  for (const path of POLLS) {
    const { status, text, headers } = await poll(service, path)
    assert.equal(status, 200)
    answers.set(path, `${headers.etag} ${text}`)
  }
  return answers
}

function sameAs(known: ReadonlyMap<string, string>) {
  return ({ headers, text }: Answer, path: string) => `${headers.etag} ${text}` === known.get(path)
}

async function checkRefusal(call: Promise<Answer>): Promise<void> {
  const { status, headers, body, text } = await call
  assert.equal(status, 503, text)
  assert.equal(body.error, 'unavailable')
  assert.match(String(headers['retry-after']), /^\d+$/)
}

/** Reads beside the log are answered from memory. */
async function checkAway(crud: ServiceProcess, readOnly: ServiceProcess): Promise<void> {
  await Promise.all([crud, readOnly].map(hasFailed))
  await checkRefusal(ready(crud))
  for (const body of [{ id: 'late' }, { id: 'later' }])
    await checkRefusal(crud.call('POST', '/namespaces', { body }))
  await checkRefusal(crud.call('GET', '/revisions'))
  await checkRefusal(crud.call('GET', '/clusters/demo-cluster-01/history'))
  assert.equal((await crud.call('GET', '/clusters/demo-cluster-01')).status, 200)
  for (const service of [crud, readOnly]) {
    assert.equal((await service.call('GET', '/health', { token: null })).status, 200)
    assert.equal(await metric(service, 'store_up'), 0)
  }
  const first = await ready(readOnly)
  assert.equal(first.body.mode, 'read-only')
  assert.equal(first.body.revision, 1)
  assert.match(first.body.reason, /database/)
  const age = await metric(readOnly, 'state_age_seconds')
  assert.ok(age > 0)
  await waitFor('the age grows', async () => {
    const { body } = await ready(readOnly)
    return body.age_seconds > first.body.age_seconds && (await metric(readOnly, 'state_age_seconds')) > age
  })
}

/** Says once that it is away, and answers nothing from then on, until the test is over. */
function vanishingStore(t: TestContext): { store: Store; vanish(): void } {
  // One that others could write to, as far as anybody knows.
  const { isPrivate: _, ...store } = openMemoryStore()
  const away = new StoreError('the database left', { isTransient: true })
  const over = Promise.withResolvers<never>()
  over.promise.catch(() => {})
  t.after(() => over.reject(away))
  let looks = 0
  let isGone = false
  const answer = async <T>(read: () => Promise<T>): Promise<T> => {
    if (!isGone) return read()
    if (looks++ === 0) throw away
    return over.promise
  }
  return {
    store: {
      ...store,
      head: () => answer(store.head),
      commit: (base, ...revisions) => answer(() => store.commit(base, ...revisions)),
      history: (query) => answer(() => store.history(query)),
    },
    vanish() {
      isGone = true
    },
  }
}

/** Starts a read-only service with a snapshot, and stops it: the snapshot is there. */
async function saveSnapshot(t: TestContext, url: string): Promise<string> {
  const SNAPSHOT_DIR = temporaryFolder(t)
  const service = await start(t, 'read-only', url, { SNAPSHOT_DIR })
  assert.equal(await service.stop(), 0)
  assert.deepEqual(readdirSync(SNAPSHOT_DIR), ['state.snapshot'])
  return SNAPSHOT_DIR
}

const ASKED = [...POLLS, '/api/v2/flux/clusters', `${DEMO}/nothing`, '/whoami', '/clusters', '/nothing']

/** Whatever is asked for, nobody is told that there is nothing. */
async function checkNothingYet(service: ServiceProcess): Promise<void> {
  for (const path of ASKED) {
    for (const token of [READ_TOKEN, 'wrong']) await checkRefusal(service.call('GET', path, { token }))
  }
  await checkRefusal(service.call('POST', '/namespaces', { body: { id: 'early' } }))
  await checkRefusal(ready(service))
  assert.equal((await service.call('GET', '/health', { token: null })).status, 200)
  assert.equal(await metric(service, 'store_up'), 0)
}

async function disconnect(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  await server.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`,
  )
}

/** The database as it is now, under another name; nobody may use it meanwhile. */
async function copyDatabase(url: string): Promise<string> {
  const name = new URL(url).pathname.slice(1)
  await disconnect(url)
  await server.query(`create database ${name}_copy template ${name}`)
  return Object.assign(new URL(url), { pathname: `${name}_copy` }).href
}

/** Puts the copy in the place of the database. */
async function replaceDatabase(url: string, copy: string): Promise<void> {
  const [name, other] = [url, copy].map((each) => new URL(each).pathname.slice(1))
  for (const each of [url, copy]) await disconnect(each)
  await server.query(`drop database ${name} with (force)`)
  await server.query(`alter database ${other} rename to ${name}`)
}

/** Writes with a service of its own, which is gone then. */
async function writeAlone(t: TestContext, url: string, ...values: string[]): Promise<void> {
  const service = await startHere(t, { url })
  for (const value of values) await write(service, value)
  await service.stop()
}

async function checkRefusesHistory(service: ServiceProcess, why: RegExp): Promise<void> {
  await waitFor('it refuses what the database holds', async () => {
    const { body } = await ready(service)
    return why.test(`${body.reason} ${body.message}`)
  })
  assert.equal(await metric(service, 'store_up'), 0)
  await waitFor('it is in the log', () => why.test(service.output()))
}

// Most of the time somebody is waited for.
describe('without its database', { concurrency: 3 }, () => {
  test('a database that is killed under its services stops no poll, and they go on with it when it is back', async (t) => {
    const own = await startPostgres({ durable: true })
    t.after(() => own.stop())
    const url = await own.createDatabase()
    const crud = await start(t, 'crud', url)
    const readOnly = await start(t, 'read-only', url)
    const known = await answersTo(crud)
    assert.deepEqual(await answersTo(readOnly), known)
    const stops = [pollOn(t, crud, sameAs(known)), pollOn(t, readOnly, sameAs(known))]
    await own.kill()
    await checkAway(crud, readOnly)
    await own.start()
    for (const service of [crud, readOnly])
      await waitFor('the service is ready again', async () => (await ready(service)).body.status === 'ready')
    for (const stop of stops) assert.ok((await stop()) > 0)
    await reaches(readOnly, await write(crud, 'after'))
    assert.deepEqual(await answersTo(readOnly), await answersTo(crud))
    for (const service of [crud, readOnly]) {
      assert.equal(await metric(service, 'store_up'), 1)
      assert.equal(await metric(service, 'state_age_seconds'), 0)
      assert.equal(await metric(service, 'revision'), 2)
      assert.equal(await metric(service, 'store_revision'), 2)
      await waitFor('it is in the log', () => /"doing":"follow"/.test(service.output()))
      await waitFor('it is in the log', () => /store connection restored/.test(service.output()))
    }
  })

  test('nobody waits for a store that is known to be away', async (t) => {
    const { store, vanish } = vanishingStore(t)
    const service = await startHere(t, { store, fleet: {} })
    vanish()
    await waitFor('the store is missed', () => service.engine.status.problem !== undefined)
    for (let i = 0; i < 20; i++) {
      const answer = await service.call('POST', '/namespaces', { body: { id: `n${i}` } })
      assert.equal(answer.status, 503)
      assert.match(answer.body.message, /the database left/)
      assert.equal((await service.call('GET', '/revisions')).status, 503)
    }
    assert.equal((await service.call('GET', '/health')).status, 200)
    assert.equal((await service.call('GET', '/ready')).status, 503)
  })

  test('a read-only service says that it is not ready once what it serves is older than MAX_STALENESS', async (t) => {
    const { url, throughProxy, proxy } = await openPlace(t)
    const crud = await startHere(t, { url })
    const readOnly = await start(t, 'read-only', throughProxy, { MAX_STALENESS: '2s' })
    const known = await answersTo(readOnly)
    const stop = pollOn(t, readOnly, sameAs(known))
    proxy.cut()
    await waitFor('it is not ready', async () => (await ready(readOnly)).status === 503)
    const { message } = (await ready(readOnly)).body
    // It is degraded until then; on a busy machine nobody may ask in these two seconds.
    const [, age] = /what is served is (\d+) s old: .*database/.exec(message) ?? assert.fail(message)
    assert.ok(Number(age) >= 2, message)
    proxy.heal()
    await waitFor('it is ready', async () => (await ready(readOnly)).body.status === 'ready')
    await stop()
    await reaches(readOnly, await write(crud, 'after'))
  })

  describe('a service that starts while the database is away', () => {
    test('serves what it has saved, and follows the database when that is back', async (t) => {
      const { url, throughProxy, proxy } = await openPlace(t)
      const crud = await startHere(t, { url })
      const SNAPSHOT_DIR = await saveSnapshot(t, throughProxy)
      const known = await answersTo(crud)
      proxy.cut()
      const services = await Promise.all(
        (['read-only', 'crud'] as const).map((mode) => start(t, mode, throughProxy, { SNAPSHOT_DIR })),
      )
      const [readOnly, other] = services as [ServiceProcess, ServiceProcess]
      for (const service of services) assert.deepEqual(await answersTo(service), known)
      assert.ok(isDegraded(await ready(readOnly)))
      await checkRefusal(ready(other))
      await checkRefusal(other.call('POST', '/namespaces', { body: { id: 'early' } }))
      const revision = await write(crud, 'meanwhile')
      for (const service of services) {
        assert.equal((await poll(service)).headers['x-revision'], '1')
        assert.equal(await metric(service, 'store_up'), 0)
      }
      proxy.heal()
      for (const service of services) await reaches(service, revision)
      for (const service of services) assert.deepEqual(await answersTo(service), await answersTo(crud))
      await reaches(readOnly, await write(other, 'later'))
    })

    test('serves nothing from a damaged snapshot, says so, and loads when the database is back', async (t) => {
      const { url, throughProxy, proxy } = await openPlace(t)
      const crud = await startHere(t, { url })
      const SNAPSHOT_DIR = await saveSnapshot(t, throughProxy)
      const file = join(SNAPSHOT_DIR, 'state.snapshot')
      const bytes = readFileSync(file)
      const middle = bytes.length >> 1
      for (let i = middle; i < middle + 8; i++) bytes[i] = ~(bytes[i] as number)
      writeFileSync(file, bytes)
      proxy.cut()
      const service = await start(t, 'read-only', throughProxy, { SNAPSHOT_DIR })
      await checkNothingYet(service)
      await waitFor('it is in the log', () =>
        /the snapshot .*state\.snapshot cannot be used/.test(service.output()),
      )
      proxy.heal()
      await reaches(service, 1)
      assert.deepEqual(await answersTo(service), await answersTo(crud))
      assert.equal((await ready(service)).body.status, 'ready')
    })

    for (const mode of ['read-only', 'crud'] as const) {
      test(`serves nothing without a snapshot, as ${mode}, and loads when the database is back`, async (t) => {
        const { url, throughProxy, proxy } = await openPlace(t)
        const crud = await startHere(t, { url })
        proxy.cut()
        const service = await start(t, mode, throughProxy)
        const statuses = new Set<number>()
        await checkNothingYet(service)
        const saysReady = () => service.output().includes('"msg":"ready"')
        assert.ok(!saysReady())
        proxy.heal()
        await waitFor('it serves', async () => {
          const { status } = await poll(service)
          statuses.add(status)
          return status === 200
        })
        assert.ok(!statuses.has(404))
        await waitFor('it says so', saysReady)
        assert.deepEqual(await answersTo(service), await answersTo(crud))
      })
    }
  })

  test('a snapshot that is ahead of a database from a backup is served on, and the older state is refused', async (t) => {
    const { url, throughProxy, proxy } = await openPlace(t)
    await writeAlone(t, url, 'kept')
    const backup = await copyDatabase(url)
    await writeAlone(t, url, 'lost', 'lost too')
    const SNAPSHOT_DIR = await saveSnapshot(t, throughProxy)
    proxy.cut()
    const service = await start(t, 'read-only', throughProxy, { SNAPSHOT_DIR })
    const known = await answersTo(service)
    const stop = pollOn(t, service, sameAs(known))
    await replaceDatabase(url, backup)
    proxy.heal()
    await checkRefusesHistory(service, /it was set back/)
    assert.ok(isDegraded(await ready(service)))
    assert.equal(await metric(service, 'revision'), 4)
    assert.equal(await metric(service, 'store_revision'), 2)
    await writeAlone(t, url, 'other', 'other too', 'and one more')
    await waitFor('it looks further', async () =>
      /another revision 4/.test((await ready(service)).body.reason),
    )
    assert.equal(await metric(service, 'store_revision'), 5)
    assert.ok((await stop()) > 0)
    assert.equal(await service.stop(), 0)
    const restarted = await start(t, 'read-only', throughProxy, { SNAPSHOT_DIR })
    assert.equal(
      (await poll(restarted)).headers['x-revision'],
      '5',
      'a restart takes what the database holds',
    )
  })

  test('running services refuse another history, of the same length or longer, and serve what they have', async (t) => {
    const { url, throughProxy, proxy } = await openPlace(t)
    await writeAlone(t, url, 'common')
    const fork = await copyDatabase(url)
    await writeAlone(t, fork, 'theirs')
    await writeAlone(t, url, 'ours')
    const crud = await start(t, 'crud', throughProxy)
    const readOnly = await start(t, 'read-only', throughProxy)
    const known = await answersTo(crud)
    const stops = [crud, readOnly].map((service) => pollOn(t, service, sameAs(known)))
    proxy.cut()
    await replaceDatabase(url, fork)
    proxy.heal()
    for (const service of [crud, readOnly]) await checkRefusesHistory(service, /another revision 3/)
    await checkRefusal(ready(crud))
    assert.ok(isDegraded(await ready(readOnly)))
    await checkRefusal(crud.call('POST', '/namespaces', { body: { id: 'mixed' } }))
    await checkRefusal(crud.call('GET', '/revisions'))
    await writeAlone(t, url, 'theirs too')
    for (const service of [crud, readOnly]) await checkRefusesHistory(service, /another revision 3/)
    await checkRefusal(crud.call('POST', '/namespaces', { body: { id: 'mixed' } }))
    for (const stop of stops) assert.ok((await stop()) > 0)
    const [row] = await runSql(url, 'select revision from flux_resourceset.head')
    assert.equal(Number(row?.revision), 4, 'nothing was written onto the other history')
  })

  describe('min_revision', () => {
    const LISTS = ['/clusters', '/clusters/demo-cluster-01', '/namespaces', '/revisions', '/log', '/whoami']

    test('lets reads and polls wait until this process is there', async (t) => {
      const { url, throughProxy, proxy } = await openPlace(t)
      const writer = await startHere(t, { url })
      const reader = await startHere(t, { url: throughProxy })
      proxy.delay(1)
      for (const path of [...POLLS, '/api/v2/flux/clusters', ...LISTS]) {
        const next = (await write(writer, `for ${path}`)) + 1
        const waiting = reader.call('GET', `${path}?min_revision=${next}`)
        assert.equal(await write(writer, `more for ${path}`), next)
        const { status, headers, text } = await waiting
        assert.equal(status, 200, text)
        assert.equal(headers['x-revision'], String(next))
      }
      const { body } = await poll(reader, POLLS[0], '?min_revision=1')
      const podinfo = body.inputs.find(({ id }: { id: string }) => id === 'podinfo')
      assert.equal(podinfo.patches.replicaCount, 'more for /whoami')
      const written = await writer.call('POST', '/namespaces?min_revision=1', { body: { id: 'n' } })
      assert.equal(written.status, 400, 'a write waits for nothing')
    })

    test('is 503 when that takes too long, and 400 when it is no revision', async (t) => {
      const { url } = await openPlace(t)
      const service = await startHere(t, { url })
      const paths = [POLLS[0] as string, '/api/v2/flux/clusters', '/namespaces', '/log']
      const late = [...paths, '/watch'].map((path) => service.call('GET', `${path}?min_revision=2`))
      for (const path of paths) {
        for (const bad of [
          '',
          '-1',
          'x',
          '1.5',
          '1e3',
          '1000000000000000',
          '99999999999999999',
          '%31%00',
          '1&min_revision=2',
        ]) {
          const answer = await service.call('GET', `${path}?min_revision=${bad}`)
          assert.equal(answer.status, 400, `${path}?min_revision=${bad}: ${answer.text}`)
          assert.equal(answer.body.error, 'validation_error')
        }
        for (const good of ['0', '1', '%31', '01'])
          assert.equal((await service.call('GET', `${path}?min_revision=${good}`)).status, 200, path)
      }
      for (const answer of await Promise.all(late)) {
        assert.equal(answer.status, 503)
        assert.equal(answer.headers['x-revision'], '1')
        assert.match(String(answer.headers['retry-after']), /^\d+$/)
        assert.match(answer.body.message, /at revision 1, and not at 2 yet/)
      }
    })
  })

  test('every answer says which revision it is of, whatever it is', async (t) => {
    const { throughProxy, proxy } = await openPlace(t)
    const service = await startHere(t, { url: throughProxy })
    const body = { id: 'n' }
    const calls: [number, string, string, object?][] = [
      [200, 'GET', POLLS[0] as string],
      [404, 'GET', '/api/v2/flux/clusters/nobody.example.com/namespaces'],
      [404, 'GET', `${DEMO}/nothing`],
      [401, 'GET', POLLS[0] as string, { token: 'wrong' }],
      [200, 'GET', '/health'],
      [200, 'GET', '/ready'],
      [200, 'GET', '/metrics'],
      [200, 'GET', '/openapi.json'],
      [200, 'GET', '/clusters'],
      [404, 'GET', '/clusters/nobody'],
      [404, 'GET', '/nothing'],
      [405, 'DELETE', '/clusters'],
      [400, 'GET', '/clusters?wrong=1'],
      [400, 'GET', '/clusters/%zz'],
      [401, 'GET', '/clusters', { token: null }],
      [403, 'POST', '/namespaces', { token: READ_TOKEN, body }],
      [400, 'POST', '/namespaces', { body: [] }],
      [415, 'POST', '/namespaces', { raw: 'x', headers: { 'content-type': 'text/plain' } }],
      [412, 'PATCH', '/clusters/demo-cluster-01', { body: {}, headers: { 'if-match': '"other"' } }],
    ]
    for (const [status, method, path, options] of calls) {
      const answer = await service.call(method, path, options)
      assert.equal(answer.status, status, `${method} ${path}: ${answer.text}`)
      assert.equal(answer.headers['x-revision'], '1', `${method} ${path}: ${status}`)
    }
    proxy.cut()
    await hasFailed(service)
    const refused: [string, string, object?][] = [
      ['GET', '/ready'],
      ['GET', '/revisions'],
      ['POST', '/namespaces', { body }],
    ]
    for (const [method, path, options] of refused) {
      const answer = await service.call(method, path, options)
      assert.equal(answer.status, 503)
      assert.equal(answer.headers['x-revision'], '1', `${method} ${path}`)
    }
  })

  describe('secrets are told to nobody', () => {
    const PASSWORD = 'Recognisable-Passw0rd'
    const user = { name: 'careful', password: PASSWORD }
    const setPassword = (password: string) =>
      server.query(`alter role ${user.name} password '${password}'`).then(() => {})

    before(async () => {
      await server.query(`create role ${user.name} superuser login password '${PASSWORD}'`)
    })

    async function everythingSaid(service: ServiceProcess): Promise<string> {
      const answers = await Promise.all([
        ready(service),
        service.call('GET', '/metrics', { token: null }),
        service.call('POST', '/namespaces', { body: { id: 'n' } }),
        service.call('GET', '/revisions'),
        poll(service),
      ])
      return [service.output(), ...answers.map(({ text, headers }) => text + JSON.stringify(headers))].join(
        '\n',
      )
    }

    async function storedSecrets(url: string): Promise<string[]> {
      const rows = await runSql(url, `select document from flux_resourceset.documents where type = 'tokens'`)
      return rows.map(({ document }) => JSON.parse(String(document)).secrets[0].hash)
    }

    test('when the database refuses the password of a running service, is away, or breaks', async (t) => {
      const { url, throughProxy, proxy } = await openPlace(t, user)
      const service = await start(t, 'crud', throughProxy)
      const made = await service.call('POST', '/tokens', { body: { name: 'ci', role: 'poller' } })
      assert.equal(made.status, 201, made.text)
      const secrets = [PASSWORD, encodeURIComponent(PASSWORD), WRITE_TOKEN, made.body.secret]
      secrets.push(...(await storedSecrets(url)))
      assert.ok(secrets.every((secret) => typeof secret === 'string' && secret.length > 10))
      const check = async (when: string) => {
        const said = await everythingSaid(service)
        for (const secret of secrets) assert.ok(!said.includes(secret), `${when}: ${secret}`)
        return said
      }
      proxy.cut()
      await hasFailed(service)
      await check('away')
      await setPassword('Another-Passw0rd')
      t.after(() => setPassword(PASSWORD))
      proxy.heal()
      await waitFor('the password is refused', async () =>
        /refuses the password/.test((await ready(service)).body.message),
      )
      await check('refused')
      await setPassword(PASSWORD)
      await waitFor('it is ready', async () => (await ready(service)).status === 200)
      await runSql(url, 'alter table flux_resourceset.documents add check (length(document) < 10) not valid')
      await checkRefusal(service.call('POST', '/tokens/ci/rotate', { body: {} }))
      assert.match(await check('broken'), /the database failed/)
    })

    test('when a service cannot start with its password', async (t) => {
      const { throughProxy } = await openPlace(t, { ...user, password: `${PASSWORD}-wrong` })
      const env = { AUTH_TOKEN: READ_TOKEN, LISTEN_ADDR: '127.0.0.1:0' }
      for (const API_MODE of ['crud', 'read-only']) {
        const { code, stderr } = await failToStart({ ...env, API_MODE, DATABASE_URL: throughProxy })
        assert.equal(code, 2, stderr)
        assert.match(stderr, /^flux-resourceset: the database refuses the password: check DATABASE_URL/)
        assert.ok(!stderr.includes(PASSWORD))
      }
    })
  })
})

import assert from 'node:assert/strict'
import { cpSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { type PostgresServer, runSql, startPostgres } from '../postgres-server.ts'
import { type ServiceProcess, spawnService, temporaryFolder, waitFor } from '../service.ts'
import {
  checkEqual,
  checkLog,
  isReady,
  type Pollers,
  SEED_FILE,
  startPollers,
  startWriters,
  write,
} from './proven-load.ts'

const ROOT = join(import.meta.dirname, '../..')

let server: PostgresServer
before(async () => {
  server = await startPostgres()
})
after(() => server.stop())

const MIGRATION = /^postgres-\d+\.sql$/
/** The version of the schema that this program knows. */
const CURRENT = readdirSync(join(ROOT, 'src/store/migrations')).filter((name) => MIGRATION.test(name)).length

/** The program as it may be one day: it brings one more migration, which older ones can go on with. */
function writeNewProgram(t: TestContext): string {
  const folder = temporaryFolder(t)
  for (const name of ['src', 'resources', 'deploy', 'package.json'])
    cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const name = `postgres-${String(CURRENT + 1).padStart(3, '0')}.sql`
  const sql = `-- Works with programs from version: ${CURRENT}
    ALTER TABLE flux_resourceset.revisions ADD COLUMN reviewed_by text;
    CREATE INDEX revisions_by_actor ON flux_resourceset.revisions (actor);
    CREATE TABLE flux_resourceset.reviews (revision bigint PRIMARY KEY);`
  writeFileSync(join(folder, 'src/store/migrations', name), sql)
  return join(folder, 'src/main.ts')
}

async function versionsIn(url: string): Promise<number[]> {
  const rows = await runSql(url, 'select version from flux_resourceset.migrations order by version')
  return rows.map(({ version }) => Number(version))
}

interface Running {
  readonly service: ServiceProcess
  readonly pollers: Pollers
}

test('old programs are replaced by new ones, one by one and under load, without a failed poll or a lost write', async (t) => {
  const main = writeNewProgram(t)
  const url = await server.createDatabase()
  const running: Running[] = []
  const settings = (mode: string) => ({ DATABASE_URL: url, SEED_FILE, API_MODE: mode })

  async function run(spawning: Promise<ServiceProcess>): Promise<Running> {
    const service = await spawning
    t.after(() => service.stop('SIGKILL'))
    return { service, pollers: startPollers(t, service) }
  }
  const runOld = (mode: string) => run(spawnService(settings(mode)))
  const runNew = (mode: string) => run(spawnService(settings(mode), main))

  /** Starts the new one first; the old one is polled until it is told to stop, as by a Service of Kubernetes. */
  async function replace(i: number, spawning: Promise<Running>): Promise<void> {
    const next = await spawning
    await waitFor('the new one is ready', () => isReady(next.service))
    const old = running[i] as Running
    running[i] = next
    await old.pollers.stop()
    assert.equal(await old.service.stop(), 0, old.service.output())
  }

  for (const mode of ['crud', 'crud', 'read-only']) running.push(await runOld(mode))
  assert.equal((await versionsIn(url)).length, CURRENT)
  const writers = startWriters(t, () => running.slice(0, 2).map(({ service }) => service), 4)
  const more = async () => {
    const before = writers.acknowledged
    await waitFor('writes go on', () => writers.acknowledged > before + 20)
  }
  await more()
  await replace(0, runNew('crud'))
  assert.equal(
    (await versionsIn(url)).length,
    CURRENT + 1,
    'the new program has brought the schema up to date',
  )
  await more()
  await replace(1, runOld('crud'))
  await more()
  await replace(2, runOld('read-only'))
  await replace(1, runNew('crud'))
  await replace(2, runNew('read-only'))
  await more()
  await replace(0, runOld('crud'))
  await more()
  const services = running.map(({ service }) => service)
  await writers.stop()
  for (const { pollers } of running) await pollers.stop()
  await writers.check(url)
  await checkEqual(services, url)
  for (const service of services.slice(0, 2)) await checkLog(service)
  t.diagnostic(`${writers.acknowledged} writes acknowledged, ${writers.unknown} unknown`)
})

test('a new read-only program waits for the schema, and serves once a new one that writes has made it', async (t) => {
  const main = writeNewProgram(t)
  const url = await server.createDatabase()
  const start = async (spawning: Promise<ServiceProcess>): Promise<ServiceProcess> => {
    const service = await spawning
    t.after(() => service.stop('SIGKILL'))
    return service
  }
  const old = await start(spawnService({ DATABASE_URL: url, SEED_FILE, API_MODE: 'crud' }))
  const early = await start(spawnService({ DATABASE_URL: url, API_MODE: 'read-only' }, main))
  const waiting = await early.call('GET', '/ready', { token: null })
  assert.equal(waiting.status, 503)
  assert.match(waiting.body.message, new RegExp(`the schema of the database is version ${CURRENT}`))
  assert.equal((await early.call('GET', '/api/v2/flux/clusters')).status, 503)
  assert.equal((await versionsIn(url)).length, CURRENT, 'a program that reads changes nothing')
  const crud = await start(spawnService({ DATABASE_URL: url, API_MODE: 'crud' }, main))
  await waitFor('it serves', () => isReady(early))
  await checkEqual([old, early, crud], url)
})

test('a database of the first version is brought up to date with all that it holds', async (t) => {
  const url = await server.createDatabase()
  const settings = { DATABASE_URL: url, SEED_FILE, API_MODE: 'crud' }
  const first = await spawnService(settings)
  t.after(() => first.stop('SIGKILL'))
  const revision = await write(first, 'kept')
  const { text } = await first.call('GET', '/revisions')
  assert.equal(await first.stop(), 0)
  await runSql(
    url,
    'drop table flux_resourceset.leases, flux_resourceset.notes; delete from flux_resourceset.migrations where version > 1',
  )
  const second = await spawnService(settings)
  t.after(() => second.stop('SIGKILL'))
  assert.equal((await versionsIn(url)).length, CURRENT)
  assert.equal((await second.call('GET', '/revisions')).text, text)
  assert.equal(await write(second, 'after'), revision + 1)
  await checkLog(second)
})

// Programs of before rollouts, and a database where something is staged: they must not answer beside newer ones.
import assert from 'node:assert/strict'
import { cpSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { runSql, temporaryPostgres } from './postgres-server.ts'
import { type ServiceProcess, smallFleet, spawnService, temporaryFolder, waitFor } from './service.ts'

const ROOT = join(import.meta.dirname, '..')
/** What came with rollouts; a program without them is one that does not know of these. */
const MIGRATIONS = ['postgres-005.sql', 'sqlite-007.sql']
const CLIENT = 'src/store/postgres/postgres-client.ts'

/** The program as it was, as far as the database can tell; or one that cannot be told by its name. */
function writeEarlierProgram(t: TestContext, name = 'flux-resourceset'): string {
  const folder = temporaryFolder(t)
  for (const part of ['src', 'resources', 'deploy', 'package.json'])
    cpSync(join(ROOT, part), join(folder, part), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  for (const migration of MIGRATIONS) rmSync(join(folder, 'src/store/migrations', migration))
  const client = readFileSync(join(folder, CLIENT), 'utf8')
  const renamed = client.replace(/(APPLICATION_NAME = )'.*'/, `$1'${name}'`)
  assert.notEqual(renamed, client)
  writeFileSync(join(folder, CLIENT), renamed)
  return join(folder, 'src/main.ts')
}

function starting(t: TestContext, DATABASE_URL: string) {
  const seed = join(temporaryFolder(t), 'seed.json')
  writeFileSync(seed, JSON.stringify(smallFleet()))
  return async (main?: string): Promise<ServiceProcess> => {
    const service = await spawnService({ DATABASE_URL, SEED_FILE: seed, API_MODE: 'crud' }, main)
    t.after(() => service.stop('SIGKILL'))
    return service
  }
}

async function ready(service: ServiceProcess): Promise<{ status: number; message: string }> {
  const { status, body } = await service.call('GET', '/ready', { token: null })
  return { status, message: body.message ?? '' }
}

const ROLLOUT = {
  operations: [{ op: 'patch', type: 'platform_components', id: 'a', patch: { oci_tag: 'v9' } }],
  rollout: { waves: [{ name: 'all', rest: true }] },
}
const HOLD = { reason: 'is being repaired' }

test('no rollout and no hold begins while an earlier program is connected, and all else goes on', async (t) => {
  const start = starting(t, await temporaryPostgres(t))
  const earlier = await start(writeEarlierProgram(t))
  const service = await start()
  for (const answer of [
    await service.call('POST', '/batch', { body: ROLLOUT }),
    await service.call('PUT', '/holds/one', { body: HOLD }),
  ]) {
    assert.equal(answer.status, 503, answer.text)
    assert.match(
      answer.body.message,
      /a program of an earlier version uses the database too.*upgrade every process first/,
    )
  }
  const { headers } = await service.call('PATCH', '/clusters/one', { body: { labels: { a: 'b' } } })
  await waitFor('the earlier one has what was written', async () => {
    const { headers: seen } = await earlier.call('GET', '/clusters/one')
    return seen['x-revision'] === headers['x-revision']
  })
  assert.equal((await ready(earlier)).status, 200)
  assert.equal((await service.call('GET', '/rollouts')).text, '[]')
  assert.equal(await earlier.stop(), 0)
  const started = await service.call('POST', '/batch', { body: ROLLOUT })
  assert.equal(started.status, 202, started.text)
})

test('while something is staged, earlier programs are not ready and do not start; they do again when it has ended', async (t) => {
  const url = await temporaryPostgres(t)
  const start = starting(t, url)
  const main = writeEarlierProgram(t, 'unnoticed')
  const running = await start(main)
  const service = await start()
  const started = await service.call('POST', '/batch', { body: ROLLOUT })
  assert.equal(started.status, 202, started.text)
  await waitFor('it is not ready', async () => (await ready(running)).status === 503)
  assert.match(
    (await ready(running)).message,
    /needs a program that knows 5 or more, and this one knows 4: upgrade the program/,
  )
  await assert.rejects(start(main), /upgrade the program/)
  assert.equal((await ready(service)).status, 200)
  const held = await service.call('PUT', '/holds/one', { body: HOLD })
  assert.ok(held.status < 300, held.text)
  const { id } = started.body.rollout
  assert.equal((await service.call('POST', `/rollouts/${id}/abort`, { body: {} })).status, 200)
  await assert.rejects(start(main), /upgrade the program/)
  assert.equal((await service.call('DELETE', '/holds/one')).status, 200)
  const [row] = await runSql(
    url,
    'select works_from from flux_resourceset.migrations order by version desc limit 1',
  )
  assert.equal(row?.works_from, 1)
  assert.equal((await ready(await start(main))).status, 200)
  await waitFor('so is the one that was running', async () => (await ready(running)).status === 200)
})

test('earlier programs refuse a SQLite file and a copy of the log, whatever is in them', async (t) => {
  const folder = temporaryFolder(t)
  const start = starting(t, `sqlite://${join(folder, 'fleet.db')}`)
  const service = await start()
  assert.equal(
    (await service.call('GET', '/log?since=0')).text.slice(0, 50),
    '{"format":"flux-resourceset-log","version":2,"sinc',
  )
  assert.equal(await service.stop(), 0)
  await assert.rejects(
    start(writeEarlierProgram(t)),
    /its schema is version 7, newer than the 6 that this program knows/,
  )
})

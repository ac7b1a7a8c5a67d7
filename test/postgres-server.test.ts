import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import pg from 'pg'
import { runSql, startPostgres, temporaryPostgres } from './postgres-server.ts'
import { waitFor } from './service.ts'

test('every database is empty and of its own', async (t) => {
  const [one, other] = [await temporaryPostgres(t), await temporaryPostgres(t)]
  await runSql(one, `create table kept (name text); insert into kept values ('ü')`)
  assert.deepEqual(await runSql(one, 'select name from kept'), [{ name: 'ü' }])
  assert.deepEqual(await runSql(other, `select to_regclass('kept') as found`), [{ found: null }])
})

test('a server asks for the password', async (t) => {
  const url = Object.assign(new URL(await temporaryPostgres(t)), { password: 'wrong' }).href
  await assert.rejects(runSql(url, 'select 1'), { code: '28P01' })
})

test('a killed server has what was committed once it starts again, on the same port', async (t) => {
  const server = await startPostgres({ durable: true })
  t.after(() => server.stop())
  assert.deepEqual(await server.query('show fsync'), [{ fsync: 'on' }])
  const url = await server.createDatabase()
  await runSql(url, 'create table kept (n int); insert into kept values (1)')
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  await client.query('begin; insert into kept values (2)')

  const ended = new Promise((resolve) => client.once('end', resolve))
  await server.kill()
  await ended
  await assert.rejects(runSql(url, 'select 1'), { code: 'ECONNREFUSED' })

  await server.start()
  assert.deepEqual(await runSql(url, 'select n from kept'), [{ n: 1 }])
  await server.stop()
  await assert.rejects(runSql(url, 'select 1'), { code: 'ECONNREFUSED' })
})

test('a paused server keeps connections and answers once it goes on', async (t) => {
  const server = await startPostgres({ settings: { application_name: "it's" } })
  assert.deepEqual(await server.query('show application_name'), [{ application_name: "it's" }])
  const client = new pg.Client(server.url())
  await client.connect()
  t.after(async () => {
    server.resume()
    await client.end()
    await server.stop()
  })

  server.pause()
  let isAnswered = false
  const answer = client.query('select 1 as one').finally(() => {
    isAnswered = true
  })
  await assert.rejects(runSql(server.url(), 'select 1', 200), /timeout/)
  assert.equal(isAnswered, false)
  server.resume()
  assert.deepEqual((await answer).rows, [{ one: 1 }])
})

test('a standby has every acknowledged row, and takes writes after the primary crashed and it was promoted', async (t) => {
  const primary = await startPostgres()
  t.after(() => primary.stop())
  await primary.query('create table kept (n int); insert into kept values (1)')
  const standby = await primary.standby({ synchronous: true })
  t.after(() => standby.stop())
  await primary.query('insert into kept values (2)')
  await waitFor('the standby shows it', async () => (await standby.query('select n from kept')).length === 2)
  await assert.rejects(standby.query('insert into kept values (3)'), { code: '25006' })

  standby.pause()
  let isAcknowledged = false
  const write = primary.query('insert into kept values (3)').finally(() => {
    isAcknowledged = true
  })
  await waitFor('the write waits for the standby', async () => {
    return (await primary.query(`select 1 from pg_stat_activity where wait_event = 'SyncRep'`)).length === 1
  })
  assert.equal(isAcknowledged, false)
  standby.resume()
  await write

  await primary.kill()
  await standby.promote()
  await standby.query('insert into kept values (4)')
  const rows = await standby.query('select n from kept order by n')
  assert.deepEqual(
    rows.map(({ n }) => n),
    [1, 2, 3, 4],
  )
})

test('a server that cannot start says why', async () => {
  await assert.rejects(startPostgres({ settings: { no_such_setting: '1' } }), /no_such_setting/)
})

test('nothing is left of a server when its process is killed', async () => {
  const code = `
    import { startPostgres } from ${JSON.stringify(join(import.meta.dirname, 'postgres-server.ts'))}
    const server = await startPostgres()
    console.log(JSON.stringify({ folder: server.folder, url: server.url() }))
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await waitFor('it has a server', () => output.endsWith('\n'))
  const { folder, url } = JSON.parse(output) as { folder: string; url: string }
  assert.deepEqual(await runSql(url, 'select 1 as one'), [{ one: 1 }])
  child.kill('SIGKILL')
  await waitFor('its folder is gone', () => !existsSync(folder))
  await assert.rejects(runSql(url, 'select 1'), { code: 'ECONNREFUSED' })
})

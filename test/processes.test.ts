import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { portIn, type ServiceProcess, spawnService, temporaryFolder, WRITE_TOKEN } from './service.ts'

const ROOT = join(import.meta.dirname, '..')
const SEED_FILE = join(ROOT, 'data/seed.json')
const DEMO = '/api/v2/flux/clusters/demo-cluster-01.k8s.example.com'

/** Starts services together; all of them are gone after the test, whatever happens. */
async function start(t: TestContext, ...envs: Record<string, string>[]): Promise<ServiceProcess[]> {
  const started = await Promise.allSettled(envs.map((env) => spawnService(env)))
  for (const result of started) {
    if (result.status === 'fulfilled') t.after(() => result.value.stop('SIGKILL'))
  }
  return started.map((result) =>
    result.status === 'fulfilled' ? result.value : assert.fail(result.reason as Error),
  )
}

function settings(t: TestContext) {
  const DATABASE_URL = `sqlite://${join(temporaryFolder(t), 'fleet.db')}`
  const common = { DATABASE_URL, SEED_FILE }
  return { crud: { ...common, API_MODE: 'crud' }, readOnly: { ...common, API_MODE: 'read-only' } }
}

async function until(what: string, ms: number, met: () => Promise<boolean> | boolean): Promise<number> {
  const begin = performance.now()
  while (!(await met())) {
    const waited = performance.now() - begin
    assert.ok(waited < ms, `${what}: not within ${ms} ms`)
    await sleep(2)
  }
  return performance.now() - begin
}

/** Changes a value of the demo cluster in one process; it must reach a poll of the other within 250 ms. */
async function checkServedSoon(writer: ServiceProcess, reader: ServiceProcess, value: string): Promise<void> {
  const written = await writer.call('PATCH', '/clusters/demo-cluster-01/patches/podinfo', {
    body: { replicaCount: value },
  })
  assert.equal(written.status, 200, written.text)
  await until(`replicaCount ${value} in the other process`, 250, async () => {
    const { body } = await reader.call('GET', `${DEMO}/platform-components`)
    const podinfo = body.inputs.find(({ id }: { id: string }) => id === 'podinfo')
    return podinfo.patches.replicaCount === value
  })
}

describe('several processes on one SQLite file', () => {
  test('a commit of the crud one is served by the read-only one within 250 ms', async (t) => {
    const { crud, readOnly } = settings(t)
    const [writer, reader] = (await start(t, crud, readOnly)) as [ServiceProcess, ServiceProcess]
    for (let i = 0; i < 10; i++) {
      await sleep(i * 11)
      await checkServedSoon(writer, reader, `r${i}`)
    }
  })

  test('a commit of either crud one is served by the other within 250 ms', async (t) => {
    const { crud } = settings(t)
    const [one, two] = (await start(t, crud, crud)) as [ServiceProcess, ServiceProcess]
    for (let i = 0; i < 5; i++) {
      await checkServedSoon(one, two, `one${i}`)
      await sleep(i * 11)
      await checkServedSoon(two, one, `two${i}`)
    }
  })

  test('two crud ones that write at once lose nothing', async (t) => {
    const { crud } = settings(t)
    const services = await start(t, crud, crud)
    const names = services.flatMap((_, s) => Array.from({ length: 60 }, (_, i) => `s${s}-${i}`))
    const answers = await Promise.all(
      names.flatMap((name) => {
        const service = services[Number(name[1])] as ServiceProcess
        return [
          service.call('PATCH', '/clusters/demo-cluster-01', { body: { labels: { [name]: 'yes' } } }),
          service.call('POST', '/namespaces', { body: { id: name } }),
        ]
      }),
    )
    for (const { status, text } of answers) assert.ok(status === 200 || status === 201, `${status} ${text}`)
    const revisions = answers.map(({ headers }) => Number(headers['x-revision'])).sort((a, b) => a - b)
    assert.deepEqual(
      revisions,
      answers.map((_, i) => i + 2),
      'every write has a revision of its own',
    )
    const last = String(revisions.at(-1))
    for (const service of services) {
      await until('both are at the last revision', 250, async () => {
        return (await service.call('GET', '/clusters/demo-cluster-01')).headers['x-revision'] === last
      })
      const { body } = await service.call('GET', '/clusters/demo-cluster-01')
      const { region, ...labels } = body.labels
      assert.equal(region, 'eu')
      assert.deepEqual(Object.keys(labels).sort(), [...names].sort())
    }
    const [one, two] = await Promise.all(services.map((service) => service.call('GET', '/namespaces')))
    assert.equal(one?.text, two?.text)
    const ids = one?.body.map(({ id }: { id: string }) => id)
    assert.ok(names.every((name) => ids.includes(name)))
  })

  for (const modes of [
    ['crud', 'crud'],
    ['crud', 'read-only'],
    ['read-only', 'read-only'],
  ] as const) {
    test(`a ${modes[0]} one and a ${modes[1]} one that start together fill an empty store once`, async (t) => {
      const { crud, readOnly } = settings(t)
      const services = await start(t, ...modes.map((mode) => (mode === 'crud' ? crud : readOnly)))
      const polls = await Promise.all(services.map((service) => service.call('GET', `${DEMO}/namespaces`)))
      for (const { status, headers, body } of polls) {
        assert.equal(status, 200)
        assert.equal(headers['x-revision'], '1')
        assert.equal(body.inputs.length, 3)
      }
      const [check] = await start(t, crud)
      const { body } = (await check?.call('GET', '/revisions')) ?? assert.fail()
      assert.deepEqual(
        body.map(({ revision, actor }: { revision: number; actor: string }) => ({ revision, actor })),
        [{ revision: 1, actor: 'seed' }],
      )
    })
  }
})

/** A folder whose permissions a test may take away. */
function lockableFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-'))
  t.after(() => {
    chmodSync(folder, 0o755)
    rmSync(folder, { recursive: true, force: true })
  })
  chmodSync(folder, 0o755)
  return folder
}

function takeWritePermission(folder: string): void {
  for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o444)
  chmodSync(folder, 0o555)
}

function contentOf(folder: string): Record<string, string> {
  const names = readdirSync(folder).sort()
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name)).toString('base64')]))
}

interface Unprivileged {
  readonly child: ChildProcess
  exitCode(): Promise<number | null>
  output(): string
}

/**
 * Starts a read-only service that has no permissions beyond what files give to everybody. The program is reached
 * through the working folder, which is entered before the rights are dropped, so that it may lie anywhere.
 */
async function startUnprivileged(t: TestContext, env: Record<string, string>): Promise<Unprivileged> {
  const common = { AUTH_TOKEN: 'read', LISTEN_ADDR: '127.0.0.1:0' }
  const root = process.getuid?.() === 0
  const [command, args] = root
    ? [
        process.execPath.startsWith(`${ROOT}/`) ? `./${relative(ROOT, process.execPath)}` : process.execPath,
        ['--preserve-symlinks', '--preserve-symlinks-main', '/proc/self/cwd/src/main.ts'],
      ]
    : [process.execPath, [join(ROOT, 'src/main.ts')]]
  const child = spawn(command, args, {
    cwd: ROOT,
    env: { ...common, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(root && { uid: 65534, gid: 65534 }),
  })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
    })
  }
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  return {
    child,
    exitCode: () => exited,
    output: () => output,
  }
}

function urlOf({ output }: Unprivileged): string {
  return `http://127.0.0.1:${portIn(output())}`
}

async function checkServes(service: Unprivileged): Promise<void> {
  await until(`ready: ${service.output()}`, 10_000, async () => {
    assert.equal(service.child.exitCode, null, service.output())
    return portIn(service.output()) !== undefined
  })
  const poll = await fetch(`${urlOf(service)}${DEMO}/namespaces`, {
    headers: { authorization: 'Bearer read' },
  })
  assert.equal(poll.status, 200)
  assert.equal(((await poll.json()) as { inputs: unknown[] }).inputs.length, 3)
}

describe('a read-only process that may not write to the database file nor to its folder', () => {
  test('serves, and follows the process that writes', async (t) => {
    const folder = lockableFolder(t)
    const DATABASE_URL = `sqlite://${join(folder, 'fleet.db')}`
    const [writer] = (await start(t, { DATABASE_URL, SEED_FILE, API_MODE: 'crud' })) as [ServiceProcess]
    takeWritePermission(folder)
    const reader = await startUnprivileged(t, { DATABASE_URL, SEED_FILE })
    await checkServes(reader)
    for (let i = 0; i < 5; i++) {
      const { headers } = await writer.call('POST', '/namespaces', { body: { id: `new-${i}` } })
      await until('the commit in the other process', 250, async () => {
        const ready = await fetch(`${urlOf(reader)}/ready`)
        return ready.headers.get('x-revision') === headers['x-revision']
      })
    }
    reader.child.kill('SIGTERM')
    assert.equal(await reader.exitCode(), 0)
    assert.doesNotMatch(reader.output(), /"level":[56]0/, 'what it may not note is no failure')
    const written = await writer.call('POST', '/namespaces', { body: { id: 'last' } })
    assert.equal(written.status, 201, 'the writer goes on')
  })

  for (const [how, signal] of [
    ['was stopped', 'SIGTERM'],
    ['was killed', 'SIGKILL'],
  ] as const) {
    test(`serves what a service left that ${how}, and changes nothing`, async (t) => {
      const folder = lockableFolder(t)
      const DATABASE_URL = `sqlite://${join(folder, 'fleet.db')}`
      const [writer] = (await start(t, { DATABASE_URL, SEED_FILE, API_MODE: 'crud' })) as [ServiceProcess]
      await writer.call('POST', '/namespaces', { body: { id: 'last' } })
      await writer.stop(signal)
      takeWritePermission(folder)
      const before = contentOf(folder)
      const reader = await startUnprivileged(t, { DATABASE_URL, SEED_FILE })
      await checkServes(reader)
      assert.equal((await fetch(`${urlOf(reader)}/ready`)).headers.get('x-revision'), '2')
      reader.child.kill('SIGTERM')
      assert.equal(await reader.exitCode(), 0)
      assert.deepEqual(contentOf(folder), before)
    })
  }

  test('cannot open a single file without its -wal and -shm beside it, and says so', async (t) => {
    const folder = lockableFolder(t)
    const path = join(folder, 'fleet.db')
    const DATABASE_URL = `sqlite://${path}`
    const [writer] = (await start(t, { DATABASE_URL, SEED_FILE, API_MODE: 'crud' })) as [ServiceProcess]
    await writer.stop()
    foldLog(path)
    assert.deepEqual(readdirSync(folder), ['fleet.db'])
    takeWritePermission(folder)
    const reader = await startUnprivileged(t, { DATABASE_URL, SEED_FILE })
    assert.equal(await reader.exitCode(), 2)
    assert.ok(reader.output().includes(path), reader.output())
    assert.doesNotMatch(reader.output(), /\n\s+at /)
    chmodSync(folder, 0o777)
    await checkServes(await startUnprivileged(t, { DATABASE_URL, SEED_FILE }))
  })
})

/** Brings everything from the write-ahead log into the file; the files beside it are gone then. */
function foldLog(path: string): void {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

describe('a service that is told to stop', () => {
  for (const [signal, releaseAfter] of [
    ['SIGTERM', 400],
    ['SIGINT', 1500],
  ] as const) {
    test(`by ${signal} is not ready any more, finishes what is in flight, also after ${releaseAfter} ms, and exits with 0`, async (t) => {
      const path = join(temporaryFolder(t), 'fleet.db')
      const env = { DATABASE_URL: `sqlite://${path}`, SEED_FILE, API_MODE: 'crud' }
      const [service] = (await start(t, { ...env, SHUTDOWN_DELAY_SECONDS: '1' })) as [ServiceProcess]
      const release = holdWrites(t, path)
      const inFlight = patchAndStay(t, service, { labels: { last: 'yes' } })
      const early = await Promise.race([inFlight, sleep(200)])
      assert.equal(early, undefined, 'the write waits')
      const exited = service.stop(signal)
      const told = performance.now()
      await until('not ready', 500, async () => (await service.call('GET', '/ready')).status === 503)
      assert.match((await service.call('GET', '/ready')).body.message, /stopping/)
      assert.equal((await service.call('GET', `${DEMO}/namespaces`)).status, 200, 'polls go on')
      assert.equal((await service.call('GET', '/health')).status, 200, 'the process lives')
      const late = await service.call('POST', '/namespaces', { body: { id: 'late' } })
      assert.equal(late.status, 503)
      assert.equal(late.body.error, 'unavailable')
      await sleep(told + releaseAfter - performance.now())
      release()
      const finished = await inFlight
      assert.equal(finished, 200)
      assert.equal(await exited, 0, service.output())
      const stayed = performance.now() - told
      assert.ok(stayed >= 1000, `stayed up for ${stayed} ms only`)
      assert.ok(stayed < 10_000, `took ${stayed} ms to stop`)
      const [again] = (await start(t, env)) as [ServiceProcess]
      const { body } = await again.call('GET', '/clusters/demo-cluster-01')
      assert.equal(body.labels.last, 'yes', 'the acknowledged write is kept')
      assert.equal((await again.call('GET', '/namespaces/late')).status, 404)
    })
  }

  for (const delay of ['0', '1']) {
    test(`finishes a request whose body is still arriving (delay ${delay} s)`, async (t) => {
      const { crud } = settings(t)
      const [service] = (await start(t, { ...crud, SHUTDOWN_DELAY_SECONDS: delay })) as [ServiceProcess]
      const { port } = new URL(service.url)
      const body = JSON.stringify({ id: 'slow' })
      const sending = request({
        port,
        method: 'POST',
        path: '/namespaces',
        headers: {
          authorization: `Bearer ${WRITE_TOKEN}`,
          'content-type': 'application/json',
          'content-length': body.length,
          expect: '100-continue',
        },
      })
      const answered = once(sending, 'response') as Promise<[IncomingMessage]>
      sending.flushHeaders()
      await once(sending, 'continue')
      sending.write(body.slice(0, 5))
      const exited = service.stop('SIGTERM')
      await until('stopping', 2000, async () => service.output().includes('"msg":"stopping"'))
      if (delay === '0')
        await until('no new connections', 2000, () =>
          service.call('GET', '/health').then(
            () => false,
            () => true,
          ),
        )
      else assert.equal((await service.call('POST', '/namespaces', { body: { id: 'late' } })).status, 503)
      sending.end(body.slice(5))
      const [answer] = await answered
      assert.equal(answer.statusCode, 201)
      assert.equal(answer.headers.connection, 'close')
      answer.resume()
      assert.equal(await exited, 0, service.output())
      const [again] = (await start(t, crud)) as [ServiceProcess]
      assert.equal((await again.call('GET', '/namespaces/slow')).status, 200, 'what was acknowledged is kept')
      assert.equal((await again.call('GET', '/namespaces/late')).status, 404)
    })
  }

  test('without a delay stops at once, though clients keep their connections', async (t) => {
    const { crud } = settings(t)
    const [service] = (await start(t, crud)) as [ServiceProcess]
    await Promise.all(Array.from({ length: 10 }, () => service.call('GET', `${DEMO}/namespaces`)))
    const begin = performance.now()
    assert.equal(await service.stop('SIGTERM'), 0)
    const took = performance.now() - begin
    assert.ok(took < 2000, `took ${took} ms`)
  })

  test('answers every request that it has taken, each fully or as unavailable', async (t) => {
    const { crud } = settings(t)
    const [service] = (await start(t, { ...crud, SHUTDOWN_DELAY_SECONDS: '1' })) as [ServiceProcess]
    const names = Array.from({ length: 200 }, (_, i) => `n${i}`)
    const calls = names.map((id) => service.call('POST', '/namespaces', { body: { id } }))
    await Promise.race(calls)
    const exited = service.stop('SIGTERM')
    const answers = await Promise.all(calls)
    assert.equal(await exited, 0)
    for (const { status } of answers) assert.ok(status === 201 || status === 503, String(status))
    const [again] = (await start(t, crud)) as [ServiceProcess]
    const { body } = await again.call('GET', '/namespaces')
    const kept = new Set(body.map(({ id }: { id: string }) => id))
    names.forEach((name, i) => {
      assert.equal(kept.has(name), answers[i]?.status === 201, `${name}: ${answers[i]?.status}`)
    })
  })
})

/** Holds the file's write lock, so that a commit waits; answers how to let it go. */
function holdWrites(t: TestContext, path: string): () => void {
  const db = new DatabaseSync(path)
  t.after(() => db.close())
  db.exec('BEGIN IMMEDIATE')
  return () => db.exec('ROLLBACK')
}

/** Patches the demo cluster over a connection that this client never closes itself; answers the status. */
async function patchAndStay(
  t: TestContext,
  { url }: ServiceProcess,
  body: object,
): Promise<number | undefined> {
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())
  const call = request(`${url}/clusters/demo-cluster-01`, {
    agent,
    method: 'PATCH',
    headers: { authorization: `Bearer ${WRITE_TOKEN}`, 'content-type': 'application/json' },
  })
  call.end(JSON.stringify(body))
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  await response.resume().toArray()
  return response.statusCode
}

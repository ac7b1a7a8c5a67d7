// `make run`: the service with simulated clusters beside it, which start after it and stop with it.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import { DEMO_FAULTS } from '../tools/simulate/demo-faults.ts'
import { writeDemoHistory } from '../tools/simulate/demo-history.ts'
import { findPort } from './find-port.ts'
import { COMPILED, startService, temporaryFolder, waitFor } from './service.ts'

const ROOT = join(import.meta.dirname, '..')
/** Long enough to be taken without a warning. */
const TOKEN = 'token-of-the-demo-test'
const SEED = join(ROOT, 'data/seed.json')

interface Demo {
  readonly url: string
  readonly child: ChildProcess
  /** All that was printed. */
  output(): string
}

async function startDemo(t: TestContext, clusters: string): Promise<Demo> {
  const port = await findPort()
  const child = spawn(process.execPath, [join(ROOT, 'tools/simulate/demo.ts')], {
    env: {
      ...COMPILED,
      API_MODE: 'crud',
      AUTH_TOKEN: TOKEN,
      SEED_FILE: SEED,
      STORE_BACKEND: 'memory',
      LISTEN_ADDR: `127.0.0.1:${port}`,
      LOG_LEVEL: 'warn',
      DEMO_CLUSTERS: clusters,
    },
    // A group of its own, as the shell makes one for each command: Ctrl-C reaches everything in it.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => isAlive(child) && process.kill(-Number(child.pid), 'SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
    })
  }
  return { url: `http://127.0.0.1:${port}`, child, output: () => output }
}

/** Whether anything of its group is left. */
function isAlive({ pid }: ChildProcess): boolean {
  try {
    return process.kill(-Number(pid), 0)
  } catch {
    return false
  }
}

async function metricsOf({ url }: Demo): Promise<string> {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } }).catch(
    () => undefined,
  )
  return (await answer?.text()) ?? ''
}

/** The polls of an endpoint that were answered. */
async function pollsOf(demo: Demo): Promise<number> {
  const line = /^flux_resourceset_polls_total\{endpoint="namespaces",code="2xx"\} (\d+)/m
  return Number(line.exec(await metricsOf(demo))?.[1] ?? 0)
}

test('simulated clusters poll the demo quietly, and nothing is left behind when it stops', async (t) => {
  const demo = await startDemo(t, '3')
  await waitFor('three clusters have polled', async () => (await pollsOf(demo)) >= 3)
  process.kill(-Number(demo.child.pid), 'SIGINT')
  assert.deepEqual(await once(demo.child, 'exit'), [0, null])
  await waitFor('nothing is left', () => !isAlive(demo.child))
  assert.equal(demo.output(), '')
})

test('a signal to the launcher alone stops the service too', async (t) => {
  const demo = await startDemo(t, '1')
  await waitFor('a cluster has polled', async () => (await pollsOf(demo)) >= 1)
  demo.child.kill('SIGTERM')
  assert.deepEqual(await once(demo.child, 'exit'), [0, null])
  await waitFor('nothing is left', () => !isAlive(demo.child))
})

test('without simulated clusters nobody polls the demo', async (t) => {
  const demo = await startDemo(t, '0')
  await waitFor('it is ready', async () => (await metricsOf(demo)) !== '')
  await new Promise((resolve) => setTimeout(resolve, 1000))
  assert.equal(await pollsOf(demo), 0)
  process.kill(-Number(demo.child.pid), 'SIGINT')
  await once(demo.child, 'exit')
})

test('the demo exits with the code of a service that cannot start', async () => {
  const child = spawn(process.execPath, [join(ROOT, 'tools/simulate/demo.ts')], {
    env: {
      ...COMPILED,

      API_MODE: 'wrong',
      AUTH_TOKEN: 'x',
      LISTEN_ADDR: '127.0.0.1:0',
    },
    stdio: 'ignore',
  })
  assert.deepEqual(await once(child, 'exit'), [2, null])
})

test('a new demo database has a week of changes, which is whole, and a rollout that is under way', async (t) => {
  const path = join(temporaryFolder(t), 'demo.db')
  await writeDemoHistory(path, JSON.parse(readFileSync(SEED, 'utf8')))
  const service = await startService({ store: openSqliteStore({ path, write: true }) })
  t.after(() => service.stop())
  const { body: revisions } = await service.call('GET', '/revisions')
  const age = Date.now() - Date.parse(revisions.at(-1).time)
  assert.ok(revisions.length > 5 && age > 6 * 24 * 3_600_000, JSON.stringify(revisions))
  const { body: rollouts } = await service.call('GET', '/rollouts')
  assert.deepEqual([rollouts[0].state, rollouts[0].waves[0].state], ['running', 'open'])
  assert.equal((await service.call('GET', '/revisions/verify')).body.verified, true)
})

test('what is wrong in the demo is of clusters and components that its fleet has', () => {
  const { clusters } = JSON.parse(readFileSync(SEED, 'utf8'))
  for (const { dns, plan } of DEMO_FAULTS) {
    // biome-ignore lint/suspicious/noExplicitAny: a seed file is any JSON
    const cluster = clusters.find(({ cluster_dns }: any) => cluster_dns === dns)
    assert.ok(cluster, dns)
    for (const { fault } of plan) {
      if (fault.kind !== 'fail') continue
      // biome-ignore lint/suspicious/noExplicitAny: a seed file is any JSON
      assert.ok(cluster.platform_components.some(({ id }: any) => id === fault.component))
    }
  }
})

// `npm run bench:rollouts`: what staged rollouts cost beside a fleet without them. Polls by the CPU of a process of their
// own; previews, starts, waves and ends by how long they take, and how long the event loop is held up meanwhile.
import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { JsonObject } from '../src/base/json.ts'
import { POLL_BASE } from '../src/base/urls.ts'
import { asRollout, ROLLOUTS } from '../src/domain/rollouts/rollout.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import { findPort } from '../test/find-port.ts'
import { controllerOf } from '../test/rolled-fleet.ts'
import { startService as startHere, type TestService } from '../test/service.ts'
import { clusterDns, writeFleet } from './fleet.ts'
import { median, runLoad } from './load.ts'
import { printTable, progress } from './print.ts'
import { cpuSeconds, startService, stopTarget, type Target, TOKEN } from './server-process.ts'

const CLUSTERS = Number(process.env.BENCH_CLUSTERS ?? 100_000)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 20_000)
const WAVE = Math.min(25_000, CLUSTERS / 4)
const CONNECTIONS = 8
/** Every cluster has exactly one of these. */
const COMPONENTS = [6, 7, 8]
/** Each by a rollout of its own, so that every cluster is served three overlays. */
const FIELDS: readonly JsonObject[] = [
  { oci_tag: 'v2.0.0' },
  { component_version: '2.0.0' },
  { oci_url: 'oci://registry.example.com/staged' },
]
const POLL_TARGET = '1.15×'

const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-bench-'))
const targets: Target[] = []

function batchOf(patch: JsonObject, rollout: JsonObject, more: JsonObject = {}): JsonObject {
  const operations = COMPONENTS.map((n) => ({
    op: 'patch',
    type: 'platform_components',
    id: `component-${n}`,
    patch,
  }))
  return { operations, message: 'for the benchmark', rollout, ...more }
}

async function start(name: string): Promise<Target> {
  copyFileSync(join(folder, 'fleet.db'), join(folder, `${name}.db`))
  const database = `sqlite://${join(folder, `${name}.db`)}`
  const target = await startService(name, database, await findPort())
  targets.push(target)
  return target
}

/** In turns, so that both see the same machine. */
async function comparePolls(): Promise<void> {
  const plain = await start('without rollouts')
  const staged = await start('with three rollouts open')
  for (const patch of FIELDS) {
    const answer = await fetch(`http://127.0.0.1:${staged.port}/batch`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify(batchOf(patch, { waves: [{ name: 'all', rest: true }] })),
    })
    assert.equal(answer.status, 202, await answer.text())
  }
  const rows: string[][] = []
  for (const reconnect of [false, true]) {
    const rounds: (readonly [number, number])[] = []
    for (let round = 0; round <= ROUNDS; round++) {
      progress(`polls, round ${round} of ${ROUNDS}`)
      const pair = round % 2 === 0 ? [plain, staged] : [staged, plain]
      const costs = new Map<Target, number>()
      for (const target of pair) costs.set(target, await pollCost(target, reconnect))
      if (round > 0) rounds.push([costs.get(plain) ?? 0, costs.get(staged) ?? 0])
    }
    rows.push([
      reconnect ? 'a connection for every poll' : 'connections that are kept',
      median(rounds.map(([without]) => without)).toFixed(1),
      median(rounds.map(([, having]) => having)).toFixed(1),
      `${median(rounds.map(([without, having]) => having / without)).toFixed(3)}×`,
      POLL_TARGET,
    ])
  }
  progress('')
  printTable(['CPU µs per poll', plain.name, staged.name, 'median of ratios', 'target'], rows)
}

async function pollCost(target: Target, reconnect: boolean): Promise<number> {
  const before = cpuSeconds(target)
  await runLoad({
    port: target.port,
    paths: Array.from({ length: CLUSTERS }, (_, n) => `${POLL_BASE}/${clusterDns(n)}/platform-components`),
    token: TOKEN,
    requests: REQUESTS,
    connections: CONNECTIONS,
    reconnect,
  })
  return ((cpuSeconds(target) - before) / REQUESTS) * 1e6
}

interface Row {
  readonly times: number[]
  readonly delays: number[]
}

class Rows {
  readonly #rows = new Map<string, Row>()

  /** Notes how long something takes. */
  async take<T>(name: string, run: () => Promise<T>): Promise<T> {
    progress(name)
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    const begun = performance.now()
    const result = await run()
    const row = this.#rows.get(name) ?? { times: [], delays: [] }
    row.times.push(performance.now() - begun)
    delay.disable()
    row.delays.push(delay.max / 1e6)
    this.#rows.set(name, row)
    return result
  }

  print(targets: Readonly<Record<string, number>>): void {
    printTable(
      [`${CLUSTERS} clusters`, 'median ms', 'slowest ms', 'target ms', 'event loop held, ms'],
      [...this.#rows].map(([name, { times, delays }]) => [
        name,
        median(times).toFixed(0),
        Math.max(...times).toFixed(0),
        String(targets[name] ?? ''),
        Math.max(...delays).toFixed(0),
      ]),
    )
  }
}

const PREVIEW = 'preview of a rollout to every cluster'
const OPENING = `opening a wave of ${WAVE} clusters`
const WAVES: readonly JsonObject[] = [
  { name: 'first', count: 1 },
  { name: 'many', count: WAVE },
  { name: 'rest', rest: true },
]

/** One rollout after the other, each taken back. */
async function measureSteps(): Promise<void> {
  const store = openSqliteStore({ path: join(folder, 'fleet.db'), write: true })
  const service = await startHere({ store })
  const controller = controllerOf(service, store, Date.now, [])
  const rows = new Rows()
  for (let round = 0; round < ROUNDS; round++) {
    const patch = { oci_tag: `v3.0.${round}` }
    await rows.take(PREVIEW, () =>
      call(service, '/batch', batchOf(patch, { strategy: 'default' }, { dry_run: true })),
    )
    const id = await rows.take('its start', async () => {
      const { rollout } = await call(service, '/batch', batchOf(patch, { waves: [...WAVES] }))
      return String((rollout as JsonObject).id)
    })
    await call(service, `/rollouts/${id}/skip`, { wave: 'first' })
    // The first look finds out who has come meanwhile, which is nobody.
    const opened = whenOpened(service, id)
    const looking = controller.tick()
    await rows.take(OPENING, () => opened)
    await rows.take('and a look at how far it is', () => looking.then(() => controller.tick()))
    await rows.take('the rollout as it is shown', () => read(service, `/rollouts/${id}`))
    await rows.take('its abort', () => call(service, `/rollouts/${id}/abort`, {}))
  }
  progress('')
  console.log('')
  rows.print({ [PREVIEW]: 2000, [OPENING]: 300 })
  await controller.stop()
  await service.stop()
}

/** Resolves once the second wave is served. */
function whenOpened({ engine }: TestService, id: string): Promise<void> {
  return new Promise((resolve) => {
    const unsubscribe = engine.subscribe(() => {
      const entry = engine.state.get(ROLLOUTS, id)
      if (!entry || asRollout(entry).waves[1]?.opened !== WAVE) return
      unsubscribe()
      resolve()
    })
  })
}

async function call(service: TestService, path: string, body: JsonObject): Promise<JsonObject> {
  const answer = await service.call('POST', path, { body })
  assert.ok(answer.status < 300, answer.text.slice(0, 500))
  return answer.body
}

async function read(service: TestService, path: string): Promise<void> {
  const answer = await service.call('GET', path)
  assert.equal(answer.status, 200, answer.text.slice(0, 500))
}

try {
  progress(`writing ${CLUSTERS} clusters`)
  await writeFleet(join(folder, 'fleet.db'), CLUSTERS)
  await comparePolls()
  for (const target of targets.splice(0)) await stopTarget(target)
  await measureSteps()
  console.log(`\nload average ${loadavg()[0]?.toFixed(1)}`)
} finally {
  for (const target of targets) await stopTarget(target)
  rmSync(folder, { recursive: true, force: true })
}

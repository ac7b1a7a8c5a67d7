// What asking for the state of a large fleet costs, and how long it holds the event loop up.
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Digest } from '../src/base/digest.ts'
import type { Entry } from '../src/domain/documents/view.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import { startService, type TestService } from '../test/service.ts'
import { writeFleet } from './fleet.ts'
import { median } from './load.ts'
import { printTable, progress } from './print.ts'

const CLUSTERS = Number(process.env.CLUSTERS ?? 100_000)
const ROUNDS = 5
const AGENT = 'flux-operator/v0.58.1'

/** Every cluster has polled and reported all that it is to have; a few are in trouble. */
async function live({ engine }: TestService): Promise<void> {
  const { fleet } = engine.fleet
  let n = 0
  for (const cluster of engine.state.all('clusters')) {
    settle(fleet, cluster, engine.state.revision, n++)
    if (n % 1000 === 0) await sleep(0)
  }
  progress('waiting for notes')
  await engine.fleet.sync()
  await engine.fleet.refresh()
}

function settle(fleet: TestService['engine']['fleet']['fleet'], cluster: Entry, revision: number, n: number) {
  if (n % 500 === 0) return
  const { desired } = fleet.situationOf(cluster)
  for (const { endpoint, mark } of desired)
    fleet.notePoll(cluster.id, endpoint, mark as Digest | undefined, revision, AGENT, 'bench')
  if (n % 100 === 1) return
  const applied = new Map(desired.flatMap(({ endpoint, mark }) => (mark ? [[endpoint, mark] as const] : [])))
  const ready = desired.flatMap(({ components }) => components)
  fleet.noteReport(cluster.id, { everyMs: 300_000, applied, ready, part: '' }, AGENT)
}

interface Row {
  readonly name: string
  readonly times: number[]
  readonly delays: number[]
  /** Of the whole process, where another one takes its turns on the same cores. */
  readonly cpu: number[]
}

/** The longest delay of the event loop while something runs, which is done in this process too. */
async function measure(name: string, rounds: number, run: (round: number) => Promise<unknown>): Promise<Row> {
  const row: Row = { name, times: [], delays: [], cpu: [] }
  for (let round = 0; round < rounds; round++) {
    progress(`${name} ${round + 1}`)
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    const used = process.cpuUsage()
    const started = performance.now()
    await run(round)
    row.times.push(performance.now() - started)
    const { user, system } = process.cpuUsage(used)
    row.cpu.push((user + system) / 1000)
    delay.disable()
    row.delays.push(delay.max / 1e6)
    await sleep(50)
  }
  return row
}

async function get(service: TestService, path: string): Promise<unknown> {
  const { status, text, body } = await service.call('GET', path)
  if (status !== 200) throw new Error(`GET ${path}: ${text.slice(0, 500)}`)
  return body
}

/** Every cluster has one of three components that follow each other. */
async function edit({ call }: TestService, ids: readonly number[], round: number): Promise<number> {
  const operations = ids.map((n) => ({
    op: 'patch',
    type: 'platform_components',
    id: `component-${n}`,
    patch: { oci_tag: `v2.${ids.length}.${round}` },
  }))
  const { status, headers, text } = await call('POST', '/batch', { body: { operations } })
  if (status !== 200) throw new Error(text.slice(0, 500))
  return Number(headers['x-revision'])
}

async function measureAll(service: TestService): Promise<Row[]> {
  const rows = [
    await measure('the list with its counts', ROUNDS, () => get(service, '/status')),
    await measure('the same, worst health first', ROUNDS, () => get(service, '/status?sort=health')),
    await measure('the same of one label', ROUNDS, () => get(service, '/status?selector=region%3Deu')),
    await measure('who needs somebody', ROUNDS, () => get(service, '/status/attention')),
    await measure('versions of a component', 3, () =>
      get(service, '/platform_components/component-7/versions'),
    ),
    await measure('summary for metrics', 3, () => service.engine.fleet.refresh()),
    await measure('a scrape of the metrics', ROUNDS, () => get(service, '/metrics')),
  ]
  let revision = 0
  for (const [name, ids] of [
    ['the list, right after an edit that reaches a third', [7]],
    ['the list, right after one that reaches every cluster', [6, 7, 8]],
  ] as const) {
    const after: Row = { name, times: [], delays: [], cpu: [] }
    for (let round = 0; round < ROUNDS; round++) {
      revision = await edit(service, ids, round)
      const { times, delays, cpu } = await measure(name, 1, () => get(service, '/status'))
      after.times.push(...times)
      after.delays.push(...delays)
      after.cpu.push(...cpu)
    }
    rows.push(after)
  }
  revision = await edit(service, [6, 7, 8], ROUNDS)
  rows.push(
    await measure('who needs somebody, right after another such edit', 1, () =>
      get(service, '/status/attention'),
    ),
    await measure('propagation of that edit', 3, () => get(service, `/revisions/${revision}/propagation`)),
  )
  return rows
}

const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-bench-'))
try {
  const path = join(folder, 'fleet.db')
  progress(`writing ${CLUSTERS} clusters`)
  await writeFleet(path, CLUSTERS)
  const service = await startService({ store: openSqliteStore({ path, write: true }) })
  progress('polling and reporting')
  await live(service)
  const rows = await measureAll(service)
  const ms = (times: readonly number[]): [string, string] => [
    median(times).toFixed(0),
    Math.max(...times).toFixed(0),
  ]
  progress('')
  printTable(
    [`${CLUSTERS} clusters`, 'median ms', 'slowest ms', 'CPU ms', 'event loop held, ms'],
    rows.map(({ name, times, delays, cpu }) => [
      name,
      ...ms(times),
      median(cpu).toFixed(0),
      Math.max(...delays).toFixed(1),
    ]),
  )
  console.log(`\nload average ${loadavg()[0]?.toFixed(1)}`)
  await service.stop()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

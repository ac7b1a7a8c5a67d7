// `npm run bench:replicas`: a fleet on PostgreSQL: how fast several processes commit and see each other's commits, how
// fast one starts, and how fast a fleet moves there; the same on SQLite beside it, all in one run.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../test/postgres-server.ts'
import { addRevisions, clusterDns, clusterId, writeFleet } from './fleet.ts'
import { median, percentile } from './load.ts'
import { progress, reportTable } from './print.ts'
import {
  copyStore,
  residentMegabytes,
  startService,
  stopTarget,
  type Target,
  TOKEN,
} from './server-process.ts'

const SIZES = (process.env.BENCH_SIZES ?? '10000,100000').split(',').map(Number)
const REPLICAS = [1, 2, 4]
const REVISIONS = Number(process.env.BENCH_REVISIONS ?? 10_000)
const SECONDS = Number(process.env.BENCH_SECONDS ?? 10)
const WRITERS = 4
const STARTS = 3
const FIRST_PORT = 18_500
const AUTH = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }

const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-bench-'))
// With its disk waited for, as in production.
const server = await startPostgres({
  durable: true,
  settings: { shared_buffers: '256MB', max_wal_size: '4GB' },
})
const running = new Set<Target>()
let port = FIRST_PORT
try {
  await main()
} finally {
  await stopAll()
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
}

async function main(): Promise<void> {
  const copies: string[][] = []
  const starts: string[][] = []
  const commits: string[][] = []
  for (const size of SIZES) {
    progress(`writing a fleet of ${size} clusters with ${REVISIONS} revisions`)
    const file = join(folder, `${size}.db`)
    await writeFleet(file, size)
    await addRevisions(file, size, REVISIONS)
    const [sqlite, postgres] = [`sqlite://${file}`, await server.createDatabase()]
    progress(`copying ${size} clusters`)
    const seconds = await copyStore(sqlite, postgres)
    copies.push([String(size), String(REVISIONS), seconds.toFixed(1)])
    starts.push(...(await measureStarts(size, { SQLite: sqlite, PostgreSQL: postgres })))
    commits.push(await measureCommits(`${size} clusters, SQLite`, [sqlite]))
    for (const count of REPLICAS)
      commits.push(await measureCommits(`${size} clusters, PostgreSQL`, Array(count).fill(postgres)))
    await server.query('CHECKPOINT')
  }
  progress('')
  console.log('`flux-resourceset copy` from SQLite to PostgreSQL, verified at the end:\n')
  reportTable('replica-copies', ['clusters', 'revisions', 'seconds'], copies, 2)
  console.log('\nFrom the start of a process until it is ready:\n')
  reportTable('replica-starts', ['fleet', 'seconds', 'of SQLite', 'peak RSS MB'], starts, 1)
  console.log(`\nWrites by ${WRITERS} clients for ${SECONDS} s, and when the other processes serve them:\n`)
  reportTable(
    'replica-writes',
    [
      'fleet',
      'processes',
      'writes a second',
      'of SQLite',
      'median ms',
      'p99 ms',
      'seen after: median ms',
      'worst ms',
    ],
    withRatios(commits),
    2,
  )
}

async function start(name: string, database: string): Promise<Target> {
  const target = await startService(name, database, port++)
  running.add(target)
  return target
}

async function stopAll(): Promise<void> {
  for (const target of running) await stopTarget(target)
  running.clear()
}

async function measureStarts(size: number, databases: Record<string, string>): Promise<string[][]> {
  const samples = new Map<string, { seconds: number; peak: number }[]>()
  for (let round = 0; round < STARTS; round++) {
    for (const [store, database] of Object.entries(databases)) {
      progress(`starting on ${store}, ${round + 1} of ${STARTS}`)
      const target = await start(store, database)
      const sample = { seconds: target.startSeconds, peak: residentMegabytes(target).peak }
      samples.set(store, [...(samples.get(store) ?? []), sample])
      await stopAll()
    }
  }
  const secondsOf = (store: string): number =>
    median((samples.get(store) ?? []).map(({ seconds }) => seconds))
  return [...samples].map(([store, taken]) => [
    `${size} clusters, ${store}`,
    secondsOf(store).toFixed(2),
    `${(secondsOf(store) / secondsOf('SQLite')).toFixed(2)}×`,
    String(Math.round(median(taken.map(({ peak }) => peak)))),
  ])
}

/** Clients write through all processes in turn; every so often one asks the others for what it wrote. */
async function measureCommits(name: string, databases: readonly string[]): Promise<string[]> {
  progress(`${name}, ${databases.length} processes`)
  const targets: Target[] = []
  for (const database of databases) targets.push(await start(name, database))
  const times: number[] = []
  const lags: number[] = []
  const end = performance.now() + SECONDS * 1000
  const begun = performance.now()
  await Promise.all(
    Array.from({ length: WRITERS }, async (_, writer) => {
      const target = targets[writer % targets.length] as Target
      for (let n = writer; performance.now() < end; n += WRITERS) {
        const started = performance.now()
        const revision = await write(target, n)
        times.push(performance.now() - started)
        if (n % 5 > 0) continue
        for (const lag of await Promise.all(
          targets.filter((other) => other !== target).map((other) => seenAfter(other, revision)),
        ))
          lags.push(lag)
      }
    }),
  )
  const rate = times.length / ((performance.now() - begun) / 1000)
  await stopAll()
  const show = (value: number): string => (lags.length > 0 ? value.toFixed(1) : '')
  return [
    name,
    String(databases.length),
    rate.toFixed(0),
    '',
    median(times).toFixed(1),
    percentile(times, 0.99).toFixed(1),
    show(median(lags)),
    show(Math.max(...lags)),
  ]
}

async function write({ port: to }: Target, n: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${to}/clusters/${clusterId(n % 10_000)}`, {
    method: 'PATCH',
    headers: AUTH,
    body: JSON.stringify({ labels: { touched: `${n}-${performance.now()}` } }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return response.headers.get('x-revision') as string
}

/** From the answer of the write until a poll is answered with it. */
async function seenAfter({ port: at }: Target, revision: string): Promise<number> {
  const started = performance.now()
  const path = `/api/v2/flux/clusters/${clusterDns(0)}/platform-components?min_revision=${revision}`
  const response = await fetch(`http://127.0.0.1:${at}${path}`, { headers: AUTH })
  await response.arrayBuffer()
  if (!response.ok) throw new Error(`a replica did not get to revision ${revision} in time`)
  return performance.now() - started
}

/** Beside the same fleet on SQLite, which comes first. */
function withRatios(rows: readonly string[][]): string[][] {
  let base = 1
  return rows.map(([name = '', count = '', rate = '', , ...rest]) => {
    if (name.endsWith('SQLite')) base = Number(rate)
    return [name, count, rate, `${(Number(rate) / base).toFixed(2)}×`, ...rest]
  })
}

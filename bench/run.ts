// `npm run bench`: what a poll costs at growing fleet sizes beside a bare node:http server, all in one run.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CHANGE_COLUMNS, measureChanges, RATE } from './changes.ts'
import { clusterDns, clusterToken, writeFleet } from './fleet.ts'
import { median, percentile, runLoad } from './load.ts'
import { printTable, progress } from './print.ts'
import {
  cpuSeconds,
  residentMegabytes,
  startService,
  startTarget,
  type Target,
  TOKEN,
} from './server-process.ts'

const SIZES = (process.env.BENCH_SIZES ?? '10,1000,10000,100000').split(',').map(Number)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 15000)
const WARM_UP_REQUESTS = 20_000
const CONNECTIONS = 8
const FIRST_PORT = 18_400

/** How connections are used: one for every poll as by the Flux Operator, or kept by a proxy. */
const STYLES = ['new', 'kept'] as const
type Style = (typeof STYLES)[number]

const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-bench-'))
const targets: Target[] = []
try {
  await main()
} finally {
  for (const { child } of targets) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}

type Samples = Record<Style, { readonly cpu: number[]; readonly p99: number[] }>

async function main(): Promise<void> {
  for (const [i, size] of SIZES.entries()) {
    const database = join(folder, `${size}.db`)
    progress(`writing a fleet of ${size} clusters`)
    await writeFleet(database, size)
    targets.push(await startService(`${size} clusters`, `sqlite://${database}`, FIRST_PORT + i))
  }
  const largest = targets.at(-1) as Target
  const withTokens = await startWithTokens()
  targets.push(withTokens)
  const bare = await startBare()
  targets.push(bare)
  const memory = new Map(targets.map((target) => [target, residentMegabytes(target)]))
  const samples = new Map(
    targets.map((target): [Target, Samples] => [
      target,
      { kept: { cpu: [], p99: [] }, new: { cpu: [], p99: [] } },
    ]),
  )
  for (let round = 0; round <= ROUNDS; round++) {
    progress(`round ${round} of ${ROUNDS}`)
    for (const style of STYLES) {
      for (const target of targets) {
        const sample = await measure(target, style, round === 0 ? WARM_UP_REQUESTS : REQUESTS)
        if (round === 0) continue
        samples.get(target)?.[style].cpu.push(sample.cpu)
        samples.get(target)?.[style].p99.push(sample.p99)
      }
    }
  }
  progress('')
  printPolls(bare, samples, memory)
  await catalogChange(largest)
  progress('changes of many clusters')
  const changes = await measureChanges(largest, SIZES.at(-1) ?? 1, pathsOf(SIZES.at(-1) ?? 1))
  progress('')
  console.log(`\nChanges at ${largest.name}, with ${RATE} polls a second going on:\n`)
  printTable(CHANGE_COLUMNS, changes)
}

/** The largest fleet once more, with a token for each cluster. */
async function startWithTokens(): Promise<Target> {
  const size = SIZES.at(-1) ?? 1
  const database = join(folder, 'tokens.db')
  progress(`writing a fleet of ${size} clusters with tokens`)
  await writeFleet(database, size, true)
  return startService(`${size} clusters, a token each`, `sqlite://${database}`, FIRST_PORT + SIZES.length)
}

/** The bare server sends the bytes of one answer of ours. */
async function startBare(): Promise<Target> {
  const [first] = targets
  const url = `http://127.0.0.1:${first?.port}${pathOf(0)}`
  const answer = await fetch(url, { headers: { authorization: `Bearer ${TOKEN}` } })
  const file = join(folder, 'answer.json')
  writeFileSync(file, Buffer.from(await answer.arrayBuffer()))
  const port = FIRST_PORT + SIZES.length + 1
  return startTarget('bare node:http', 'bare-server.ts', [file, String(port)], port, {})
}

function pathOf(n: number): string {
  return `/api/v2/flux/clusters/${clusterDns(n)}/platform-components`
}

/** Clusters spread over a fleet. */
function spread(size: number): number[] {
  const count = Math.min(size, 20_000)
  return Array.from({ length: count }, (_, i) => Math.floor((i * size) / count))
}

function pathsOf(size: number): string[] {
  return spread(size).map(pathOf)
}

async function measure(
  target: Target,
  style: Style,
  requests: number,
): Promise<{ cpu: number; p99: number }> {
  const at = targets.indexOf(target)
  const isWithTokens = at === SIZES.length
  const size = (isWithTokens ? SIZES.at(-1) : SIZES[at]) ?? 1
  const before = cpuSeconds(target)
  const times = await runLoad({
    port: target.port,
    paths: pathsOf(size),
    token: TOKEN,
    ...(isWithTokens && { tokens: spread(size).map(clusterToken) }),
    requests,
    connections: CONNECTIONS,
    reconnect: style === 'new',
  })
  return { cpu: ((cpuSeconds(target) - before) / requests) * 1e6, p99: percentile(times, 0.99) }
}

function printPolls(
  bare: Target,
  samples: ReadonlyMap<Target, Samples>,
  memory: ReadonlyMap<Target, { now: number; peak: number }>,
): void {
  const smallest = targets[0] as Target
  for (const style of STYLES) {
    const cpu = (target: Target): number => median(samples.get(target)?.[style].cpu ?? [])
    const rows = targets.map((target) => [
      target.name,
      cpu(target).toFixed(1),
      `${(cpu(target) / cpu(bare)).toFixed(2)}×`,
      target === bare ? '' : `${(cpu(target) / cpu(smallest)).toFixed(2)}×`,
      median(samples.get(target)?.[style].p99 ?? []).toFixed(2),
    ])
    console.log(
      style === 'new'
        ? 'A connection for every poll, as Flux polls:\n'
        : 'Connections kept, as by a proxy in front:\n',
    )
    printTable(
      ['server', 'CPU µs per poll', 'of bare', 'of smallest', `p99 ms of ${CONNECTIONS} at once`],
      rows,
    )
    console.log()
  }
  const ours = targets.filter((target) => target !== bare)
  const rows = ours.map((target) => [
    target.name,
    target.startSeconds.toFixed(2),
    String(Math.round(memory.get(target)?.peak ?? 0)),
  ])
  console.log('From the start of the process until it is ready:\n')
  printTable(['fleet', 'seconds', 'peak RSS MB'], rows)
}

/** One catalog edit while polls go on: how long it takes and how long any poll waits. */
async function catalogChange(target: Target): Promise<void> {
  const polls = runLoad({
    port: target.port,
    paths: [pathOf(0), pathOf(1)],
    token: TOKEN,
    requests: 4000,
    connections: 2,
  })
  const times: number[] = []
  for (let n = 0; n < 10; n++) {
    const started = performance.now()
    const response = await fetch(`http://127.0.0.1:${target.port}/platform_components/component-1`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ oci_tag: `v2.${'0'.repeat(n)}` }),
    })
    if (!response.ok) throw new Error(await response.text())
    times.push(performance.now() - started)
  }
  const waits = await polls
  console.log(`\nOne catalog change at ${target.name}, 10 times, with polls going on:`)
  printTable(
    ['', 'median ms', 'worst ms'],
    [
      ['change answered', median(times).toFixed(1), Math.max(...times).toFixed(1)],
      ['poll answered meanwhile', median(waits).toFixed(2), Math.max(...waits).toFixed(1)],
    ],
  )
}

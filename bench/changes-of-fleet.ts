// `npm run bench:changes`: what changes of a large fleet cost, and what polls feel of them.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findPort } from '../test/find-port.ts'
import { CHANGE_COLUMNS, measureChanges, RATE } from './changes.ts'
import { clusterDns, writeFleet } from './fleet.ts'
import { median, runLoad } from './load.ts'
import { progress, reportTable } from './print.ts'
import { startService, stopTarget, type Target, TOKEN } from './server-process.ts'

const SIZE = Number(process.env.BENCH_SIZE ?? 100_000)
const MOST_PATHS = 20_000

const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-bench-'))
try {
  await main()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function main(): Promise<void> {
  const database = join(folder, 'fleet.db')
  progress(`writing a fleet of ${SIZE} clusters`)
  await writeFleet(database, SIZE)
  const target = await startService(`${SIZE} clusters`, `sqlite://${database}`, await findPort())
  await catalogChange(target)
  progress('changes of many clusters')
  const changes = await measureChanges(target, SIZE, spreadPaths())
  progress('')
  console.log(`\nChanges at ${target.name}, with ${RATE} polls a second going on:\n`)
  reportTable('changes', CHANGE_COLUMNS, changes, 1)
  await stopTarget(target)
}

function pathOf(n: number): string {
  return `/api/v2/flux/clusters/${clusterDns(n)}/platform-components`
}

/** Of clusters spread over the fleet. */
function spreadPaths(): string[] {
  const count = Math.min(SIZE, MOST_PATHS)
  return Array.from({ length: count }, (_, i) => pathOf(Math.floor((i * SIZE) / count)))
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
  reportTable(
    'catalog-change',
    ['', 'median ms', 'worst ms'],
    [
      ['change answered', median(times).toFixed(1), Math.max(...times).toFixed(1)],
      ['poll answered at the same time', median(waits).toFixed(2), Math.max(...waits).toFixed(1)],
    ],
  )
}

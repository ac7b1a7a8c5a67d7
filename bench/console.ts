// `npm run bench:console`: how soon the list of a large fleet is there to work with in a real browser, and how long the
// service takes to filter it, each figure beside its target. CONSOLE_CLUSTERS names the size, CONSOLE_WATCH_S how long the
// memory of the tab is watched while clusters poll and the page follows.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BrowserContext, chromium } from 'playwright-core'
import { executablePath } from '../test/console/chromium.ts'
import { writeFleet } from './fleet.ts'
import { percentile } from './load.ts'
import { progress, reportTable } from './print.ts'
import { FIGURE_COLUMNS, type Figure, rowOf } from './scale/figures.ts'
import { MeasuredService } from './scale/measured-service.ts'
import { TOKEN } from './server-process.ts'

const CLUSTERS = Number(process.env.CONSOLE_CLUSTERS ?? 100_000)
const WATCH_S = Number(process.env.CONSOLE_WATCH_S ?? 30)
const LOADS = 5
const ROUNDS = 10
/** After this long, code is compiled and caches are filled. */
const WARM_S = Math.min(60, WATCH_S)
const CHANGE_MS = 1000
const SAMPLES = 5
const MIB = 1024 * 1024
const TARGETS = { interactive_s: 1.5, filter_ms: 200, growth: 1.2 }
const FILTERS = [
  'environment=prod',
  'health=unknown',
  'contact=never&sort=health',
  'q=0421',
  `selector=${encodeURIComponent('environment in (dev,qa), uses.platform_components=component-7')}`,
]

if (executablePath === undefined) throw new Error('needs Chromium: install the package chromium')
const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-console-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
progress(`writing a fleet of ${CLUSTERS} clusters`)
const file = join(folder, 'fleet.db')
await writeFleet(file, CLUSTERS)
const service = await MeasuredService.start(`sqlite://${file}`, CLUSTERS)
const browser = await chromium.launch({
  executablePath,
  args: ['--no-sandbox', '--enable-precise-memory-info'],
})
const url = `http://127.0.0.1:${service.target.port}`

/** Somebody who has just logged in, with an empty cache. */
async function newcomer(): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  await context.addInitScript((token) => sessionStorage.setItem('flux-resourceset.token', token), TOKEN)
  return context
}

/** From the navigation until a row can be clicked. */
async function measureLoads(): Promise<number[]> {
  const times: number[] = []
  for (let load = 0; load < LOADS; load++) {
    progress(`load ${load + 1} of ${LOADS}`)
    const context = await newcomer()
    const page = await context.newPage()
    const started = performance.now()
    await page.goto(`${url}/console/fleet`, { waitUntil: 'commit' })
    await page.getByRole('link', { name: 'cluster-000000' }).click({ trial: true })
    times.push((performance.now() - started) / 1000)
    await context.close()
  }
  return times
}

/** From the request to the last byte, one after the other. */
async function measureFilter(filter: string): Promise<number[]> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const started = performance.now()
    await service.call('GET', `/status?${filter}&limit=100`)
    times.push(performance.now() - started)
  }
  return times
}

/**
 * How much larger the tab is at the end of the watch than when it was warm, both after a collection. The page reads again
 * at most once a second, so changes come no faster.
 */
async function measureGrowth(): Promise<{ readonly sizes: readonly number[]; readonly growth: number }> {
  const context = await newcomer()
  const page = await context.newPage()
  await page.goto(`${url}/console/fleet`)
  await page.getByText('live', { exact: true }).waitFor()
  await sleep(5000)
  const devtools = await context.newCDPSession(page)
  const heap = async (): Promise<number> => {
    await devtools.send('HeapProfiler.collectGarbage')
    return (await devtools.send('Runtime.getHeapUsage')).usedSize
  }
  const sizes: number[] = []
  const started = performance.now()
  for (let round = 0; performance.now() - started < (WARM_S + WATCH_S) * 1000; round++) {
    await service.call('PATCH', '/clusters/cluster-000001', { labels: { n: `${round}` } })
    await sleep(CHANGE_MS)
    const due = performance.now() - started - WARM_S * 1000
    if (due >= (sizes.length * WATCH_S * 1000) / SAMPLES) sizes.push(await heap())
  }
  sizes.push(await heap())
  await context.close()
  return { sizes, growth: (sizes.at(-1) ?? 0) / (sizes[0] ?? 0) }
}

const figures: Figure[] = []
const add = (figure: Omit<Figure, 'clusters'>): number => figures.push({ ...figure, clusters: CLUSTERS })
const loads = await measureLoads()
add({
  what: 'Fleet page until a row can be clicked',
  measured: percentile(loads, 0.5),
  unit: 's',
  target: TARGETS.interactive_s,
  remark: `median of ${LOADS} with an empty cache; worst ${Math.max(...loads).toFixed(2)} s`,
})
for (const filter of FILTERS) {
  progress(`filter ${filter}`)
  const times = await measureFilter(filter)
  add({
    what: `filter \`${decodeURIComponent(filter)}\``,
    measured: percentile(times, 0.5),
    unit: 'ms',
    target: TARGETS.filter_ms,
    remark: `median of ${ROUNDS}; worst ${Math.max(...times).toFixed(0)} ms`,
  })
}
progress(`watching the tab for ${WATCH_S} s`)
const { sizes, growth } = await measureGrowth()
add({
  what: 'memory of the tab under live changes',
  measured: growth,
  unit: '×',
  target: TARGETS.growth,
  remark: `${WATCH_S} s: ${sizes.map((size) => (size / MIB).toFixed(1)).join(', ')} MiB`,
})
await browser.close()
await service.stop()
progress('')
reportTable('console', FIGURE_COLUMNS, figures.map(rowOf), 2)
process.exit()

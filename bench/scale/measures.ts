// What is measured of a large fleet, part by part.
import { closeSync, fdatasyncSync, openSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { clusterId, fleetSeed } from '../fleet.ts'
import { median } from '../load.ts'
import { cpuSeconds } from '../server-process.ts'
import type { BySize, Figure } from './figures.ts'
import { MeasuredService } from './measured-service.ts'

const RSS: BySize = { 100000: 300, 1000000: 2048 }
const START: BySize = { 100000: 2.5, 1000000: 25 }
/** What is live settles some moments after the start. */
const SETTLED_MS = 3000

/** From the start of the process until it is ready, and what it takes up then and after every cluster has polled. */
export async function measureStart(store: string, database: string, clusters: number): Promise<Figure[]> {
  const service = await MeasuredService.start(database, clusters)
  try {
    const cpu = cpuSeconds(service.target)
    await sleep(SETTLED_MS)
    const started = service.memory
    if (store === 'SQLite') await service.pollAll()
    const figures: Figure[] = [
      {
        what: `start from ${store}`,
        clusters,
        measured: service.target.startSeconds,
        unit: 's',
        target: START[clusters],
        remark: `${cpu.toFixed(1)} s of CPU`,
      },
      {
        what: `RSS after the start from ${store}`,
        clusters,
        measured: started.now,
        unit: 'MB',
        target: RSS[clusters],
        remark: `peak ${started.peak.toFixed(0)} MB`,
      },
    ]
    if (store !== 'SQLite') return figures
    const polled = service.memory
    const what = 'RSS when every cluster has polled 3 endpoints'
    const remark = `peak ${polled.peak.toFixed(0)} MB`
    return [...figures, { what, clusters, measured: polled.now, unit: 'MB', target: RSS[clusters], remark }]
  } finally {
    await service.stop()
  }
}

/** What the disk takes to make a small write durable. */
function fsyncMs(folder: string): number {
  const path = join(folder, 'fsync')
  const file = openSync(path, 'w')
  const page = Buffer.alloc(8192)
  const times: number[] = []
  for (let i = 0; i < 100; i++) {
    const started = performance.now()
    writeSync(file, page)
    fdatasyncSync(file)
    times.push(performance.now() - started)
  }
  closeSync(file)
  rmSync(path)
  return median(times)
}

/** One document, and a definition that every cluster is given. */
export async function measureEdits(database: string, clusters: number, folder: string): Promise<Figure[]> {
  const service = await MeasuredService.start(database, clusters)
  try {
    const idle = await service.idle()
    const remark = `idle polls: p99 ${idle.p99.toFixed(1)}, worst ${idle.worst.toFixed(1)} ms`
    const fsync = fsyncMs(folder)
    const write = await service.work(
      (round) =>
        service.call('PATCH', `/clusters/${clusterId((round * 7919) % clusters)}`, {
          labels: { touched: String(round) },
        }),
      { rounds: 50 },
    )
    const edit = await service.work(
      (round) => service.call('PATCH', '/platform_components/component-0', { oci_tag: `v2.${round}` }),
      { rounds: 5 },
    )
    const preview = await service.work(
      (round) =>
        service.call('PATCH', '/platform_components/component-0?dry_run=true', { oci_tag: `v3.${round}` }),
      { rounds: 3 },
    )
    const ms = (what: string, measured: number, target: number, said?: string): Figure => ({
      ...{ what, clusters, measured, unit: 'ms', target },
      ...(said !== undefined && { remark: said }),
    })
    return [
      ms(
        'write of one document, above fsync',
        median(write.times) - fsync,
        10,
        `fsync ${fsync.toFixed(2)} ms`,
      ),
      ms('write of one document: worst poll at that time', write.polls.worst, 20, remark),
      ms('catalog edit that reaches all', median(edit.times), 250),
      ms('catalog edit that reaches all: worst poll at that time', edit.polls.worst, 50, remark),
      ms('exact preview of that edit', median(preview.times), 1500),
      ms('exact preview of that edit: worst poll at that time', preview.polls.worst, 50, remark),
    ]
  } finally {
    await service.stop()
  }
}

/** A batch over a quarter of the fleet, and a body with an operation for every cluster. */
export async function measureBatches(database: string, clusters: number): Promise<Figure[]> {
  const service = await MeasuredService.start(database, clusters)
  try {
    const idle = await service.idle()
    const quarter = await service.work(
      (round) =>
        service.call('POST', '/batch', {
          operations: [
            {
              op: 'patch',
              type: 'clusters',
              selector: 'environment=dev',
              patch: { labels: { ring: String(round) } },
            },
          ],
        }),
      { rounds: 3 },
    )
    const bodies = [0, 1].map((round) => oneForEach(clusters, round))
    const each = await service.work((round) => service.call('POST', '/batch', bodies[round % 2]), {
      rounds: 2,
      leastMs: 0,
    })
    const rows = [
      [`batch over ${Math.ceil(clusters / 4)} clusters`, quarter],
      [`${clusters} operations in one body`, each],
    ] as const
    return rows.flatMap(([what, { times, polls }]): Figure[] => [
      { what, clusters, measured: median(times) / 1000, unit: 's', target: 2 },
      {
        ...{ what: `${what}: polls' p99, of idle`, clusters, unit: '×', target: 3 },
        measured: polls.p99 / idle.p99,
        remark: `${polls.p99.toFixed(1)} ms, idle ${idle.p99.toFixed(1)} ms`,
      },
      { what: `${what}: worst poll at that time`, clusters, measured: polls.worst, unit: 'ms', target: 50 },
    ])
  } finally {
    await service.stop()
  }
}

function oneForEach(clusters: number, round: number): string {
  const operations = Array.from({ length: clusters }, (_, n) => ({
    ...{ op: 'patch', type: 'clusters', id: clusterId(n) },
    patch: { labels: { each: String(round) } },
  }))
  return JSON.stringify({ operations })
}

/** Every cluster is changed and rolled back, twice in a row. */
export async function measureChangesOfAll(database: string, clusters: number): Promise<Figure[]> {
  const service = await MeasuredService.start(database, clusters)
  try {
    const { revision: before } = await service.call('GET', '/ready')
    const started = performance.now()
    for (const round of [1, 2]) {
      const labels = { all: String(round) }
      const operation = { op: 'patch', type: 'clusters', selector: 'environment', patch: { labels } }
      await service.call('POST', '/batch', { operations: [operation] })
      await service.call('POST', '/rollback', { to_revision: before })
    }
    const remark = `${((performance.now() - started) / 1000).toFixed(1)} s for all four`
    const what = 'change of all and its rollback, twice: peak RSS'
    return [{ what, clusters, measured: service.memory.peak, unit: 'MB', target: 800, remark }]
  } finally {
    await service.stop()
  }
}

/** A seed file into an empty store. */
export async function measureSeed(folder: string, clusters: number): Promise<Figure[]> {
  const file = join(folder, 'seed.json')
  writeFileSync(file, JSON.stringify(fleetSeed(clusters, 'lived-in')))
  const database = join(folder, 'seeded.db')
  const service = await MeasuredService.start(`sqlite://${database}`, clusters, { SEED_FILE: file })
  try {
    const remark = `file of ${(statSync(file).size / 1e6).toFixed(0)} MB`
    const seconds = service.target.startSeconds
    const { peak } = service.memory
    return [
      { what: 'seeding from a file', clusters, measured: seconds, unit: 's', target: 10, remark },
      { what: 'seeding: peak RSS', clusters, measured: peak, unit: 'MB', target: 800 },
    ]
  } finally {
    await service.stop()
    for (const suffix of ['', '-wal', '-shm']) rmSync(database + suffix, { force: true })
  }
}

// `npm run bench:scale`: what a lived-in fleet costs in memory and time at 100,000 and more clusters, and what polls feel
// of its changes, each figure beside its target. SCALE_SIZES names the sizes, SCALE_PARTS the parts to measure;
// SCALE_FOLDER keeps the files of fleets from run to run, as writing a large one takes minutes.
import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../test/postgres-server.ts'
import { writeFleet } from './fleet.ts'
import { progress, reportTable } from './print.ts'
import { FIGURE_COLUMNS, type Figure, rowOf } from './scale/figures.ts'
import {
  measureBatches,
  measureChangesOfAll,
  measureEdits,
  measureSeed,
  measureStart,
} from './scale/measures.ts'
import { copyStore } from './server-process.ts'

const SIZES = (process.env.SCALE_SIZES ?? '100000').split(',').map(Number)
const PARTS = ['sqlite', 'postgres', 'edits', 'batches', 'all', 'seed'] as const
const CHOSEN: readonly string[] = process.env.SCALE_PARTS?.split(',') ?? PARTS
/** Larger fleets are changed as a whole in several requests. */
const MOST_AT_ONCE = 100_000

const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-scale-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
const kept = process.env.SCALE_FOLDER ?? folder

/** The same fleet for every part: changes are made in a copy. */
async function fleetOf(size: number): Promise<string> {
  const file = join(kept, `lived-in-${size}.db`)
  progress(`a fleet of ${size} clusters`)
  if (!existsSync(file)) await writeFleet(file, size, true, 'lived-in')
  return file
}

async function onCopy<T>(file: string, run: (database: string) => Promise<T>): Promise<T> {
  const copy = join(folder, 'copy.db')
  copyFileSync(file, copy)
  try {
    return await run(`sqlite://${copy}`)
  } finally {
    for (const suffix of ['', '-wal', '-shm']) rmSync(copy + suffix, { force: true })
  }
}

async function onPostgres(file: string, size: number): Promise<Figure[]> {
  const server = await startPostgres({ settings: { shared_buffers: '256MB', max_wal_size: '4GB' } })
  try {
    const database = await server.createDatabase()
    await copyStore(`sqlite://${file}`, database)
    return await measureStart('PostgreSQL', database, size)
  } finally {
    await server.stop()
  }
}

const MEASURES: Readonly<
  Record<(typeof PARTS)[number], (file: string, size: number) => Promise<Figure[]> | Figure[]>
> = {
  sqlite: (file, size) => onCopy(file, (database) => measureStart('SQLite', database, size)),
  postgres: onPostgres,
  edits: (file, size) => onCopy(file, (database) => measureEdits(database, size, folder)),
  batches: (file, size) =>
    size > MOST_AT_ONCE ? [] : onCopy(file, (database) => measureBatches(database, size)),
  all: (file, size) =>
    size > MOST_AT_ONCE ? [] : onCopy(file, (database) => measureChangesOfAll(database, size)),
  seed: (_, size) => (size > MOST_AT_ONCE ? [] : measureSeed(folder, size)),
}

const figures: Figure[] = []
for (const size of SIZES) {
  const file = await fleetOf(size)
  const megabytes = statSync(file).size / 1e6
  figures.push({ what: 'SQLite file', clusters: size, measured: megabytes, unit: 'MB', target: undefined })
  for (const part of PARTS) {
    if (!CHOSEN.includes(part)) continue
    progress(`${size} clusters: ${part}`)
    figures.push(...(await MEASURES[part](file, size)))
  }
}
progress('')
reportTable('scale', FIGURE_COLUMNS, figures.map(rowOf), 2)

// What an empty store is filled with: the file that SEED_FILE names.
import { readFileSync } from 'node:fs'
import type { Logger } from 'pino'
import { UsageProblem } from '../base/usage-problem.ts'
import type { Config } from '../config/config.ts'
import type { Engine } from '../engine/engine.ts'
import { seed } from '../engine/seed.ts'
import type { RegisteredTypes } from '../registry/build-types.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'

/** A process of either mode fills an empty store once; after that a read-only one never writes. */
export async function fillEmptyStore(
  config: Config,
  types: RegisteredTypes,
  engine: Engine,
  start: (store: Store) => Promise<Engine>,
): Promise<void> {
  const { mode, store, seedFile } = config
  if (!seedFile || engine.state.revision > 0 || (store.backend === 'sqlite' && store.mode === 'ro')) return
  if (mode === 'crud' || store.backend === 'memory') return seedFrom(seedFile, types, engine)
  const writer = await start(openStore(store, { write: true }))
  try {
    await seedFrom(seedFile, types, writer)
  } finally {
    await writer.stop()
  }
  await engine.catchUp()
}

/** Waits until a state is loaded, which may take until the store is reachable, and seeds an empty store. */
export async function fillLater(
  config: Config,
  types: RegisteredTypes,
  engine: Engine,
  log: Logger,
): Promise<void> {
  log.warn({ problem: engine.status.problem }, 'polls fail with 503 until the store can be reached')
  await engine.loaded
  log.info({ revision: engine.state.revision }, 'ready')
  if (!config.seedFile || config.mode !== 'crud' || engine.state.revision > 0) return
  await seedFrom(config.seedFile, types, engine).catch((err) =>
    log.error({ err }, 'SEED_FILE was not loaded'),
  )
}

async function seedFrom(seedFile: string, types: RegisteredTypes, engine: Engine): Promise<void> {
  let content: unknown
  try {
    content = JSON.parse(readFileSync(seedFile, 'utf8'))
  } catch (error) {
    throw new UsageProblem(`SEED_FILE ${seedFile}: ${(error as Error).message}`)
  }
  const seeded = await seed(engine, types, content)
  if (seeded.ok) return
  const { message, details = [] } = seeded.problem
  const problems = details.length > 0 ? details.map(({ path, message }) => `${path} ${message}`) : [message]
  throw new UsageProblem(...problems.map((problem) => `SEED_FILE ${seedFile}: ${problem}`))
}

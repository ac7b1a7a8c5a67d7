// What all test files of one run share: a PostgreSQL, a Chromium that is installed and a console that is built, and a folder
// for temporary files in memory where there is one.
import { accessSync, chmodSync, constants, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { buildConsole } from '../tools/console/build-console.ts'
import { bundleService } from './bundled-service.ts'
import { BUILT } from './console/built.ts'
import { executablePath } from './console/chromium.ts'
import { startPostgres } from './postgres-server.ts'

const MEMORY = '/dev/shm'
/** What a run takes of it at most, several times over. */
const ROOM = 4 * 1024 ** 3
let folder: string | undefined
let stop: (() => Promise<void>) | undefined

/** A commit of a test waits for the disk otherwise; a container may have no room there. */
function hasRoom(): boolean {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize > ROOM
  } catch {
    return false
  }
}

/** Files that look for it at once find one that is half installed: this is done before all of them. */
async function readyConsole(): Promise<void> {
  if (executablePath === undefined) {
    const missing =
      'The tests of the console need Chromium: install the package chromium, or name one in CHROMIUM.'
    if (process.env.CI) throw new Error(missing)
    console.error(`skipped: ${missing}`)
  }
  process.env.CHROMIUM = executablePath ?? ''
  await buildConsole(BUILT)
}

export async function setUp(): Promise<void> {
  await readyConsole()
  process.env.TEST_MAIN ||= await bundleService()
  if (!process.env.TEST_POSTGRES_URL) {
    const server = await startPostgres()
    stop = server.stop
    process.env.TEST_POSTGRES_URL = server.url()
  }
  if (process.env.TMPDIR || !hasRoom()) return
  folder = mkdtempSync(join(MEMORY, 'flux-resourceset-'))
  // As open as /tmp is: tests run programs of other users.
  chmodSync(folder, 0o1777)
  process.env.TMPDIR = folder
}

export async function tearDown(): Promise<void> {
  await stop?.()
  if (folder) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}

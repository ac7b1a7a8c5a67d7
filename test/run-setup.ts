// What all test files of one run share: a PostgreSQL, a Chromium that is installed and a console that is built, and a folder
// for temporary files in memory where there is one.
import { execFileSync } from 'node:child_process'
import { accessSync, chmodSync, constants, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { bundleService } from './bundled-service.ts'
import { BUILT } from './console/built.ts'
import { executablePath } from './console/chromium.ts'
import { startPostgres } from './postgres-server.ts'

const BUILDER = join(import.meta.dirname, '../tools/console/build-console.ts')
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
function readyConsole(): void {
  if (executablePath === undefined) {
    const missing =
      'The tests of the console need Chromium: install the package chromium, or name one in CHROMIUM.'
    if (process.env.CI) throw new Error(missing)
    console.error(`skipped: ${missing}`)
  }
  process.env.CHROMIUM = executablePath ?? ''
  // In a process of its own: the bundler sets NODE_ENV, which npm would take from a test.
  execFileSync(process.execPath, [BUILDER, BUILT], { stdio: 'inherit' })
}

export async function setUp(): Promise<void> {
  readyConsole()
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

// `npm run bench:cli`: how long the packed command line takes to start, beside a Node that does nothing.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { writeFleet } from './fleet.ts'
import { median } from './load.ts'
import { startService, TOKEN } from './server-process.ts'

const ROOT = join(import.meta.dirname, '..')
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 60)
const PORT = 18_390
/** Another Node to measure on, by its path. */
const NODE = process.env.BENCH_NODE ?? process.execPath

const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-bench-'))
try {
  await main()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function main(): Promise<void> {
  const cli = install()
  const database = join(folder, 'fleet.db')
  await writeFleet(database, 10)
  const service = await startService('10 clusters', `sqlite://${database}`, PORT)
  const env = {
    HOME: folder,
    PATH: `${dirname(NODE)}:${process.env.PATH}`,
    FLUX_API_URL: `http://127.0.0.1:${PORT}`,
    FLUX_API_TOKEN: TOKEN,
  }
  const commands: [name: string, command: string, args: string[]][] = [
    ['node -e 0', NODE, ['-e', '0']],
    ['flux-resourceset-cli --version', cli, ['--version']],
    ['flux-resourceset-cli cluster list', cli, ['cluster', 'list']],
  ]
  const times = commands.map((): number[] => [])
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [i, [name, command, args]] of commands.entries()) {
        const started = performance.now()
        const { status, stderr } = spawnSync(command, args, { env })
        if (status !== 0) throw new Error(`${name} failed: ${stderr}`)
        // The first round fills the caches.
        if (round > 0) times[i]?.push(performance.now() - started)
      }
    }
  } finally {
    service.child.kill('SIGKILL')
  }
  const [idle = 1, ...others] = times.map(median)
  console.log('| command | median ms | of node -e 0 |\n| --- | ---: | ---: |')
  for (const [i, time] of [idle, ...others].entries()) {
    console.log(`| \`${commands[i]?.[0]}\` | ${time.toFixed(1)} | ${(time / idle).toFixed(2)}× |`)
  }
}

/** Packs and installs as a user would; answers the path of the command. */
function install(): string {
  const npm = (...args: string[]): string =>
    execFileSync('npm', ['--loglevel=error', ...args], { cwd: ROOT, encoding: 'utf8' })
  const packed = npm('pack', '--json', '--silent', '--pack-destination', folder)
  const [{ filename }] = JSON.parse(packed.replace(/^[^[]*/, ''))
  npm('install', '--global', '--prefix', join(folder, 'global'), join(folder, filename))
  return join(folder, 'global/bin/flux-resourceset-cli')
}

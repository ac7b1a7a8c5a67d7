// `npm run bench:cli`: how long the command line takes to start, packed and as a single executable, beside a Node that does
// nothing; and on large fleets a table of many rows, and the completion of one id of very many.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { clusterId, writeFleet } from './fleet.ts'
import { median } from './load.ts'
import { reportTable } from './print.ts'
import { startService, TOKEN } from './server-process.ts'

const ROOT = join(import.meta.dirname, '..')
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 60)
const TABLE = 5000
const LARGE = Number(process.env.BENCH_LARGE ?? 100_000)
const PORT = 18_390
/** Another Node to measure on, by its path. */
const NODE = process.env.BENCH_NODE ?? process.execPath

interface Timed {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
}

const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-bench-'))
try {
  await main()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function main(): Promise<void> {
  const cli = install()
  const exe = join(folder, 'frs')
  execFileSync(NODE, [join(ROOT, 'tools/cli/build-executable.ts'), exe])
  const list = ['cluster', 'list']
  const [idle = 1, ...others] = await timesOf(10, ROUNDS, [
    { name: 'node -e 0', command: NODE, args: ['-e', '0'] },
    { name: 'flux-resourceset-cli --version', command: cli, args: ['--version'] },
    { name: 'flux-resourceset-cli cluster list', command: cli, args: list },
    { name: 'the executable, --version', command: exe, args: ['--version'] },
    { name: 'the executable, cluster list', command: exe, args: list },
  ])
  const rounds = Math.ceil(ROUNDS / 6)
  const [table = 0] = await timesOf(TABLE, rounds, [{ name: 'a table', command: cli, args: list }])
  const words = ['--', 'cluster', 'get', clusterId(LARGE - 1)]
  const [completion = 0] = await timesOf(LARGE, rounds, [
    { name: 'completion', command: cli, args: ['__complete', ...words] },
  ])
  const names = [
    '`--version`',
    '`cluster list`',
    'single executable: `--version`',
    'single executable: `cluster list`',
  ]
  const size = (count: number): string => count.toLocaleString('en')
  const rows = [
    ['`node -e 0`', idle.toFixed(1), '1.00×'],
    ...others.map((time, i) => [names[i] ?? '', time.toFixed(1), `${(time / idle).toFixed(2)}×`]),
    [`\`cluster list\` of ${size(TABLE)} clusters`, table.toFixed(0), ''],
    [`completion of one of ${size(LARGE)} ids`, completion.toFixed(0), ''],
  ]
  reportTable('cli', ['command', 'median ms', 'of `node -e 0`'], rows, 1)
}

/** The medians of commands on a fleet of so many clusters, run in turns. */
async function timesOf(clusters: number, rounds: number, commands: readonly Timed[]): Promise<number[]> {
  const database = join(folder, `fleet-${clusters}.db`)
  await writeFleet(database, clusters)
  const service = await startService(`${clusters} clusters`, `sqlite://${database}`, PORT)
  const env = {
    HOME: folder,
    PATH: `${dirname(NODE)}:${process.env.PATH}`,
    FLUX_API_URL: `http://127.0.0.1:${PORT}`,
    FLUX_API_TOKEN: TOKEN,
  }
  const times = commands.map((): number[] => [])
  try {
    for (let round = 0; round <= rounds; round++) {
      for (const [i, { name, command, args }] of commands.entries()) {
        const started = performance.now()
        const { status, stdout, stderr } = spawnSync(command, args, { env, maxBuffer: 2 ** 28 })
        if (status !== 0 || (name !== 'node -e 0' && stdout.length === 0))
          throw new Error(`${name} failed: ${stderr}`)
        // The first round fills the caches.
        if (round > 0) times[i]?.push(performance.now() - started)
      }
    }
  } finally {
    service.child.kill('SIGKILL')
  }
  return times.map(median)
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

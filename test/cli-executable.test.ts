// The command line as a single executable: one file that needs neither Node nor packages nor a server to know its types.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { CLI } from './cli-process.ts'
import { READ_TOKEN, smallFleet, startUnheld, temporaryFolder } from './service.ts'

const ROOT = join(import.meta.dirname, '..')
const run = promisify(execFile)

describe('the single executable', { skip: process.platform !== 'linux' && 'is made for Linux' }, () => {
  const folder = temporaryFolder({ after })
  const program = join(folder, 'bin/frs')
  const home = join(folder, 'home')
  /** No Node is to be found. */
  const frs = async (args: readonly string[], env: Record<string, string> = {}): Promise<string> =>
    (await run(program, args, { env: { PATH: '/nonexistent', HOME: home, ...env } })).stdout
  const kept = (): string => {
    const names = readdirSync(join(home, '.cache/flux-resourceset/compiled'))
    assert.equal(names.length, 1, names.join())
    return join(home, '.cache/flux-resourceset/compiled', String(names[0]))
  }

  before(async () => {
    await run(process.execPath, [join(ROOT, 'tools/cli/build-executable.ts'), program])
  })

  test('says its version', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    assert.equal(await frs(['--version'], { HOME: '' }), `${version}\n`)
  })

  test('knows the built-in types without a server', async () => {
    const help = await frs(['component', 'create', '--help'], { FLUX_API_URL: 'http://127.0.0.1:9' })
    assert.match(help, /--component-path <text>/)
  })

  test('lists the clusters of a service, also as YAML', async (t) => {
    const { url } = await startUnheld(t, { fleet: smallFleet() })
    const env = { FLUX_API_URL: url, FLUX_API_TOKEN: READ_TOKEN }
    assert.match(await frs(['cluster', 'list'], env), /^one +dev /m)
    assert.match(await frs(['cluster', 'get', 'one', '-o', 'yaml'], env), /^id: one$/m)
  })

  test('keeps the code that it has compiled, and compiles it again where the file is broken', async () => {
    const help = await frs(['cluster', '--help'])
    const code = readFileSync(kept())
    await frs(['cluster', '--help'])
    assert.deepEqual(readFileSync(kept()), code)
    truncateSync(kept(), 1000)
    assert.equal(await frs(['cluster', '--help']), help)
    assert.ok(readFileSync(kept()).length > 100_000)
  })
})

test('a Node that is too old is named in one line', async (t) => {
  const pretend = join(temporaryFolder(t), 'pretend.cjs')
  const versions = "{ ...process.versions, node: '22.1.0' }"
  writeFileSync(
    pretend,
    `Object.defineProperty(process, 'versions', { value: ${versions} })
     Object.defineProperty(process, 'version', { value: 'v22.1.0' })`,
  )
  await assert.rejects(run(process.execPath, ['--require', pretend, CLI, 'cluster', 'list']), {
    code: 2,
    stdout: '',
    stderr: `Error: this needs Node 24.12 or newer, and runs on v22.1.0: ${process.execPath}\n`,
  })
})

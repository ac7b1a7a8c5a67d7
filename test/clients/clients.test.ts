// Clients made from the description of the API by the commands in docs/api.md: they compile, and they work.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type ServiceProcess, spawnService, WRITE_TOKEN } from '../service.ts'

const ROOT = join(import.meta.dirname, '../..')
const EXAMPLE = join(ROOT, 'examples/network-policies')

/** Programs that the page on tasks gives without a generated client, and what they print. */
const SNIPPETS = [
  { name: 'Python', kind: 'python', run: ['python3', 'change.py'], printed: /^200 \{'replicaCount': '4'\}$/ },
  { name: 'Go', kind: 'go', run: ['go', 'run', 'change.go'], printed: /^200 OK \{"replicaCount":"4"\}$/ },
] as const

interface Language {
  readonly name: string
  /** The program that the tests bring, in examples/clients and in tools/clients. */
  readonly program: string
  /** What its commands begin with in the documentation. */
  readonly first: string
  readonly needs: readonly (readonly [command: string, ...args: string[]])[]
  /** Whether what is installed is kept for the next run. */
  readonly kept: boolean
}

const LANGUAGES: readonly Language[] = [
  {
    name: 'TypeScript',
    program: 'fleet.ts',
    first: 'npm install',
    needs: [['npm', '--version']],
    kept: true,
  },
  {
    name: 'Python',
    program: 'fleet.py',
    first: 'python3 -m venv',
    needs: [['python3', '-c', 'import sys, venv, ensurepip; assert sys.version_info >= (3, 10)']],
    kept: true,
  },
  {
    name: 'Go',
    program: 'main.go',
    first: 'go mod init',
    needs: [
      ['go', 'version'],
      ['curl', '--version'],
    ],
    kept: false,
  },
]

function commandsOf({ name, first }: Language): string {
  const page = readFileSync(join(ROOT, 'docs/api.md'), 'utf8')
  const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block as string)
  return (
    blocks.find((block) => block.startsWith(first)) ?? assert.fail(`docs/api.md has no commands for ${name}`)
  )
}

function workFolder(t: TestContext, { name, kept }: Language): string {
  if (kept) {
    const folder = join(ROOT, '.tools/clients', name.toLowerCase())
    mkdirSync(folder, { recursive: true })
    return folder
  }
  const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-client-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function startDemo(t: TestContext, more: Record<string, string> = {}): Promise<ServiceProcess> {
  const service = await spawnService({
    API_MODE: 'crud',
    STORE_BACKEND: 'memory',
    SEED_FILE: join(ROOT, 'data/seed.json'),
    ...more,
  })
  t.after(() => service.stop())
  return service
}

/** A program of docs/api-by-task.md, as it is written there, run by the language's own tool. */
function runSnippet(
  kind: string,
  run: readonly [string, ...string[]],
  t: TestContext,
  service: ServiceProcess,
): string {
  const page = readFileSync(join(ROOT, 'docs/api-by-task.md'), 'utf8')
  const [, snippet] = new RegExp(`\`\`\`${kind}\\n([^]*?)\`\`\``).exec(page) ?? assert.fail(kind)
  const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-client-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const [command, ...args] = run
  const file = args.at(-1) as string
  writeFileSync(join(folder, file), snippet as string)
  const env = { ...process.env, GOWORK: 'off', FLUX_API_URL: service.url, FLUX_API_WRITE_TOKEN: WRITE_TOKEN }
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: folder,
    encoding: 'utf8',
    env,
    timeout: 300_000,
  })
  assert.equal(status, 0, stderr)
  return stdout.trim()
}

/** Runs the documented commands around a program, and answers what the last of them printed. */
function make(language: Language, folder: string, program: string, service: ServiceProcess): string[] {
  copyFileSync(program, join(folder, language.program))
  const manifest = join(folder, 'package.json')
  if (language.program.endsWith('.ts') && !existsSync(manifest))
    writeFileSync(manifest, '{"private":true,"type":"module"}')
  if (!language.kept) rmSync(join(folder, 'go.mod'), { force: true })
  const lines = commandsOf(language).trim().split('\n')
  const script = [...lines.slice(0, -1).map((line) => `${line} >&2`), lines.at(-1)].join('\n')
  const { status, stdout, stderr } = spawnSync('bash', ['-euc', script], {
    cwd: folder,
    encoding: 'utf8',
    env: {
      ...process.env,
      PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`,
      NODE_COMPILE_CACHE: '',
      GOFLAGS: '-mod=mod',
      GOWORK: 'off',
      api: service.url,
      FLUX_API_URL: service.url,
      FLUX_API_WRITE_TOKEN: WRITE_TOKEN,
    },
    timeout: 900_000,
    maxBuffer: 64 * 1024 * 1024,
  })
  assert.equal(status, 0, `${stdout}\n${stderr.slice(-6000)}`)
  return stdout.trim().split('\n')
}

for (const language of LANGUAGES) {
  const missing = language.needs
    .filter(([command, ...args]) => spawnSync(command, args).status !== 0)
    .map((words) => words.join(' '))
  const skip = missing.length > 0 && `no toolchain: \`${missing.join('` and `')}\` failed`

  test(`a client in ${language.name} is made, compiled and used as documented`, { skip }, async (t) => {
    const folder = workFolder(t, language)
    const service = await startDemo(t)
    const program = join(ROOT, 'examples/clients', language.program)
    assert.deepEqual(make(language, folder, program, service), [
      'clusters: demo-cluster-01 dev-us-01',
      'labels: lab',
      'inputs: lab',
    ])
    const { body } = await service.call('GET', '/clusters/lab-01')
    assert.deepEqual([body.labels, body.namespaces], [{ team: 'lab' }, [{ id: 'lab' }]])
    assert.equal((await service.call('GET', '/ready')).body.revision, 4)
  })

  test(`a client in ${language.name} knows a type of one's own`, { skip }, async (t) => {
    const folder = workFolder(t, language)
    const service = await startDemo(t, { RESOURCES_DIR: EXAMPLE, TEMPLATES_DIR: join(EXAMPLE, 'templates') })
    const program = join(ROOT, 'tools/clients', language.program)
    assert.deepEqual(make(language, folder, program, service), ['201', '200', '201', 'traefik'])
  })
}

for (const { name, kind, run, printed } of SNIPPETS) {
  const skip = spawnSync(run[0], [run[0] === 'go' ? 'version' : '--version']).status !== 0 && `no ${run[0]}`
  test(`the program in ${name} on the page of tasks changes what it says`, { skip }, async (t) => {
    const service = await startDemo(t)
    assert.match(runSnippet(kind, run, t, service), printed)
  })
}

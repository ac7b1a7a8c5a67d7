// The image, as far as it can be made without Docker: the stages of the Dockerfile, run in folders instead of containers.
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { parseConfig } from '../src/config/config.ts'
import { portIn } from './service.ts'

const ROOT = join(import.meta.dirname, '..')
const readJson = (path: string) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
const { version, description, license, files } = readJson('package.json')

interface Step {
  readonly instruction: string
  readonly words: string
}

/** The steps of each stage; those before the first one belong to all. */
const [global = [], ...stages] = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll(/\\\n\s*/g, '')
  .split('\n')
  .filter(Boolean)
  .map((line): Step => {
    const [, instruction = '', words = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? []
    return { instruction, words }
  })
  .reduce<Step[][]>(
    (parts, step) => {
      if (step.instruction === 'FROM') parts.push([])
      parts.at(-1)?.push(step)
      return parts
    },
    [[]],
  )
const final = stages.at(-1) ?? []
const wordsOf = (steps: readonly Step[], instruction: string): string[] =>
  steps.filter((step) => step.instruction === instruction).map(({ words }) => words)
const nameOf = (stage: readonly Step[]): string => /AS (\w+)$/.exec(stage[0]?.words ?? '')?.[1] ?? 'final'

const patterns = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
  .split('\n')
  .filter((line) => line && !line.startsWith('#'))

/** Whether a file is sent to the build: the last pattern that matches it or a folder above it decides. */
function isSent(path: string): boolean {
  const decisive = patterns.findLast((pattern) => {
    const expression = RegExp.escape(pattern.replace('!', ''))
      .replaceAll('\\*\\*\\/', '(?:.*/)?')
      .replaceAll('\\*', '[^/]*')
    return new RegExp(`^${expression}(?:/|$)`).test(path)
  })
  return decisive?.startsWith('!') ?? true
}

const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-image-'))
const rootOf = (stage: string): string => join(folder, stage)
const context = rootOf('context')
after(() => rmSync(folder, { recursive: true, force: true }))

/** Copies what Docker would be given of a folder. */
function sendContext(folder = ''): void {
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (!entry.isDirectory()) {
      if (isSent(path)) cpSync(join(ROOT, path), join(context, path))
    } else if (isSent(path) || patterns.some((pattern) => pattern.startsWith(`!${path}/`))) {
      sendContext(path)
    }
  }
}

/** Runs a stage below its folder. The commands of the last one are for a container's own system. */
async function runStage(stage: readonly Step[]): Promise<void> {
  const root = rootOf(nameOf(stage))
  let folder = root
  for (const { instruction, words } of stage) {
    if (instruction === 'WORKDIR') {
      folder = join(root, words)
      mkdirSync(folder, { recursive: true })
    } else if (instruction === 'COPY') {
      copy(words, root, folder)
    } else if (instruction === 'RUN' && stage !== final) {
      assert.doesNotMatch(words, /(?:^|\s)\//, 'a stage stays in its folder')
      const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` }
      await promisify(execFile)('sh', ['-c', words], { cwd: folder, env })
    }
  }
}

function copy(words: string, root: string, folder: string): void {
  const [, from, paths = ''] = /^(?:--from=(\w+) )?(.*)$/.exec(words) ?? []
  const sources = paths.split(' ')
  const target = sources.pop() ?? ''
  for (const source of sources) {
    const path = join(from ? rootOf(from) : context, source)
    const into = target.startsWith('/') ? join(root, target) : join(folder, target)
    cpSync(path, target.endsWith('/') ? join(into, basename(source)) : into, { recursive: true })
  }
}

const app = join(rootOf('final'), 'app')
/** What the image has on its path, and where that lies here. */
const commands = Object.fromEntries(
  [
    ...wordsOf(final, 'RUN')
      .join(' ')
      .matchAll(/ln -s (\/app\S+) \/usr\/local\/bin\/(\S+)/g),
  ].map(([, target, name]) => [name as string, join(rootOf('final'), target as string)]),
)

const run = (name: string, ...args: string[]): string =>
  execFileSync(process.execPath, [commands[name] ?? '', ...args], { encoding: 'utf8', env: { HOME: '/' } })

describe('the image', { timeout: 300_000 }, () => {
  before(async () => {
    sendContext()
    await Promise.all(stages.filter((stage) => stage !== final).map(runStage))
    await runStage(final)
  })

  test('is made with the Node that a checkout runs on, in every stage', () => {
    const image = /^NODE_IMAGE=docker\.io\/library\/node:([\d.]+)-\w+-slim$/
    const [, node] = image.exec(wordsOf(global, 'ARG').join()) ?? []
    const pinned = Object.values<string>(readJson('tools/node/package.json').optionalDependencies)
    assert.deepEqual([...new Set(pinned)], [node])
    for (const stage of stages) assert.match(stage[0]?.words ?? '', /^\$\{NODE_IMAGE\}(?: AS \w+)?$/)
  })

  test('is made of the sources, and of nothing that lies around in a checkout', () => {
    const sent = readdirSync(context, { recursive: true, encoding: 'utf8' })
    assert.ok(sent.includes('src/main.ts') && sent.includes('.npmrc'))
    assert.deepEqual(
      sent.filter((path) =>
        /(?:^|\/)(?:\.git|node_modules|dist|test|\.env|\.tools)\b|\.test\.ts$|\.db/.test(path),
      ),
      [],
    )
  })

  test('holds what the package holds, and the demo fleet', () => {
    for (const path of [...files, 'package.json', 'LICENSE', 'data/seed.json']) {
      assert.ok(existsSync(join(app, path)), path)
    }
    assert.ok(!existsSync(join(app, 'src')))
  })

  test('holds the packages that the service runs with, and no other', () => {
    const packages = readdirSync(join(app, 'node_modules'))
    for (const name of Object.keys(readJson('package.json').dependencies)) {
      assert.ok(existsSync(join(app, 'node_modules', name, 'package.json')), name)
    }
    assert.deepEqual(
      packages.filter((name) =>
        /^node-|pinned-node|typescript|esbuild|biome|^commander$|^eventsource-parser$/.test(name),
      ),
      [],
    )
  })

  test('is made without running scripts of packages, and the service needs none of them', () => {
    const installs = stages
      .flatMap((stage) => wordsOf(stage, 'RUN'))
      .filter((words) => /\bnpm ci\b/.test(words))
    assert.equal(installs.length, 2)
    for (const words of installs) assert.match(words, / --ignore-scripts\b/)
    const packages: Record<string, { hasInstallScript?: boolean; dev?: boolean }> =
      readJson('package-lock.json').packages
    assert.deepEqual(
      Object.keys(packages).filter((name) => packages[name]?.hasInstallScript && !packages[name]?.dev),
      [],
    )
  })

  test('has all commands on its path', () => {
    assert.deepEqual(Object.keys(commands), Object.keys(readJson('package.json').bin))
    for (const [name, path] of Object.entries(commands)) {
      assert.ok(statSync(path).mode & 0o001, `${relative(folder, path)} can be executed by anybody`)
      assert.equal(run(name, '--version').trim(), version)
      assert.match(run(name, '--help'), /^Usage:/m)
    }
  })

  test('runs the service itself, as a user without rights, on a folder of its own', () => {
    const only = (instruction: string): string | undefined => wordsOf(final, instruction)[0]
    assert.ok(JSON.parse(only('ENTRYPOINT') ?? '')[0] in commands)
    assert.match(only('USER') ?? '', /^[1-9]\d+:[1-9]\d+$/)
    const [name, value] = (only('ENV') ?? '').split('=', 2)
    const parsed = parseConfig({ AUTH_TOKEN: 'a', [name as string]: value })
    assert.ok(parsed.ok && parsed.config.store.backend === 'sqlite')
    assert.equal(dirname(parsed.config.store.path), only('VOLUME'))
    assert.ok('port' in parsed.config.listen)
    assert.equal(String(parsed.config.listen.port), only('EXPOSE'))
  })

  test('says what it is', () => {
    const labels = wordsOf(final, 'LABEL').join()
    for (const text of [description, license]) assert.ok(labels.includes(`"${text}"`), text)
  })

  test('serves the demo fleet, is backed up as docs/deploying.md says, and stops when told to', async () => {
    const database = join(folder, 'fleet.db')
    const service = spawn(process.execPath, [commands['flux-resourceset'] ?? ''], {
      env: {
        API_MODE: 'crud',
        AUTH_TOKEN: 'a-read-token',
        DATABASE_URL: `sqlite://${database}`,
        SEED_FILE: join(app, 'data/seed.json'),
        LISTEN_ADDR: '127.0.0.1:0',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exited = once(service, 'exit')
    let output = ''
    service.stdout.on('data', (chunk) => {
      output += chunk
    })
    try {
      while (portIn(output) === undefined) {
        assert.equal(service.exitCode, null, 'the service stopped at once')
        await sleep(20)
      }
      const polled = await fetch(`http://127.0.0.1:${portIn(output)}/api/v2/flux/clusters`, {
        headers: { authorization: 'Bearer a-read-token' },
      })
      assert.equal(polled.status, 200)
      backUp(database, join(folder, 'backup.db'))
    } finally {
      service.kill('SIGTERM')
    }
    assert.deepEqual(await exited, [0, null])
    const verified = execFileSync(process.execPath, [commands['flux-resourceset'] ?? '', 'verify'], {
      encoding: 'utf8',
      env: { DATABASE_URL: `sqlite://${join(folder, 'backup.db')}` },
    })
    assert.match(verified, /^verified: 1 revisions/)
  })
})

/** With the program of the docs, on other paths. */
function backUp(database: string, backup: string): void {
  const page = readFileSync(join(ROOT, 'docs/deploying.md'), 'utf8')
  const [, program = ''] = /-- node -e "([^"]+)"/.exec(page) ?? []
  const here = program
    .replace('/var/lib/flux-resourceset/fleet.db', database)
    .replace('/tmp/backup.db', backup)
  execFileSync(process.execPath, ['-e', here])
  assert.ok(existsSync(backup))
}

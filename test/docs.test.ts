// Every `$ command` of the documentation, run on a fresh demo fleet: what is printed must be what is written.
import assert from 'node:assert/strict'
import { execFileSync, type SpawnSyncOptionsWithStringEncoding, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { CLI, onTerminal } from './cli-process.ts'
import { type ServiceProcess, spawnService, temporaryFolder } from './service.ts'

const ROOT = join(import.meta.dirname, '..')
const READ_TOKEN = 'demo-read-token'
const WRITE_TOKEN = 'demo-write-token'
/** Writes down what is printed instead of comparing it. */
const UPDATE = process.env.DOCS_UPDATE === '1'

const pages = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)]
  .filter((page) => page.endsWith('.md'))
  .filter((page) => readFileSync(join(ROOT, page), 'utf8').includes('```console'))

function isMissing(tool: string): boolean {
  return spawnSync(tool, ['--version']).status !== 0
}

const missing = ['bash', 'curl', 'jq'].filter(isMissing)
const skip = missing.length > 0 && `needs ${missing.join(' and ')}`

interface Step {
  readonly command: string
  readonly expected: string
}

/** Commands start with `$ ` and go on while a quote is open, or after a backslash or a pipe. */
function stepsIn(block: string): Step[] {
  const steps: Step[] = []
  const lines = block.split('\n')
  for (let i = 0; i < lines.length; ) {
    let command = (lines[i++] ?? '').replace(/^\$ /, '')
    while (isOpen(command) && i < lines.length && !lines[i]?.startsWith('$ ')) command += `\n${lines[i++]}`
    const output: string[] = []
    while (i < lines.length && !lines[i]?.startsWith('$ ')) output.push(lines[i++] as string)
    steps.push({ command, expected: output.join('\n') })
  }
  return steps
}

function isOpen(command: string): boolean {
  return /[\\|]$/.test(command) || command.split("'").length % 2 === 0
}

/** Run on its own by a reader, a command that is cut off waits for more, or takes what follows for its rest. */
function assertWhole(command: string): void {
  const { status, stderr } = spawnSync('bash', ['-n', '-c', command], { encoding: 'utf8' })
  assert.ok(!isOpen(command) && status === 0, `not a whole command: $ ${command}\n${stderr}`)
}

test('a command that is cut off is not run', { skip }, () => {
  for (const block of [
    '$ curl -s "$api/clusters" |',
    '$ curl -s "$api/clusters" |\n$ jq .',
    '$ curl -s \\',
    "$ curl -s -d '{",
    '$ echo "',
    '$ echo $(date',
    '$ tier() { echo',
  ]) {
    const [first] = stepsIn(block)
    assert.throws(() => assertWhole(first?.command ?? ''), /not a whole command/)
  }
})

/** Runs all commands in one shell; answers what each of them prints. */
function runAll(commands: readonly string[], env: Record<string, string>): string[] {
  const mark = '@@@ end of output @@@'
  const script = commands.map((command) => `${command}\necho; echo '${mark}'\n`).join('')
  const { stdout } = spawnSync('bash', ['-c', `exec 2>&1\n${script}`], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    timeout: 60_000,
    // Nobody is there to answer questions, wherever the tests run.
    detached: true,
  } as SpawnSyncOptionsWithStringEncoding)
  return stdout.split(`${mark}\n`).map((output) => output.trim())
}

/** An ellipsis stands for whatever changes from run to run. */
function isAsWritten(printed: string, expected: string): boolean {
  const pattern = expected.trim().split('…').map(RegExp.escape).join('.*')
  return new RegExp(`^${pattern}$`).test(printed)
}

function startDemo(database: string, more: Record<string, string> = {}): Promise<ServiceProcess> {
  return spawnService({
    API_MODE: 'crud',
    AUTH_TOKEN: READ_TOKEN,
    CRUD_AUTH_TOKEN: WRITE_TOKEN,
    SEED_FILE: join(ROOT, 'data/seed.json'),
    DATABASE_URL: `sqlite://${database}`,
    ...more,
  })
}

for (const page of pages) {
  test(`the commands of ${page} print what is written there`, { skip, timeout: 120_000 }, async (t) => {
    const folder = temporaryFolder(t)
    const database = join(folder, 'demo.db')
    const example = join(ROOT, 'examples/network-policies')
    const service = await startDemo(database, {
      RESOURCES_DIR: example,
      TEMPLATES_DIR: join(example, 'templates'),
    })
    t.after(() => service.stop())
    const text = readFileSync(join(ROOT, page), 'utf8')
    const blocks = [...text.matchAll(/```console\n([\s\S]*?)\n```/g)].map(([, block]) =>
      stepsIn(block as string),
    )
    for (const { command } of blocks.flat()) assertWhole(command)
    const bin = join(folder, 'bin')
    mkdirSync(bin)
    symlinkSync(CLI, join(bin, 'flux-resourceset-cli'))
    const printed = runAll(
      blocks.flat().map(({ command }) => command),
      {
        api: service.url,
        read: `Authorization: Bearer ${READ_TOKEN}`,
        write: `Authorization: Bearer ${WRITE_TOKEN}`,
        json: 'Content-Type: application/json',
        DATABASE_URL: `sqlite://${database}`,
        XDG_CONFIG_HOME: folder,
        XDG_CACHE_HOME: folder,
        FLUX_API_URL: service.url,
        FLUX_API_TOKEN: READ_TOKEN,
        FLUX_API_WRITE_TOKEN: WRITE_TOKEN,
        PATH: `${bin}:${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`,
      },
    )
    let next = 0
    const outcomes = blocks.map((steps) => steps.map((step) => ({ ...step, printed: printed[next++] ?? '' })))
    if (UPDATE) return update(page, text, outcomes, 'console')
    for (const { command, expected, printed: output } of outcomes.flat()) {
      if (!isAsWritten(output, expected)) assert.equal(output, expected.trim(), `$ ${command}`)
    }
  })
}

/** A session on a terminal: what somebody types is a part of what is on the screen. */
test('the session of README.md is what a terminal shows', { skip, timeout: 120_000 }, async (t) => {
  const folder = temporaryFolder(t)
  const service = await startDemo(join(folder, 'demo.db'))
  t.after(() => service.stop())
  const text = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const [, block = ''] = /```text\n(\$ flux-resourceset-cli[\s\S]*?)\n```/.exec(text) ?? []
  const outcomes: (Step & { printed: string })[] = []
  for (const step of stepsIn(block)) {
    assertWhole(step.command)
    const words = execFileSync('bash', ['-c', `printf '%s\\0' ${step.command}`], { encoding: 'utf8' })
    const { screen } = await onTerminal(words.split('\0').slice(1, -1), {
      columns: 120,
      env: {
        NO_COLOR: '1',
        FLUX_API_URL: service.url,
        FLUX_API_TOKEN: READ_TOKEN,
        FLUX_API_WRITE_TOKEN: WRITE_TOKEN,
      },
      typing: [['Type "yes" to go on: ', 'yes\r']],
    })
    outcomes.push({ ...step, printed: onScreen(screen).trim() })
  }
  if (UPDATE) return update('README.md', text, [outcomes], 'text')
  assert.ok(outcomes.length > 3)
  for (const { command, expected, printed } of outcomes) {
    if (!isAsWritten(printed, expected)) assert.equal(printed, expected.trim(), `$ ${command}`)
  }
})

/** Without what only moves the cursor. */
function onScreen(screen: string): string {
  return stripVTControlCharacters(screen)
    .replaceAll(/^.*\r(?!\n)/gm, '')
    .replaceAll('\r', '')
}

function update(
  page: string,
  text: string,
  outcomes: (Step & { printed: string })[][],
  kind: 'console' | 'text',
): void {
  let next = 0
  const blocks = new RegExp(`\`\`\`${kind}\\n\\$ [\\s\\S]*?\\n\`\`\``, 'g')
  const updated = text.replaceAll(blocks, () => {
    const steps = (outcomes[next++] ?? []).map(({ command, expected, printed }) => {
      const output = isAsWritten(printed, expected) ? expected : printed
      return `$ ${command}${output === '' ? '' : `\n${output}`}`
    })
    return `\`\`\`${kind}\n${steps.join('\n')}\n\`\`\``
  })
  writeFileSync(join(ROOT, page), updated)
}

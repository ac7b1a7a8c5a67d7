// Every `$ command` of the documentation, run on a fresh demo fleet: what is printed must be what is written.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { CLI, onTerminal } from './cli-process.ts'
import { type ServiceProcess, spawnService, temporaryFolder } from './service.ts'

const ROOT = join(import.meta.dirname, '..')
const READ_TOKEN = 'demo-read-token'
const WRITE_TOKEN = 'demo-write-token'
/** Writes down what is printed instead of comparing it. */
const UPDATE = process.env.DOCS_UPDATE === '1'

const everyPage = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)].filter(
  (page) => page.endsWith('.md'),
)
const pages = everyPage.filter((page) => contentOf(page).includes('```console'))

function contentOf(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
}

interface Step {
  readonly command: string
  readonly expected: string
}

/** `console` is run without a terminal. `text` is a session on one: what somebody types is a part of what is on the screen. */
const BLOCKS = /```(console|text)\n(\$ [\s\S]*?)\n```/g

interface Block {
  readonly kind: string
  readonly steps: readonly Step[]
}

/** In reading order; sessions with a server of their own are left out. */
function blocksIn(text: string): Block[] {
  return [...text.matchAll(BLOCKS)]
    .map(([, kind = '', block = '']) => ({ kind, steps: stepsIn(block) }))
    .filter(isRun)
}

function isRun({ kind, steps }: Block): boolean {
  return kind === 'console' || !steps.some(({ command }) => command.includes('--api-url'))
}

/** Commands start with `$ ` and go on while a quote is open, or after a backslash or a pipe. */
function stepsIn(block: string): Step[] {
  const steps: Step[] = []
  const lines = block.split('\n')
  for (let i = 0; i < lines.length; ) {
    let command = (lines[i++] ?? '').replace(/^\$ /, '')
    while (isOpen(command) && i < lines.length) command += `\n${lines[i++]}`
    const output: string[] = []
    while (i < lines.length && !lines[i]?.startsWith('$ ')) output.push(lines[i++] as string)
    steps.push({ command, expected: output.join('\n') })
  }
  return steps
}

function isOpen(command: string): boolean {
  return /[\\|]$/.test(command) || command.split("'").length % 2 === 0
}

/** A shell that keeps its variables from command to command. Nobody is there to answer questions, wherever the tests run. */
function openShell(t: TestContext, env: Record<string, string>): (command: string) => Promise<string> {
  const mark = '@@@ end of output @@@'
  const loop = `exec 3<&0 </dev/null 2>&1
    while IFS= read -r -d '' -u 3 command; do eval "$command" 3<&-; echo; echo '${mark}'; done`
  const shell = spawn('bash', ['-c', loop], { cwd: ROOT, env: { ...process.env, ...env }, detached: true })
  t.after(() => shell.kill())
  let output = ''
  let running = Promise.withResolvers<string>()
  shell.stdout.setEncoding('utf8').on('data', (chunk) => {
    output += chunk
    if (output.endsWith(`${mark}\n`)) running.resolve(output.slice(0, -mark.length - 1).trim())
  })
  shell.on('close', () => running.reject(new Error(`the shell ended: ${output}`)))
  return (command) => {
    output = ''
    running = Promise.withResolvers()
    shell.stdin.write(`${command}\0`)
    return running.promise
  }
}

/** Runs a command on a terminal, and answers its questions as it is written. */
async function typeIn({ command, expected }: Step, env: Record<string, string>): Promise<string> {
  const answers = [...expected.matchAll(/to go on: ?(.*)$/gm)]
  const typing = answers.map(([, typed]) => ['to go on: ', `${typed}\r`] as const)
  const { screen } = await onTerminal([], { columns: 120, env, typing, line: () => command })
  return onScreen(screen).trim()
}

/** An ellipsis stands for whatever changes from run to run; on a line of its own, for any lines. */
function isAsWritten(printed: string, expected: string): boolean {
  const lines = expected.trim().split('\n').map(patternOf)
  return new RegExp(`^${lines.join('\n')}$`).test(printed)
}

function patternOf(line: string): string {
  return line.trim() === '…' ? '[^]*' : line.split('…').map(RegExp.escape).join('.*')
}

function isMissing(tool: string): boolean {
  return spawnSync(tool, ['--version']).status !== 0
}

const missing = ['bash', 'curl', 'jq'].filter(isMissing)
const skip = missing.length > 0 && `needs ${missing.join(' and ')}`

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

const example = join(ROOT, 'examples/network-policies')
const EXAMPLE_TYPE = { RESOURCES_DIR: example, TEMPLATES_DIR: join(example, 'templates') }

for (const page of pages) {
  test(`the commands of ${page} print what is written there, run in reading order`, {
    skip,
    timeout: 120_000,
  }, async (t) => {
    const folder = temporaryFolder(t)
    const database = join(folder, 'demo.db')
    const service = await startDemo(database, page === 'README.md' ? {} : EXAMPLE_TYPE)
    t.after(() => service.stop())
    const env = surroundings(folder, database, service)
    const shell = openShell(t, env)
    const blocks: Printed[][] = []
    for (const { kind, steps } of blocksIn(contentOf(page))) {
      const outcomes: Printed[] = []
      for (const step of steps) {
        const printed = kind === 'text' ? await typeIn(step, env) : await shell(step.command)
        outcomes.push({ ...step, printed })
      }
      blocks.push(outcomes)
    }
    for (const { command } of blocks.flat()) assert.ok(!isOpen(command), `cut off: $ ${command}`)
    if (UPDATE) return update(page, blocks)
    for (const { command, expected, printed } of blocks.flat()) {
      if (!isAsWritten(printed, expected)) assert.equal(printed, expected.trim(), `$ ${command}`)
    }
  })
}

/** What `make run` prints, and where the programs are. */
function surroundings(folder: string, database: string, service: ServiceProcess): Record<string, string> {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  symlinkSync(CLI, join(bin, 'flux-resourceset-cli'))
  return {
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
    NO_COLOR: '1',
    PATH: `${bin}:${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`,
  }
}

/** Every command that a page gives, those that are not run here among them. */
function commandsOf(page: string): string[] {
  const scripts = [...contentOf(page).matchAll(/```sh\n([\s\S]*?)\n```/g)].map(([, script = '']) => script)
  const sessions = [...contentOf(page).matchAll(BLOCKS)].flatMap(([, , block = '']) => stepsIn(block))
  return [...scripts, ...sessions.map(({ command }) => command)].map((command) =>
    command.replaceAll(/\\\n */g, ''),
  )
}

/** The fleet of a reader has another log: the same number is somebody else's revision there. */
test('no command of the pages reads or takes back a revision by a fixed number', () => {
  const fixed =
    /\/revisions\/\d|\bat=\d|--at \d|\b(?:revert|show) \d|\brollback\b.*(--to \d|to_revision\W+\d)/
  const found = everyPage.flatMap((page) => commandsOf(page).filter((command) => fixed.test(command)))
  assert.deepEqual(found, [])
})

/** Who has a DATABASE_URL may be an operator, and it is the real one. */
test('no command of the pages gives up or overwrites what is in the database of its reader', () => {
  const writes = /flux-resourceset (?:prune-history|restore|migrate)\b|flux-resourceset copy\b/
  const harmless = /--dry-run|DATABASE_URL=sqlite:\/\/\$work\/|--to "sqlite:\/\/\$work\//
  const lines = everyPage.flatMap((page) => commandsOf(page).flatMap((command) => command.split('\n')))
  const found = lines.filter((line) => writes.test(line))
  assert.ok(found.length > 3)
  assert.deepEqual(
    found.filter((line) => !harmless.test(line)),
    [],
  )
})

/** Without what only moves the cursor. */
function onScreen(screen: string): string {
  return stripVTControlCharacters(screen)
    .replaceAll(/^.*\r(?!\n)/gm, '')
    .replaceAll('\r', '')
}

type Printed = Step & { readonly printed: string }

function update(page: string, outcomes: readonly (readonly Printed[])[]): void {
  let next = 0
  const updated = contentOf(page).replaceAll(BLOCKS, (block, kind, content) => {
    if (!isRun({ kind, steps: stepsIn(content) })) return block
    const steps = (outcomes[next++] ?? []).map(({ command, expected, printed }) => {
      const output = isAsWritten(printed, expected) ? expected : printed
      return `$ ${command}${output === '' ? '' : `\n${output}`}`
    })
    return `\`\`\`${kind}\n${steps.join('\n')}\n\`\`\``
  })
  writeFileSync(join(ROOT, page), updated)
}

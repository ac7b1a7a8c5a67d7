// A reader of the documentation: a checkout, `make run` in one terminal, a shell in another, and nothing else.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import { onTerminal } from './cli-process.ts'
import { ROOT, type Step } from './docs-pages.ts'
import { findPort } from './find-port.ts'
import { COMPILED, temporaryFolder } from './service.ts'

export interface Reader {
  /** In one shell, which keeps its variables; nobody is there to answer questions. */
  run(command: string): Promise<string>
  /** On a terminal, answering questions as they are written. */
  typeIn(step: Step): Promise<string>
}

/** All of the checkout but its data: each reader has a demo fleet of their own. */
function makeCheckout(t: TestContext): string {
  const checkout = join(temporaryFolder(t), 'flux-resourceset')
  mkdirSync(join(checkout, 'data'), { recursive: true })
  for (const name of readdirSync(ROOT)) {
    if (name !== 'data' && name !== '.git') symlinkSync(join(ROOT, name), join(checkout, name))
  }
  cpSync(join(ROOT, 'data/seed.json'), join(checkout, 'data/seed.json'))
  return checkout
}

/** A login shell of somebody who has curl, jq, make and npm, and none of our variables: what is compiled is kept, as at home. */
function plainEnvironment(home: string): Record<string, string> {
  const path = (process.env.PATH ?? '').split(':').filter((folder) => !folder.includes('node_modules'))
  const { TMPDIR, LANG } = process.env
  return { PATH: path.join(':'), HOME: home, ...COMPILED, ...(TMPDIR && { TMPDIR }), ...(LANG && { LANG }) }
}

/** As `make run` starts it, with what stands before it on the page, on a free port. */
async function startDemo(t: TestContext, checkout: string, env: Record<string, string>): Promise<void> {
  const LISTEN_ADDR = `127.0.0.1:${await findPort()}`
  // The packages and the console are those of the checkout that is tested: nothing is installed or built again.
  const child = spawn('make', ['-o', 'node_modules/.package-lock.json', '-o', 'built-console', 'run'], {
    cwd: checkout,
    env: { ...env, LISTEN_ADDR, LOG_LEVEL: 'warn' },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
    })
  }
  const ended = once(child, 'exit')
  t.after(async () => {
    if (child.exitCode === null) process.kill(-Number(child.pid), 'SIGTERM')
    await ended
  })
  for (let waited = 0; waited < 60_000; waited += 50) {
    const ready = await fetch(`http://${LISTEN_ADDR}/ready`).catch(() => undefined)
    if (ready?.ok) return
    if (child.exitCode !== null) break
    await sleep(50)
  }
  throw new Error(`make run: ${output}`)
}

function openShell(t: TestContext, cwd: string, env: Record<string, string>): Reader['run'] {
  const mark = '@@@ end of output @@@'
  const loop = `exec 3<&0 </dev/null 2>&1
    while IFS= read -r -d '' -u 3 command; do eval "$command" 3<&-; echo; echo '${mark}'; done`
  const shell = spawn('bash', ['-c', loop], { cwd, env, detached: true })
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

/** Without what only moves the cursor. */
function onScreen(screen: string): string {
  return stripVTControlCharacters(screen)
    .replaceAll(/^.*\r(?!\n)/gm, '')
    .replaceAll('\r', '')
}

/** Undefined settings: the page starts nothing. */
export async function openReader(
  t: TestContext,
  settings: Record<string, string> | undefined,
): Promise<Reader> {
  const checkout = makeCheckout(t)
  const env = plainEnvironment(checkout)
  if (settings) await startDemo(t, checkout, { ...env, ...settings })
  const run = openShell(t, checkout, env)
  if (settings) await run('source data/demo.env')
  return {
    run,
    async typeIn({ command, expected }) {
      const answers = [...expected.matchAll(/to go on: ?(.*)$/gm)]
      const typing = answers.map(([, typed]) => ['to go on: ', `${typed}\r`] as const)
      const line = (): string => `. ./data/demo.env; ${command}`
      const { screen } = await onTerminal([], { columns: 120, env, cwd: checkout, typing, line })
      return onScreen(screen).trim()
    },
  }
}

/** What each `make run` would do again. */
export function buildConsole(): void {
  const { status, stderr } = spawnSync('npm', ['run', '--silent', 'build:console'], { cwd: ROOT })
  if (status !== 0) throw new Error(String(stderr))
}

export function missingTools(): string[] {
  return ['bash', 'curl', 'jq', 'make', 'npm'].filter((tool) => spawnSync(tool, ['--version']).status !== 0)
}

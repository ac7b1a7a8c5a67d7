// The command line for tests: as a process with pipes, or on a terminal.
import assert from 'node:assert/strict'
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import type { Line } from './cli-host.ts'
import { COMPILED, READ_TOKEN, WRITE_TOKEN } from './service.ts'

export const CLI = join(import.meta.dirname, '../bin/flux-resourceset-cli.cjs')

/** Configuration and cache of one test file. */
const home = mkdtempSync(join(tmpdir(), 'flux-resourceset-cli-'))
after(() => rmSync(home, { recursive: true, force: true }))

export interface Run {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface CliOptions {
  /** Of the service; without it the program has to find one itself. */
  readonly url?: string
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly input?: string
  readonly cwd?: string
  /** Ends the run after so long. */
  readonly timeout?: number
}

/** What every run starts from: a home of its own, and nothing of the environment of the tests. */
export function cliEnv({ url, env = {} }: CliOptions): Record<string, string> {
  const given = {
    PATH: `${join(process.execPath, '..')}:${process.env.PATH}`,
    HOME: home,
    ...COMPILED,
    ...(url !== undefined && {
      FLUX_API_URL: url,
      FLUX_API_TOKEN: READ_TOKEN,
      FLUX_API_WRITE_TOKEN: WRITE_TOKEN,
    }),
    ...env,
  }
  const set = Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return Object.fromEntries(set)
}

/** Runs a line to its end, without a terminal: in a process that all lines of a test file share, where that makes no difference. */
export async function cli(args: readonly string[], options: CliOptions = {}): Promise<Run> {
  const env = cliEnv(options)
  const ownProcess =
    options.cwd !== undefined ||
    args.some((arg) => ['edit', '--version', '-V'].includes(arg)) ||
    Object.keys(options.env ?? {}).some((name) => /^NODE_|^TZ$|^LC_|^LANG$/.test(name))
  return ownProcess ? cliProcess(args, options) : runOnHost({ args, env, input: options.input ?? '' })
}

let host: { readonly child: ChildProcess; readonly waiting: Map<number, (run: Run) => void> } | undefined
let lines = 0

function runOnHost(line: Omit<Line, 'id'>): Promise<Run> {
  host ??= startHost()
  const { child, waiting } = host
  const { promise, resolve } = Promise.withResolvers<Run>()
  const id = lines++
  waiting.set(id, resolve)
  child.ref()
  child.channel?.ref()
  child.send({ id, ...line })
  return promise
}

/** In a session of its own, so that it has no terminal to ask on; it ends with this process. */
function startHost(): NonNullable<typeof host> {
  const child = fork(join(import.meta.dirname, 'cli-host.ts'), {
    env: { PATH: process.env.PATH, HOME: home, ...COMPILED },
    execArgv: [],
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const waiting = new Map<number, (run: Run) => void>()
  child.on('message', ({ id, ...run }: Run & { id: number }) => {
    waiting.get(id)?.(run)
    waiting.delete(id)
    if (waiting.size > 0) return
    child.unref()
    child.channel?.unref()
  })
  child.once('exit', (code) => {
    host = undefined
    for (const resolve of waiting.values()) resolve({ code, stdout: '', stderr: 'the host has ended' })
  })
  return { child, waiting }
}

/** Runs the program to its end as a process of its own, with pipes, and without a terminal: a session of its own has not even the tests' one. */
export async function cliProcess(args: readonly string[], options: CliOptions = {}): Promise<Run> {
  const { input, cwd, timeout = 60_000 } = options
  const how = { env: cliEnv(options), cwd, timeout, detached: true }
  const child = spawn(process.execPath, [CLI, ...args], how)
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk
  })
  // A program that does not read its input may be gone before it is written.
  child.stdin.on('error', () => {})
  child.stdin.end(input ?? '')
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...output }
}

/** A run that had to fail: with this exit code, all of this on stderr, no stack, and nothing on stdout. Answers stderr. */
export function assertFailed({ stderr, ...ran }: Run, code: number, ...says: readonly Says[]): string {
  assert.deepEqual(ran, { code, stdout: '' }, stderr)
  assert.match(stderr, /^Error: \S/m)
  assert.doesNotMatch(stderr, /^ +at /m)
  for (const what of says) {
    assert.ok(typeof what === 'string' ? stderr.includes(what) : what.test(stderr), `${what} in:\n${stderr}`)
  }
  return stderr
}

type Says = RegExp | string

/** Of one way to run the program: running it where it has to work, and where it has to fail. */
export function outcomesOf(run: (args: readonly string[], options?: CliOptions) => Promise<Run>) {
  return {
    async succeed(args: readonly string[], options?: CliOptions): Promise<Run> {
      const ran = await run(args, options)
      assert.equal(ran.code, 0, ran.stderr)
      return ran
    },
    /** Answers stderr. */
    async fail(
      code: number,
      says: Says | readonly Says[],
      args: readonly string[],
      options?: CliOptions,
    ): Promise<string> {
      return assertFailed(await run(args, options), code, ...[says].flat())
    },
  }
}

export interface TerminalOptions extends CliOptions {
  readonly columns?: number
  /** What somebody types once this text is on the screen, in this order; after a while, if it says so. */
  readonly typing?: readonly (readonly [seen: string, typed: string, afterMs?: number])[]
  /** The line that the shell runs, where it is more than the command: with a pipe, or output to a file. */
  readonly line?: (command: string) => string
}

/** Runs the program on a terminal; what is on the screen is both its stdout and stderr. */
export async function onTerminal(
  args: readonly string[],
  options: TerminalOptions = {},
): Promise<{ readonly code: number | null; readonly screen: string }> {
  const { columns = 80, typing = [], cwd, timeout = 60_000, line = (text: string) => text } = options
  const command = line([process.execPath, CLI, ...args].map(quote).join(' '))
  // What is longer than the screen would wait in a pager.
  const env = { TERM: 'xterm', PAGER: 'cat', ...cliEnv(options) }
  const script = `stty cols ${columns} rows 40; ${command}`
  const child = spawn('script', ['-qfec', script, '/dev/null'], { env, cwd, timeout })
  let screen = ''
  let from = 0
  const waiting = [...typing]
  child.stdout.on('data', (chunk) => {
    screen += chunk
    const [next] = waiting
    if (next && screen.includes(next[0], from)) {
      const [, typed, afterMs = 0] = next
      waiting.shift()
      from = screen.length
      setTimeout(() => child.stdin.write(typed), afterMs)
    }
  })
  child.stdin.on('error', () => {})
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, screen: screen.replaceAll('\r\n', '\n') }
}

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}

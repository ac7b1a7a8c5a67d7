// Starts the servers to be measured and reads what they cost.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export const TOKEN = 'bench-token'
const TICKS_PER_SECOND = 100
/** As `npm start` does it. */
export const SMALL_HEAP_STEPS = (process.env.SERVER_OPTIONS ?? '--max-semi-space-size=4 --expose-gc')
  .split(' ')
  .filter(Boolean)

export interface Target {
  readonly name: string
  readonly port: number
  readonly child: ChildProcess
  readonly startSeconds: number
}

export async function startTarget(
  name: string,
  script: string,
  args: readonly string[],
  port: number,
  env: Record<string, string>,
  stderr: 'inherit' | 'ignore' = 'inherit',
): Promise<Target> {
  const started = performance.now()
  const command = [...SMALL_HEAP_STEPS, join(import.meta.dirname, script), ...args]
  const child = endWithUs(
    spawn(process.execPath, command, {
      env: { ...env, LISTEN_ADDR: `127.0.0.1:${port}` },
      stdio: ['ignore', 'ignore', stderr],
    }),
  )
  // Probes work there without TLS.
  const probed = env.ADMIN_LISTEN_ADDR ?? `127.0.0.1:${port}`
  for (let tries = 0; tries < 6000; tries++) {
    const ready = await fetch(`http://${probed}/ready`).catch(() => undefined)
    if (ready?.ok) return { name, port, child, startSeconds: (performance.now() - started) / 1000 }
    if (child.exitCode !== null) break
    await sleep(5)
  }
  child.kill('SIGKILL')
  throw new Error(`${name} did not start`)
}

/** Nobody is left behind by a benchmark that is interrupted. */
export function endWithUs(child: ChildProcess): ChildProcess {
  const kill = (): unknown => child.kill('SIGKILL')
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  return child
}

/** Our own service on a fleet in a store. */
export function startService(
  name: string,
  database: string,
  port: number,
  stderr: 'inherit' | 'ignore' = 'inherit',
  settings: Readonly<Record<string, string>> = {},
  script = '../src/main.ts',
): Promise<Target> {
  const env = {
    AUTH_TOKEN: TOKEN,
    API_MODE: 'crud',
    DATABASE_URL: database,
    LOG_LEVEL: 'warn',
    ...settings,
  }
  return startTarget(name, script, [], port, env, stderr)
}

export async function stopTarget({ child }: Target): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

/** Everything in a store into another one, which is empty; answers the seconds it takes. */
export async function copyStore(from: string, to: string): Promise<number> {
  const started = performance.now()
  const main = join(import.meta.dirname, '../src/main.ts')
  const child = spawn(process.execPath, [main, 'copy', '--from', from, '--to', to], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const [code] = await once(endWithUs(child), 'exit')
  if (code !== 0) throw new Error(`copy exited with ${code}`)
  return (performance.now() - started) / 1000
}

/** User and system time that a process has used so far. */
export function cpuSeconds({ child }: Target): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

export function residentMegabytes({ child }: Target): { now: number; peak: number } {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  const read = (key: string): number => Number(new RegExp(`${key}:\\s+(\\d+)`).exec(status)?.[1]) / 1024
  return { now: read('VmRSS'), peak: read('VmHWM') }
}

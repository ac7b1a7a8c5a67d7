// One measurement: a client on one core polls a server on the other, and what that costs both is read.
import { execFile, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { CLIENT_CORE, pin, SERVER_CORE } from '../pin.ts'
import type { Target } from '../server-process.ts'
import type { Case, Sample } from './cases.ts'

const CONNECTIONS = 8

/** Builds the client; throws with the reason where that is not possible. */
export function buildClient(folder: string): string {
  const client = join(folder, 'client')
  const source = join(import.meta.dirname, 'client.go')
  const { error, status, stderr } = spawnSync('go', ['build', '-o', client, source], { encoding: 'utf8' })
  if (error) throw new Error('the client of this benchmark is written in Go, and there is no `go` here')
  if (status !== 0) throw new Error(`go build: ${stderr}`)
  return client
}

/** Keeps all threads of a server on its core. */
export function pinServer({ child }: Target): void {
  pin(child.pid as number, SERVER_CORE)
}

/** What the client tells; p50 and p99 are milliseconds. */
export interface ClientReport {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly p50: number
  readonly p99: number
}

/** Runs the client on its core; it fails on any answer but 200. */
export async function runClient(
  client: string,
  port: number,
  args: Readonly<Record<string, string | number | boolean>>,
): Promise<ClientReport> {
  const flags = Object.entries(args).map(([flag, value]) => `-${flag}=${value}`)
  const command = ['-c', CLIENT_CORE, client, `-address=127.0.0.1:${port}`, ...flags]
  const { stdout } = await promisify(execFile)('taskset', command)
  return JSON.parse(stdout) as ClientReport
}

/** `ca` is a file with the certificate to trust; `first` is the line of the file with the polls to begin with. */
export async function measure(
  client: string,
  each: Case,
  ca: string,
  requests: number,
  first = 0,
): Promise<Sample> {
  const { target, upstream, port, polls, style } = each
  const cpuSeconds = (): number => cpuSecondsOf(target) + (upstream ? cpuSecondsOf(upstream) : 0)
  const before = cpuSeconds()
  const report = await runClient(client, port, {
    polls,
    requests,
    first,
    connections: CONNECTIONS,
    keep: style === 'kept',
    x25519: style === 'tls-x25519',
    ...(style.startsWith('tls') && { ca }),
  })
  return {
    cpu: ((cpuSeconds() - before) / requests) * 1e6,
    p99: report.p99,
    clientCpu: (report.cpuSeconds / requests) * 1e6,
  }
}

/** What all threads of a process have run, by the nanosecond. */
function cpuSecondsOf({ child }: Target): number {
  const tasks = `/proc/${child.pid}/task`
  return readdirSync(tasks)
    .map((task) => Number(readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ')[0]) / 1e9)
    .reduce((sum, seconds) => sum + seconds, 0)
}

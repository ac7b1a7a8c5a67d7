// How many acknowledgements and events are taken in a second.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterRequest } from '../tools/simulate/exchange.ts'
import { sendRequest } from '../tools/simulate/operator-request.ts'
import { percentile } from './load.ts'
import { buildClient, pinServer, runClient } from './polls/measure.ts'
import { progress, reportTable } from './print.ts'
import { cpuSeconds, type Target } from './server-process.ts'

const SECONDS = Number(process.env.BENCH_SECONDS ?? 10)
const AT_ONCE = 200
const ACKS = Number(process.env.BENCH_ACKS ?? 50_000)
const ACKS_AT_ONCE = 32

export interface RatesOf {
  readonly service: Target
  readonly bare: Target
  readonly acks: readonly ClusterRequest[]
  /** The n-th event of a length. */
  eventOf(n: number, length: number): ClusterRequest
  /** For what is built and written. */
  readonly folder: string
}

/** What was taken, by a sender that used so many seconds of CPU. */
interface Taken {
  readonly count: number
  readonly errors: number
  readonly p50: number
  readonly p99: number
  readonly senderSeconds: number
}

/** The servers stay on one core, and the client that acknowledges on the other. */
export async function printRates({ service, bare, acks, eventOf, folder }: RatesOf): Promise<void> {
  progress('building the client')
  const client = buildClient(folder)
  const polls = join(folder, 'acknowledgements')
  writeFileSync(polls, acks.map(({ path, token }) => `${path} ${token}\n`).join(''))
  for (const target of [service, bare]) pinServer(target)
  const acksTo = ({ port }: Target, keep: boolean) => acknowledge(client, port, { polls, keep })
  const rows = [
    await rateRow(service, 'acknowledgements, a connection each', () => acksTo(service, false)),
    await rateRow(bare, 'the same, to a bare node:http', () => acksTo(bare, false)),
    await rateRow(service, 'acknowledgements, over kept connections', () => acksTo(service, true)),
    await rateRow(service, '500 events of 1 kB a second', () =>
      sendSteadily(service, 500, (n) => eventOf(n, 1000)),
    ),
  ]
  progress('')
  console.log(
    `\nAcknowledgements as fast as they are taken, ${ACKS_AT_ONCE} at once, server and client on a core each; events at a steady rate for ${SECONDS} s, where a wait counts from the moment a request was due:\n`,
  )
  reportTable(
    'report-rates',
    ['', 'taken a second', 'errors', 'wait p50 ms', 'wait p99 ms', 'server, of a core', 'sender, of a core'],
    rows,
  )
}

/** As the operator sends them, over connections of their own; or over few, as a proxy before the service keeps them. */
async function acknowledge(
  client: string,
  port: number,
  { polls, keep }: { readonly polls: string; readonly keep: boolean },
): Promise<Taken> {
  const requests = ACKS
  const report = await runClient(client, port, { polls, keep, requests, connections: ACKS_AT_ONCE })
  const { cpuSeconds: senderSeconds, p50, p99 } = report
  return { count: requests, errors: 0, p50, p99, senderSeconds }
}

/** The time ends with the last answer. */
async function rateRow(target: Target, name: string, send: () => Promise<Taken>): Promise<string[]> {
  progress(name)
  const used = cpuSeconds(target)
  const begun = performance.now()
  const { count, errors, p50, p99, senderSeconds } = await send()
  const seconds = (performance.now() - begun) / 1000
  const share = (cpu: number): string => `${((cpu / seconds) * 100).toFixed(0)} %`
  return [
    name,
    (count / seconds).toFixed(0),
    String(errors),
    p50.toFixed(1),
    p99.toFixed(1),
    share(cpuSeconds(target) - used),
    share(senderSeconds),
  ]
}

/** Sends what is due, at most so many at once: a sender that is slower than the service shows by waits, not by errors. */
async function sendSteadily(
  target: Target,
  rate: number,
  make: (n: number) => ClusterRequest,
): Promise<Taken> {
  const ours = process.cpuUsage()
  const waits: number[] = []
  const underWay = new Set<Promise<void>>()
  let errors = 0
  const begun = performance.now()
  const one = async (n: number): Promise<void> => {
    const answer = await sendRequest(addressOf(target), make(n))
    waits.push(performance.now() - begun - (n * 1000) / rate)
    if (answer.kind === 'dropped' || answer.status > 202) errors++
  }
  for (let sent = 0; sent < rate * SECONDS; await sleep(1)) {
    const due = Math.min(rate * SECONDS, ((performance.now() - begun) / 1000) * rate)
    while (sent < due && underWay.size < AT_ONCE) {
      const sending = one(sent++).finally(() => underWay.delete(sending))
      underWay.add(sending)
    }
  }
  await Promise.all(underWay)
  const { user, system } = process.cpuUsage(ours)
  const [p50, p99] = [percentile(waits, 0.5), percentile(waits, 0.99)]
  return { count: waits.length - errors, errors, p50, p99, senderSeconds: (user + system) / 1e6 }
}

export function addressOf({ port }: Target) {
  return { host: '127.0.0.1', port, timeoutMs: 30_000 }
}

// `npm run simulate`: a fleet of simulated clusters against a service, and whether every one of them got what it should.
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { parseDuration } from '../../src/base/duration.ts'
import { UsageProblem } from '../../src/base/usage-problem.ts'
import { createRandom, type Random } from '../../test/seeded-random.ts'
import { ENDPOINTS } from './bench-fleet-inputs.ts'
import { dropSome, planFaults } from './faults.ts'
import type { FleetSource } from './fleet-source.ts'
import { sendGet, sendRequest } from './operator-request.ts'
import { openOwnFleet } from './own-fleet.ts'
import { printSummary, type RunSummary } from './print-summary.ts'
import { openRemoteFleet } from './remote-fleet.ts'
import { SimulatedCluster } from './simulated-cluster.ts'
import { runFleet, SimulatedFleet } from './simulated-fleet.ts'
import { StatusCheck } from './status-check.ts'

const HELP = `Usage: npm run simulate -- [options]

Behaves like the Flux Operators of many clusters: polls, applies, acknowledges, posts events, and checks every answer.
Starts a service with a made fleet, unless --url names one. Exits with 1 after wrong answers, wrong statuses or errors.

  --clusters N       how many clusters (1000)
  --types N          how many endpoints each of them polls: 1 to ${ENDPOINTS.length} (${ENDPOINTS.length})
  --interval D       time between two polls of an endpoint (30s)
  --duration D       how long all of it lasts (60s)
  --restart-storm    all clusters poll at once at the start, instead of spread over the interval
  --install          all clusters begin empty and install everything, instead of having it already
  --faults           some components fail and flap, some clusters go away, some connections drop, some events are lost
  --check-status     at the end, and with --faults three times before, compares what the service says of every cluster
                     with what is so there: never better, and not worse of a cluster that is settled
  --seed N           chance for --faults (1)
  --concurrency N    connections at once (1000)
  --timeout D        a poll without an answer for so long is dropped (10s)
  --tls              the service that is started speaks TLS
  --url URL          a service that is there already: its clusters are taken from its list
  --token TOKEN      for --url: may list clusters, read them, and poll for any of them
  -o json            prints JSON instead of a table
`

/** The share of connections that are dropped on purpose. */
const DROPPED = 0.01

const STATUS_TIMEOUT_MS = 60_000

interface Options {
  readonly clusters: number
  readonly endpoints: readonly string[]
  readonly intervalMs: number
  readonly durationMs: number
  readonly isStorm: boolean
  readonly hasFaults: boolean
  readonly isInstall: boolean
  readonly checksStatus: boolean
  readonly seed: number
  readonly concurrency: number
  readonly timeoutMs: number
  readonly tls: boolean
  readonly remote: { readonly url: string; readonly token: string } | undefined
  readonly format: 'table' | 'json'
}

/** Returns undefined when only help is wanted. */
function parseOptions(args: string[]): Options | undefined {
  const { values } = parseStrictly(args)
  if (values.help) return undefined
  const problems: string[] = []
  const count = (name: 'clusters' | 'types' | 'seed' | 'concurrency', max: number): number => {
    const value = Number(values[name])
    if (!Number.isInteger(value) || value < 1 || value > max)
      problems.push(`--${name} must be a number from 1 to ${max}, not "${values[name]}"`)
    return value
  }
  const duration = (name: 'interval' | 'duration' | 'timeout'): number => {
    const seconds = parseDuration(values[name])
    if (!seconds) problems.push(`--${name} must be a duration such as 30s, not "${values[name]}"`)
    return (seconds ?? 0) * 1000
  }
  const { url, token, tls, output } = values
  if ((url === undefined) !== (token === undefined)) problems.push('--url and --token belong together')
  if (url !== undefined && tls)
    problems.push('--tls is for a service that is started here: give an https URL')
  if (output !== 'table' && output !== 'json') problems.push(`-o must be table or json, not "${output}"`)
  const options: Options = {
    clusters: count('clusters', 1_000_000),
    endpoints: ENDPOINTS.slice(0, count('types', ENDPOINTS.length)),
    intervalMs: duration('interval'),
    durationMs: duration('duration'),
    isStorm: values['restart-storm'],
    hasFaults: values.faults,
    isInstall: values.install,
    checksStatus: values['check-status'],
    seed: count('seed', 2 ** 31),
    concurrency: count('concurrency', 10_000),
    timeoutMs: duration('timeout'),
    tls,
    remote: url !== undefined && token !== undefined ? { url, token } : undefined,
    format: output === 'json' ? 'json' : 'table',
  }
  if (problems.length > 0) throw new UsageProblem(...problems)
  return options
}

function parseStrictly(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        clusters: { type: 'string', default: '1000' },
        types: { type: 'string', default: String(ENDPOINTS.length) },
        interval: { type: 'string', default: '30s' },
        duration: { type: 'string', default: '60s' },
        'restart-storm': { type: 'boolean', default: false },
        faults: { type: 'boolean', default: false },
        install: { type: 'boolean', default: false },
        'check-status': { type: 'boolean', default: false },
        seed: { type: 'string', default: '1' },
        concurrency: { type: 'string', default: '1000' },
        timeout: { type: 'string', default: '10s' },
        tls: { type: 'boolean', default: false },
        url: { type: 'string' },
        token: { type: 'string' },
        output: { type: 'string', short: 'o', default: 'table' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
  } catch (error) {
    throw new UsageProblem(error instanceof Error ? error.message : String(error))
  }
}

/** Milliseconds since 1970, with fractions. */
function clock(): number {
  return performance.timeOrigin + performance.now()
}

function buildClusters(source: FleetSource, options: Options, random: Random): SimulatedCluster[] {
  const { endpoints, intervalMs, durationMs, isStorm, hasFaults } = options
  const startsAt = clock()
  const times = { startsAt, endsAt: startsAt + durationMs, endpoints }
  return source.clusters.map(({ dns, token }, i) => {
    const offset = isStorm ? 0 : (i * intervalMs) / source.clusters.length
    return new SimulatedCluster({
      dns,
      token,
      endpoints,
      interval: intervalMs,
      startsAt: startsAt + offset,
      isSettled: !options.isInstall,
      ...(hasFaults && { behaviour: planFaults(random, times) }),
    })
  })
}

function buildFleet(
  source: FleetSource,
  { hasFaults, concurrency }: Options,
  clusters: readonly SimulatedCluster[],
  random: Random,
): SimulatedFleet {
  const send = sendRequest.bind(undefined, source.target)
  return new SimulatedFleet({
    clusters,
    send: hasFaults ? dropSome(send, random, DROPPED) : send,
    oracle: source.oracle,
    clock,
    concurrency,
  })
}

function buildStatusCheck(
  { target, token, clusters }: FleetSource,
  simulated: readonly SimulatedCluster[],
): StatusCheck {
  const ids = new Map(clusters.map(({ dns, id }) => [dns, id]))
  return new StatusCheck({
    clusters: new Map(simulated.map((cluster) => [ids.get(cluster.dns) ?? '', cluster])),
    // A list of a large fleet takes longer than a poll.
    get: (path) => sendGet({ ...target, timeoutMs: STATUS_TIMEOUT_MS }, path, token),
    clock,
  })
}

/** Lets time go by, and checks meanwhile; the last check is at the end, while the clusters still go on. */
async function letPass({ durationMs, hasFaults }: Options, check: StatusCheck | undefined): Promise<void> {
  const started = performance.now()
  const parts = check && hasFaults ? [0.25, 0.5, 0.75, 1] : [1]
  for (const part of parts) {
    await sleep(Math.max(0, started + durationMs * part - performance.now()))
    await check?.run()
  }
}

async function run(options: Options): Promise<RunSummary> {
  const { remote } = options
  const source = remote ? await openRemoteFleet({ ...options, ...remote }) : await openOwnFleet(options)
  try {
    const before = source.cost()
    const random = createRandom(options.seed)
    const clusters = buildClusters(source, options, random)
    const fleet = buildFleet(source, options, clusters, random)
    const check = options.checksStatus ? buildStatusCheck(source, clusters) : undefined
    const started = performance.now()
    const usedBefore = process.cpuUsage()
    const end = new AbortController()
    const running = runFleet(fleet, end.signal)
    try {
      await letPass(options, check)
    } finally {
      end.abort()
    }
    await running
    const seconds = (performance.now() - started) / 1000
    const after = source.cost()
    const server = before && after ? { ...after, cpuSeconds: after.cpuSeconds - before.cpuSeconds } : null
    const { user, system } = process.cpuUsage(usedBefore)
    return {
      ...fleet.figures.summary(seconds),
      clusters: source.clusters.length,
      compared_answers: source.oracle.compared,
      status_check: check?.summary ?? null,
      server,
      simulation_cpu_seconds: (user + system) / 1e6,
    }
  } finally {
    await source.close()
  }
}

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2))
  if (!options) {
    console.log(HELP)
    return
  }
  const summary = await run(options)
  printSummary(summary, options.format)
  const wrong = summary.wrong_answers + (summary.status_check?.wrong_statuses ?? 0)
  if (wrong > 0 || summary.errors > 0) process.exitCode = 1
}

main().catch((error: unknown) => {
  if (!(error instanceof UsageProblem)) throw error
  for (const problem of error.problems) console.error(`simulate: ${problem}`)
  process.exitCode = 2
})

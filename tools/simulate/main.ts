// `npm run simulate`: a fleet of simulated clusters against a service, and whether every one of them got what it should.
import { setTimeout as sleep } from 'node:timers/promises'
import { UsageProblem } from '../../src/base/usage-problem.ts'
import { createRandom, type Random } from '../../test/seeded-random.ts'
import { dropSome, planFaults } from './faults.ts'
import type { FleetFigures } from './fleet-figures.ts'
import type { FleetSource } from './fleet-source.ts'
import { type JsonRequest, sendGet, sendJson, sendRequest } from './operator-request.ts'
import type { Oracle } from './oracle.ts'
import { openOwnFleet } from './own-fleet.ts'
import { printSummary, type RunSummary, type StormSummary } from './print-summary.ts'
import { openRemoteFleet } from './remote-fleet.ts'
import {
  changedComponentOf,
  QUICK_INTERVALS,
  type RolloutSummary,
  runScenario,
} from './rollouts/rollout-scenario.ts'
import { RolloutWatch } from './rollouts/rollout-watch.ts'
import { HELP, type Options, parseOptions } from './simulate-options.ts'
import { SimulatedCluster } from './simulated-cluster.ts'
import { runFleet, SimulatedFleet } from './simulated-fleet.ts'
import { StatusCheck } from './status-check.ts'

/** The share of connections that are dropped on purpose. */
const DROPPED = 0.01

/** Looks at the memory of the service. */
const SAMPLES = 10
const STATUS_TIMEOUT_MS = 60_000
/** Until clusters that have polled have reported, too. */
const SETTLED_MS = 2000
/** The controller looks every second, and longer where looking takes long. */
const REACTION_MS = 30_000

/** Milliseconds since 1970, with fractions. */
function clock(): number {
  return performance.timeOrigin + performance.now()
}

function buildClusters(source: FleetSource, options: Options, random: Random): SimulatedCluster[] {
  const { endpoints, intervalMs, durationMs, isStorm, hasFaults, rollout } = options
  const startsAt = clock()
  // The duration of a rollout is how long it may last at most.
  const lastsMs = rollout ? Math.min(durationMs, QUICK_INTERVALS * intervalMs) : durationMs
  const times = { startsAt, endsAt: startsAt + lastsMs, endpoints }
  return source.clusters.map(({ dns, token }, i) => {
    const offset = isStorm ? 0 : (i * intervalMs) / source.clusters.length
    return new SimulatedCluster({
      dns,
      token,
      endpoints,
      interval: intervalMs,
      startsAt: startsAt + offset,
      isSettled: !options.isInstall,
      ...(hasFaults && {
        behaviour: planFaults(random, rollout ? { ...times, component: changedComponentOf(i) } : times),
      }),
    })
  })
}

function buildFleet(
  source: FleetSource,
  { hasFaults, concurrency }: Options,
  clusters: readonly SimulatedCluster[],
  random: Random,
  watch: RolloutWatch | undefined,
): SimulatedFleet {
  const direct = sendRequest.bind(undefined, source.target)
  const send = hasFaults ? dropSome(direct, random, DROPPED) : direct
  return new SimulatedFleet({
    clusters,
    send: watch ? watch.listenTo(send) : send,
    oracle: oracleOf(source, watch),
    clock,
    concurrency,
  })
}

function oracleOf(source: FleetSource, watch: RolloutWatch | undefined): Oracle {
  return watch?.oracle ?? source.oracle
}

function buildWatch({ target, token, clusters }: FleetSource, { intervalMs }: Options): RolloutWatch {
  return new RolloutWatch({
    names: new Map(clusters.map(({ id, dns }) => [id, dns])),
    clock,
    intervalMs,
    reactionMs: REACTION_MS,
    get: (path) => sendGet({ ...target, timeoutMs: STATUS_TIMEOUT_MS }, path, token),
  })
}

/** Begins once every cluster was answered. */
async function runRollout(
  { target, token, clusters }: FleetSource,
  { rollout, intervalMs, durationMs }: Options,
  watch: RolloutWatch,
): Promise<RolloutSummary | null> {
  if (!rollout) return null
  await sleep(intervalMs + SETTLED_MS)
  const ask = (request: Omit<JsonRequest, 'token'>) =>
    sendJson({ ...target, timeoutMs: STATUS_TIMEOUT_MS }, { ...request, token })
  const pass = async (ms: number): Promise<void> => void (await sleep(ms))
  const dns = clusters.map((each) => each.dns)
  return runScenario(
    { watch, clock, lookMs: 100, pass, ask },
    { ...rollout, intervalMs, clusters: dns, withinMs: durationMs },
  )
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

/** Notes what the service occupies, ten times in the run. */
function watchMemory(
  source: FleetSource,
  { durationMs }: Options,
): { readonly seen: number[]; stop(): void } {
  const seen: number[] = []
  const timer = setInterval(() => {
    const cost = source.cost()
    if (cost) seen.push(cost.rssMegabytes)
  }, durationMs / SAMPLES)
  return { seen, stop: () => clearInterval(timer) }
}

function stormOf(
  { isStorm, intervalMs, endpoints: { length } }: Options,
  { reached }: FleetFigures,
  clusters: number,
  startedAt: number,
): StormSummary | null {
  if (!isStorm) return null
  const endpoints = clusters * length
  const seconds = Math.max(0, reached.at - startedAt) / 1000
  const isDrained = reached.count === endpoints && seconds * 1000 <= intervalMs
  return {
    endpoints,
    answered: reached.count,
    seconds,
    interval_seconds: intervalMs / 1000,
    is_drained: isDrained,
  }
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
    const watch = options.rollout && buildWatch(source, options)
    const fleet = buildFleet(source, options, clusters, random, watch)
    const check = options.checksStatus ? buildStatusCheck(source, clusters) : undefined
    const started = performance.now()
    const usedBefore = process.cpuUsage()
    const end = new AbortController()
    const startedAt = clock()
    const memory = watchMemory(source, options)
    const running = runFleet(fleet, end.signal)
    let rollout: RolloutSummary | null = null
    try {
      if (watch) rollout = await runRollout(source, options, watch)
      else await letPass(options, check)
    } finally {
      end.abort()
      memory.stop()
    }
    await running
    const seconds = (performance.now() - started) / 1000
    const after = source.cost()
    const server = before && after ? { ...after, cpuSeconds: after.cpuSeconds - before.cpuSeconds } : null
    const { user, system } = process.cpuUsage(usedBefore)
    return {
      ...fleet.figures.summary(seconds),
      clusters: source.clusters.length,
      compared_answers: oracleOf(source, watch).compared,
      status_check: check?.summary ?? null,
      rollout,
      storm: stormOf(options, fleet.figures, source.clusters.length, startedAt),
      server_rss_megabytes: memory.seen,
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
  const { status_check, rollout } = summary
  const wrong =
    summary.wrong_answers + (status_check?.wrong_statuses ?? 0) + (rollout?.wrong_steps.length ?? 0)
  if (wrong > 0 || summary.errors > 0 || summary.storm?.is_drained === false) process.exitCode = 1
}

main().catch((error: unknown) => {
  if (!(error instanceof UsageProblem)) throw error
  for (const problem of error.problems) console.error(`simulate: ${problem}`)
  process.exitCode = 2
})

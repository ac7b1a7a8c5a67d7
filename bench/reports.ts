// `npm run bench:reports`: what acknowledgements and events cost beside polls, how many of them are taken, and what it
// costs to note each poll; all in one run, each request on a connection of its own.
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { POLL_BASE } from '../src/base/urls.ts'
import { findPort } from '../test/find-port.ts'
import type { ClusterRequest, FluxEvent } from '../tools/simulate/exchange.ts'
import { componentEvent } from '../tools/simulate/flux-events.ts'
import { sendGet, sendRequest } from '../tools/simulate/operator-request.ts'
import { parseInputs } from '../tools/simulate/parse-inputs.ts'
import { cluster, clusterDns, clusterToken, writeFleet } from './fleet.ts'
import { median, runLoad } from './load.ts'
import { progress, reportTable } from './print.ts'
import { addressOf, printRates } from './report-rates.ts'
import { cpuSeconds, startService, startTarget, stopTarget, type Target, TOKEN } from './server-process.ts'

const CLUSTERS = Number(process.env.BENCH_CLUSTERS ?? 10_000)
/** `sightings` alone compares polls with and without them; `rates` is the rest. */
const PARTS = (process.env.BENCH_PARTS ?? 'sightings,rates').split(',')
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
/** Of clusters whose digests are known. Events have a budget for each cluster, and one for all. */
const REPORTING = 1000
const REPORTS = 4000
const EVENTS = 1000
const CONNECTIONS = 8
/** What was noted is written every 10 seconds. */
const WRITTEN_MS = 11_000
const ENDPOINTS = ['platform-components', 'namespaces', 'rolebindings']
/** Every cluster polls all that it has to, as operators do: the providers of a cluster were made at one time. */
const REQUESTS = CLUSTERS * ENDPOINTS.length

const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-bench-'))
const targets: Target[] = []
try {
  await main()
} finally {
  for (const target of targets) await stopTarget(target)
  rmSync(folder, { recursive: true, force: true })
}

type Make = (n: number) => ClusterRequest

async function main(): Promise<void> {
  progress(`writing a fleet of ${CLUSTERS} clusters`)
  const database = join(folder, 'fleet.db')
  await writeFleet(database, CLUSTERS, true)
  copyFileSync(database, join(folder, 'quiet.db'))
  const noting = await start('with sightings', 'fleet.db')
  if (PARTS.includes('sightings'))
    await comparePolls(noting, await start('without sightings', 'quiet.db', 'without-sightings.ts'))
  if (PARTS.includes('rates')) await measureRates(noting)
  console.log(
    `\nLoad average: ${loadavg()
      .map((load) => load.toFixed(1))
      .join(' ')}`,
  )
}

async function measureRates(noting: Target): Promise<void> {
  progress('asking for digests')
  const acks = await acknowledgements(noting)
  await compareKinds(noting, {
    poll: (n) => requestOf('poll', n, 'platform-components'),
    'acknowledgement of 20 components': (n) => acks[n % acks.length] as ClusterRequest,
    'event of 1 kB': (n) => eventOf(n, 1000),
    'event of 4 kB': (n) => eventOf(n, 4000),
  })
  await printRates({ service: noting, bare: await startBare(), acks, eventOf, folder })
}

async function start(name: string, file: string, script?: string): Promise<Target> {
  const target = await startService(
    name,
    `sqlite://${join(folder, file)}`,
    await findPort(),
    'inherit',
    {},
    script,
  )
  targets.push(target)
  return target
}

/** Says what the service says to acknowledgements, and does nothing else. */
async function startBare(): Promise<Target> {
  const body = join(folder, 'answer.json')
  writeFileSync(body, '{"inputs":[]}')
  const port = await findPort()
  const target = await startTarget('node:http', 'bare-server.ts', [body, String(port)], port, {})
  targets.push(target)
  return target
}

function requestOf(kind: 'poll' | 'ack', n: number, path: string): ClusterRequest {
  const dns = clusterDns(n % CLUSTERS)
  const addressed = { dns, token: clusterToken(n % CLUSTERS), path: `${POLL_BASE}/${dns}/${path}`, dueAt: 0 }
  return kind === 'ack' ? { kind, ...addressed } : { kind, endpoint: path, ...addressed }
}

/** A failure and then a success of one component after the other, filled up to a length. */
function eventOf(n: number, length: number): ClusterRequest {
  const at = n % CLUSTERS
  const dns = clusterDns(at)
  const { id = '' } = cluster(at).platform_components[n % 20] ?? {}
  const component = { id, kind: 'HelmRelease', digest: '0123456789abcdef', revision: '1.0.0' } as const
  const bare = componentEvent(component, n % 2 === 0, Date.now())
  const message = bare.message.padEnd(length - JSON.stringify(bare).length + bare.message.length, '.')
  const event: FluxEvent = { ...bare, message }
  const path = `${POLL_BASE}/${dns}/events`
  return { kind: 'event', dns, token: clusterToken(at), path, dueAt: 0, event, attempt: 0 }
}

/** What clusters report that have applied everything. */
async function acknowledgements(target: Target): Promise<ClusterRequest[]> {
  const requests: ClusterRequest[] = []
  for (let n = 0; n < Math.min(REPORTING, CLUSTERS); n++) {
    const query = ['v=1', 'every=300']
    for (const endpoint of ENDPOINTS) {
      const { path, token } = requestOf('poll', n, endpoint)
      const answer = await sendGet(addressOf(target), path, token)
      const parsed = parseInputs(answer.kind === 'answer' ? answer.body : '')
      if (!parsed.ok) throw new Error(`${path}: ${parsed.problem}`)
      query.push(`${endpoint}=${parsed.inputs[0]?.answer_digest}`)
      if (endpoint === 'platform-components')
        query.push(...parsed.inputs.map(({ id, digest }) => `ready=${id}:${digest}`))
    }
    requests.push(requestOf('ack', n, `ack?${query.join('&')}`))
  }
  return requests
}

/** Sends so many, a few at once; throws where one is not taken. Returns microseconds of CPU for each. */
async function costOf(target: Target, make: Make, first: number, count: number): Promise<number> {
  const before = cpuSeconds(target)
  let sent = 0
  const work = async (): Promise<void> => {
    while (sent < count) {
      const answer = await sendRequest(addressOf(target), make(first + sent++))
      if (answer.kind === 'dropped' || answer.status > 202) throw new Error(JSON.stringify(answer))
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, work))
  return ((cpuSeconds(target) - before) / count) * 1e6
}

async function compareKinds(target: Target, kinds: Readonly<Record<string, Make>>): Promise<void> {
  const samples = new Map(Object.keys(kinds).map((kind): [string, number[]] => [kind, []]))
  for (let round = 0; round <= ROUNDS; round++) {
    progress(`round ${round} of ${ROUNDS}: polls, acknowledgements, events`)
    for (const [kind, make] of Object.entries(kinds)) {
      const count = kind.startsWith('event') ? EVENTS : REPORTS
      const cost = await costOf(target, make, round * count, count)
      if (round > 0) samples.get(kind)?.push(cost)
    }
  }
  const poll = median(samples.get('poll') ?? [])
  const rows = [...samples].map(([kind, costs]) => {
    const cost = median(costs)
    return [kind, cost.toFixed(0), `${(cost / poll).toFixed(2)}×`]
  })
  progress('')
  console.log(`\nOne process, ${CLUSTERS} clusters with a token each, a connection for every request:\n`)
  reportTable('reports', ['', 'CPU µs', 'of a poll'], rows, 1)
}

/** CPU µs per poll: while polls are answered, and until what was noted is in the store and derived. */
interface PollCost {
  readonly answered: number
  readonly kept: number
}

/** A service, and the CPU seconds that it takes in a second without polls: states of the fleet are derived all the time. */
interface Measured extends Target {
  readonly atRest: number
}

/** In turns, so that both see the same machine. */
async function comparePolls(noting: Target, quiet: Target): Promise<void> {
  const [one, other] = (await restOf(noting, quiet)) as [Measured, Measured]
  const rounds: { readonly noting: PollCost; readonly quiet: PollCost }[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    progress(`round ${round} of ${ROUNDS}: polls with and without sightings`)
    const first = await pollCost(round % 2 === 0 ? one : other)
    const second = await pollCost(round % 2 === 0 ? other : one)
    rounds.push(round % 2 === 0 ? { noting: first, quiet: second } : { noting: second, quiet: first })
  }
  progress('')
  console.log(`What it costs to note each poll, ${REQUESTS} polls of ${CLUSTERS} clusters in a round:\n`)
  const rowOf = (name: string, of: keyof PollCost): string[] => [
    name,
    median(rounds.map(({ noting }) => noting[of])).toFixed(1),
    median(rounds.map(({ quiet }) => quiet[of])).toFixed(1),
    `${median(rounds.map(({ noting, quiet }) => noting[of] / quiet[of])).toFixed(3)}×`,
  ]
  reportTable(
    'sightings',
    ['CPU µs per poll', noting.name, quiet.name, 'median of ratios'],
    [
      rowOf('while polls are answered', 'answered'),
      rowOf(`and ${WRITTEN_MS / 1000} s after, until all is kept, less what they take at rest`, 'kept'),
      ['at rest, % of a core', (one.atRest * 100).toFixed(1), (other.atRest * 100).toFixed(1), ''],
    ],
  )
}

/** After a first round, in which the service learns of its clusters. */
async function restOf(...targets: Target[]): Promise<Measured[]> {
  for (const target of targets) await pollCost({ ...target, atRest: 0 })
  const before = targets.map(cpuSeconds)
  await sleep(WRITTEN_MS)
  return targets.map((target, i) => ({
    ...target,
    atRest: (cpuSeconds(target) - (before[i] ?? 0)) / (WRITTEN_MS / 1000),
  }))
}

async function pollCost(target: Measured): Promise<PollCost> {
  const numbers = Array.from({ length: REQUESTS }, (_, n) => Math.floor(n / ENDPOINTS.length))
  const [before, begun] = [cpuSeconds(target), performance.now()]
  const since = (): number => {
    const rest = target.atRest * ((performance.now() - begun) / 1000)
    return ((cpuSeconds(target) - before - rest) / REQUESTS) * 1e6
  }
  await runLoad({
    port: target.port,
    paths: numbers.map((n, i) => `${POLL_BASE}/${clusterDns(n)}/${ENDPOINTS[i % ENDPOINTS.length]}`),
    token: TOKEN,
    tokens: numbers.map(clusterToken),
    requests: REQUESTS,
    connections: CONNECTIONS,
    reconnect: true,
  })
  const answered = since()
  await sleep(WRITTEN_MS)
  return { answered, kept: since() }
}

// A simulated cluster does what the Flux Operator does: when it polls, what it acknowledges, which events it posts.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ClusterAnswer, ClusterRequest, EventRequest } from '../tools/simulate/exchange.ts'
import { type ClusterOptions, type Fault, SimulatedCluster } from '../tools/simulate/simulated-cluster.ts'

const INTERVAL = 10_000
const APPLY_MS = 500
const READY_MS = 3000
const COMPONENTS = 'platform-components'
const DNS = 'one.k8s.example.com'

function createCluster(options: Partial<ClusterOptions> = {}): SimulatedCluster {
  return new SimulatedCluster({
    dns: DNS,
    token: 'secret',
    endpoints: [COMPONENTS, 'namespaces'],
    interval: INTERVAL,
    ...options,
    behaviour: { applyMs: APPLY_MS, readyMs: READY_MS, retryMs: 20_000, ...options.behaviour },
  })
}

/** The ids that are served, each with a version. */
type Served = Readonly<Record<string, string>>

function digestOf(text: string): string {
  return hash('sha1', text).slice(0, 16)
}

function bodyOf(served: Served): string {
  const answer_digest = digestOf(JSON.stringify(served))
  const inputs = Object.entries(served).map(([id, version]) => ({
    id,
    component_version: version,
    enabled: version !== 'off',
    source: { oci_url: 'https://charts.example.com' },
    digest: digestOf(`${id} ${version}`),
    answer_digest,
  }))
  return JSON.stringify({ inputs })
}

function ok(body: string): ClusterAnswer {
  return { kind: 'answer', status: 200, body }
}

const DROPPED: ClusterAnswer = { kind: 'dropped', reason: 'ECONNRESET' }
const EMPTY = '{"inputs":[]}'

type Serve = (request: ClusterRequest, now: number) => ClusterAnswer

/** Serves these components and no namespaces, and takes reports and events. */
function serving(served: () => Served): Serve {
  return (request) => {
    if (request.kind === 'event') return { kind: 'answer', status: 202, body: '' }
    return ok(request.kind === 'poll' && request.endpoint === COMPONENTS ? bodyOf(served()) : EMPTY)
  }
}

interface Sent {
  readonly at: number
  readonly request: ClusterRequest
}

/** Lets time pass; every request is answered at once. Returns what was sent. */
function drive(cluster: SimulatedCluster, until: number, serve: Serve): Sent[] {
  const sent: Sent[] = []
  for (let now = cluster.dueAt; now <= until; now = cluster.dueAt) {
    for (const request of cluster.requestsAt(now)) {
      sent.push({ at: now, request })
      cluster.answered(request, serve(request, now), now)
    }
  }
  return sent
}

function timesOf(sent: readonly Sent[], path: string): number[] {
  return sent.filter(({ request }) => request.path.includes(`/${path}`)).map(({ at }) => at)
}

function reportsIn(sent: readonly Sent[]): { at: number; entries: string[] }[] {
  return sent
    .filter(({ request }) => request.kind === 'ack')
    .map(({ at, request }) => ({ at, entries: request.path.split('?')[1]?.split('&') ?? [] }))
}

function eventsIn(sent: readonly Sent[], severity: 'info' | 'error', kind = 'HelmRelease'): EventRequest[] {
  return sent
    .map(({ request }) => request)
    .filter((request) => request.kind === 'event')
    .filter(({ event }) => event.severity === severity && event.involvedObject.kind === kind)
}

const ready = (id: string, version: string): string => `ready=${id}:${digestOf(`${id} ${version}`)}`
const applied = (served: Served): string => `${COMPONENTS}=${digestOf(JSON.stringify(served))}`

test('every endpoint is polled at exact intervals', () => {
  const sent = drive(
    createCluster({ startsAt: 700 }),
    30_700,
    serving(() => ({})),
  )
  assert.deepEqual(timesOf(sent, COMPONENTS), [700, 10_700, 20_700, 30_700])
  assert.deepEqual(timesOf(sent, 'namespaces'), [700, 10_700, 20_700, 30_700])
  assert.deepEqual(timesOf(sent, 'ack'), [700, 10_700, 20_700, 30_700])
})

test('a failing poll is repeated after 0.75 s, then twice that, up to 15 minutes, and a success ends that', () => {
  let status = 503
  const serve: Serve = () => ({ kind: 'answer', status, body: EMPTY })
  const cluster = createCluster({ endpoints: [COMPONENTS] })
  const times = timesOf(drive(cluster, 6_000_000, serve), COMPONENTS)
  const delays = times.slice(1).map((at, i) => at - (times[i] as number))
  assert.deepEqual(
    delays.slice(0, 12),
    [750, 1500, 3e3, 6e3, 12e3, 24e3, 48e3, 96e3, 192e3, 384e3, 768e3, 9e5],
  )
  assert.ok(delays.slice(11).every((delay) => delay === 900_000))
  status = 200
  const [back, next] = timesOf(drive(cluster, 7_000_000, serve), COMPONENTS)
  assert.equal(Number(next) - Number(back), INTERVAL)
  status = 503
  const [failed, again] = timesOf(drive(cluster, 7_100_000, serve), COMPONENTS)
  assert.equal(Number(again) - Number(failed), 750)
})

test('a dropped connection is tried again after 1, 2 and 4 s before the poll has failed', () => {
  const times = timesOf(
    drive(createCluster({ endpoints: [COMPONENTS] }), 17_000, () => DROPPED),
    COMPONENTS,
  )
  assert.deepEqual(times, [0, 1000, 3000, 7000, 7750, 8750, 10_750, 14_750, 16_250])
})

test('what is applied is reported at once, each component when it is ready', () => {
  const served = { grafana: 'v1', loki: 'v1' }
  const reports = reportsIn(
    drive(
      createCluster(),
      5000,
      serving(() => served),
    ),
  )
  assert.deepEqual(
    reports.map(({ at }) => at),
    [0, APPLY_MS, APPLY_MS + READY_MS],
  )
  assert.deepEqual(reports[0]?.entries, ['every=10', 'v=1'])
  assert.deepEqual(reports[1]?.entries, ['every=10', applied(served), 'v=1'])
  assert.deepEqual(reports[2]?.entries, [
    'every=10',
    applied(served),
    ready('grafana', 'v1'),
    ready('loki', 'v1'),
    'v=1',
  ])
})

test('the entry of a removed, switched-off or changed component goes as soon as that is applied', () => {
  let served: Served = { a: 'v1', b: 'v1', c: 'v1', d: 'v1' }
  const cluster = createCluster()
  drive(
    cluster,
    9000,
    serving(() => served),
  )
  served = { a: 'v1', b: 'v2', c: 'off' }
  const [report] = reportsIn(
    drive(
      cluster,
      INTERVAL + APPLY_MS,
      serving(() => served),
    ),
  ).slice(-1)
  assert.deepEqual(report, {
    at: INTERVAL + APPLY_MS,
    entries: ['every=10', applied(served), ready('a', 'v1'), 'v=1'],
  })
})

test('a type of which nothing is left is missing from the report', () => {
  let served: Served = { a: 'v1' }
  const cluster = createCluster()
  drive(
    cluster,
    9000,
    serving(() => served),
  )
  served = {}
  drive(
    cluster,
    19_000,
    serving(() => served),
  )
  const { report, confirmedReport, components } = cluster.truth(19_000)
  assert.equal(report, 'every=10&v=1')
  assert.equal(confirmedReport, report)
  assert.deepEqual(components, {})
})

test('what was ready once, was replaced and comes back is acknowledged only when it is ready again', () => {
  let served: Served = { a: 'v1' }
  const cluster = createCluster()
  drive(
    cluster,
    9000,
    serving(() => served),
  )
  cluster.tell({ kind: 'fail', component: 'a' }, 9000)
  served = { a: 'v2' }
  const during = reportsIn(
    drive(
      cluster,
      19_000,
      serving(() => served),
    ),
  )
  assert.ok(!during.at(-1)?.entries.some((entry) => entry.startsWith('ready=')))
  served = { a: 'v1' }
  const after = reportsIn(
    drive(
      cluster,
      39_000,
      serving(() => served),
    ),
  )
  assert.ok(after.at(-1)?.entries.includes(applied(served)))
  assert.ok(!after.some(({ entries }) => entries.includes(ready('a', 'v1'))))
  cluster.tell({ kind: 'recover' }, 39_000)
  const recovered = reportsIn(
    drive(
      cluster,
      39_000 + READY_MS,
      serving(() => served),
    ),
  )
  assert.ok(recovered.at(-1)?.entries.includes(ready('a', 'v1')))
})

test('a failing component posts why and is not acknowledged; its recovery is told and acknowledged', () => {
  const cluster = createCluster()
  cluster.tell({ kind: 'fail', component: 'a' }, 0)
  const sent = drive(
    cluster,
    9000,
    serving(() => ({ a: 'v1', b: 'v1' })),
  )
  const [{ event } = assert.fail('no event'), ...more] = eventsIn(sent, 'error')
  assert.equal(more.length, 0)
  assert.equal(event.involvedObject.name, 'a')
  assert.equal(event.metadata.digest, digestOf('a v1'))
  assert.deepEqual(cluster.truth(9000).components.a, {
    digest: digestOf('a v1'),
    state: 'failed',
    since: APPLY_MS + READY_MS,
    isReached: false,
  })
  assert.deepEqual(reportsIn(sent).at(-1)?.entries.includes(ready('a', 'v1')), false)
  cluster.tell({ kind: 'recover', component: 'a' }, 9000)
  const later = drive(
    cluster,
    14_000,
    serving(() => ({ a: 'v1', b: 'v1' })),
  )
  assert.deepEqual(
    eventsIn(later, 'info').map(({ event }) => event.involvedObject.name),
    ['a'],
  )
  assert.ok(reportsIn(later).at(-1)?.entries.includes(ready('a', 'v1')))
})

test('a component that fails later keeps its entry: reached is not healthy', () => {
  const cluster = createCluster()
  const serve = serving(() => ({ a: 'v1' }))
  drive(cluster, 9000, serve)
  cluster.tell({ kind: 'fail' }, 9000)
  const sent = drive(cluster, 14_000, serve)
  assert.equal(eventsIn(sent, 'error').length, 1)
  assert.ok(reportsIn(sent).at(-1)?.entries.includes(ready('a', 'v1')))
  assert.equal(cluster.truth(14_000).components.a?.state, 'failed')
})

test('a failure is overcome once its component is reported ready for the first time after it', () => {
  const cluster = createCluster()
  const serve = serving(() => ({ a: 'v1' }))
  const deaf: Serve = (request, now) =>
    request.kind === 'ack' ? { kind: 'answer', status: 503, body: '' } : serve(request, now)
  drive(cluster, 9000, deaf)
  cluster.tell({ kind: 'fail' }, 9000)
  drive(cluster, 14_000, deaf)
  const overcome = (now: number) => cluster.truth(now).toldFailures.map(({ isOvercome }) => isOvercome)
  assert.deepEqual(overcome(14_000), [false])
  drive(cluster, 40_000, serve)
  const { confirmedReport, components } = cluster.truth(40_000)
  assert.ok(confirmedReport?.includes(ready('a', 'v1')))
  assert.deepEqual([overcome(40_000), components.a?.state], [[true], 'failed'])
})

test('equal events are held back for 5 minutes, whatever happened between them', () => {
  const cluster = createCluster()
  const serve = serving(() => ({ a: 'v1' }))
  drive(cluster, 9000, serve)
  for (const [i, kind] of (['fail', 'recover', 'fail', 'recover', 'fail'] as const).entries())
    drive(tell(cluster, { kind }, 10_000 + i * 10_000), 20_000 + i * 10_000, serve)
  const later = drive(cluster, 400_000, serve)
  const times = later.filter(({ request }) => request.kind === 'event').map(({ at }) => at)
  assert.deepEqual(times, [310_000])
  assert.ok(cluster.truth(400_000).lostEvents > 10)
})

function tell(cluster: SimulatedCluster, fault: Fault, now: number): SimulatedCluster {
  cluster.tell(fault, now)
  return cluster
}

test('an event is tried four times, waits for as long as the service says, and is lost then', () => {
  const cluster = createCluster()
  const refuse: Serve = (request, now) =>
    request.kind === 'event'
      ? { kind: 'answer', status: 429, body: '', retryAfterMs: 7000 }
      : serving(() => ({}))(request, now)
  const attempts = drive(cluster, 60_000, (request, now) =>
    request.kind === 'poll' && request.endpoint === COMPONENTS
      ? ok(bodyOf({ a: 'v1' }))
      : refuse(request, now),
  ).filter(({ request }) => request.kind === 'event' && request.event.involvedObject.name === 'a')
  assert.deepEqual(
    attempts.map(({ at }) => at),
    [3500, 10_500, 17_500, 27_500],
  )
})

test('a rejected answer is not acknowledged, and the one before stays so', () => {
  let served: Served = { a: 'v1' }
  const cluster = createCluster()
  drive(
    cluster,
    9000,
    serving(() => served),
  )
  cluster.tell({ kind: 'reject', endpoint: COMPONENTS }, 9000)
  served = { a: 'v2' }
  const sent = drive(
    cluster,
    19_000,
    serving(() => served),
  )
  assert.equal(eventsIn(sent, 'error', 'ResourceSet')[0]?.event.involvedObject.name, COMPONENTS)
  assert.ok(reportsIn(sent).every(({ entries }) => entries.includes(applied({ a: 'v1' }))))
  assert.equal(cluster.truth(19_000).endpoints[COMPONENTS]?.isRejected, true)
  cluster.tell({ kind: 'accept', endpoint: COMPONENTS }, 19_000)
  const later = reportsIn(
    drive(
      cluster,
      19_000 + APPLY_MS,
      serving(() => served),
    ),
  )
  assert.ok(later.at(-1)?.entries.includes(applied({ a: 'v2' })))
})

test('a cluster that is away sends nothing, and polls everything at once when it is back', () => {
  const plan = [
    { at: 12_000, fault: { kind: 'away' } },
    { at: 45_000, fault: { kind: 'back' } },
  ] as const
  const cluster = createCluster({ behaviour: { plan } })
  const sent = drive(
    cluster,
    50_000,
    serving(() => ({})),
  )
  assert.deepEqual(timesOf(sent, COMPONENTS), [0, 10_000, 45_000])
  assert.deepEqual(timesOf(sent, 'ack'), [0, 10_000, 45_000])
  assert.equal(cluster.truth(50_000).lastHeardAt, 45_000)
})

test('an answer that the operator refuses changes nothing', () => {
  for (const body of [
    '{}',
    '[]',
    '<html>',
    '{"inputs":null}',
    '{"inputs":[{}]}',
    '{"inputs":[{"id":"a"},{"id":"a"}]}',
  ]) {
    const cluster = createCluster({ endpoints: [COMPONENTS] })
    drive(
      cluster,
      9000,
      serving(() => ({ a: 'v1' })),
    )
    const before = cluster.truth(9000)
    drive(cluster, INTERVAL + 100, (request) => ok(request.kind === 'ack' ? EMPTY : body))
    const { components, endpoints, report } = cluster.truth(INTERVAL + 100)
    assert.deepEqual(
      { components, endpoints, report },
      { components: before.components, endpoints: before.endpoints, report: before.report },
      body,
    )
  }
})

/** One step of a cluster's life: what is served from now on, what happens, and how long that lasts. */
const step = fc.record({
  served: fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('v1', 'v2', 'off'), {
    noNullPrototype: true,
  }),
  fault: fc.option(
    fc.oneof(
      fc.record({ kind: fc.constantFrom('fail', 'recover'), component: fc.constantFrom('a', 'b') }),
      fc.record({ kind: fc.constantFrom('reject', 'accept'), endpoint: fc.constant(COMPONENTS) }),
      fc.record({ kind: fc.constantFrom('away', 'back', 'restart') }),
    ) as fc.Arbitrary<Fault>,
  ),
  ms: fc.integer({ min: 100, max: 25_000 }),
})

/** Follows what a cluster is served and applies, and checks each of its reports against that. */
class Witness {
  readonly #cluster: SimulatedCluster
  readonly #servedAt = new Map<string, number>()
  readonly #answers = new Map<string, Served>()
  /** Since when each component is applied as it is. */
  readonly #since = new Map<string, number>()
  served: Served = {}

  constructor(cluster: SimulatedCluster) {
    this.#cluster = cluster
  }

  serve: Serve = (request, now) => {
    const mark = this.#follow(now)
    if (request.kind === 'poll' && request.endpoint === COMPONENTS) {
      const digest = digestOf(JSON.stringify(this.served))
      this.#answers.set(digest, this.served)
      if (!this.#servedAt.has(digest)) this.#servedAt.set(digest, now)
    }
    if (request.kind === 'ack') this.#check(request.path.split('?')[1]?.split('&') ?? [], mark, now)
    return serving(() => this.served)(request, now)
  }

  /** Returns the entry of what is applied. */
  #follow(now: number): string | undefined {
    const { digest, at = 0 } = this.#cluster.truth(now).endpoints[COMPONENTS]?.applied ?? {}
    const components = Object.entries(digest ? (this.#answers.get(digest) ?? {}) : {})
    const entries = components.filter(([, version]) => version !== 'off').map(([id, v]) => ready(id, v))
    for (const entry of this.#since.keys()) if (!entries.includes(entry)) this.#since.delete(entry)
    for (const entry of entries) if (!this.#since.has(entry)) this.#since.set(entry, at)
    if (!digest) return undefined
    assert.ok(at >= (this.#servedAt.get(digest) ?? Number.POSITIVE_INFINITY) + APPLY_MS)
    return `${COMPONENTS}=${digest}`
  }

  #check(entries: readonly string[], mark: string | undefined, now: number): void {
    assert.equal(
      entries.find((entry) => entry.startsWith(COMPONENTS)),
      mark,
    )
    for (const entry of entries.filter((text) => text.startsWith('ready='))) {
      const since = this.#since.get(entry) ?? Number.POSITIVE_INFINITY
      assert.ok(now >= since + READY_MS, `${entry} at ${now}, applied at ${since}`)
    }
  }
}

test('nothing is acknowledged before it is applied and ready, and everything is in the end', () => {
  const life = fc.array(step, { minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(life, (steps) => {
      const cluster = createCluster()
      const witness = new Witness(cluster)
      let now = 0
      for (const { served, fault, ms } of steps) {
        witness.served = served
        if (fault) cluster.tell(fault, now)
        drive(cluster, now + ms, witness.serve)
        now += ms
      }
      for (const kind of ['recover', 'accept', 'back'] as const)
        cluster.tell({ kind, endpoint: COMPONENTS } as Fault, now)
      drive(cluster, now + 2 * INTERVAL, witness.serve)
      const { served } = witness
      const there = Object.entries(served).filter(([, version]) => version !== 'off')
      const entries = ['every=10', 'v=1', ...there.map(([id, version]) => ready(id, version))]
      if (Object.keys(served).length > 0) entries.push(applied(served))
      assert.equal(cluster.truth(now + 2 * INTERVAL).confirmedReport, entries.sort().join('&'))
    }),
    { numRuns: 300 },
  )
})

test('a settled cluster has applied what it is served first: one report of all of it, and no events', () => {
  const served = { a: 'v1', b: 'off' }
  const cluster = createCluster({ isSettled: true })
  const sent = drive(
    cluster,
    INTERVAL,
    serving(() => served),
  )
  assert.deepEqual(
    reportsIn(sent).map(({ at }) => at),
    [0, INTERVAL],
  )
  assert.deepEqual(reportsIn(sent)[0]?.entries, ['every=10', applied(served), ready('a', 'v1'), 'v=1'])
  assert.ok(sent.every(({ request }) => request.kind !== 'event'))
  const later = drive(
    cluster,
    3 * INTERVAL,
    serving(() => ({ a: 'v2' })),
  )
  assert.equal(eventsIn(later, 'info').length, 1)
  assert.ok(reportsIn(later).at(-1)?.entries.includes(ready('a', 'v2')))
})

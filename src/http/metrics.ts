// What Prometheus reads. The number of labels is bounded: they come from our own routes and types, and few environments.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { ACTIVE_STATES } from '../domain/rollouts/rollout.ts'
import { stagingOf } from '../domain/rollouts/staging.ts'
import type { Types } from '../domain/types/resource-type.ts'
import type { Engine } from '../engine/engine.ts'
import { addFleetMetrics } from './fleet-metrics.ts'
import { addGauge } from './gauge.ts'
import { Traffic } from './load/traffic.ts'
import type { AnswerCache } from './poll/answer-cache.ts'
import { PollMetrics } from './poll/poll-metrics.ts'

export interface Metrics {
  countPoll(endpoint: string, status: number, seconds: number): void
  countRequest(method: string, status: number): void
  countEvent(verdict: 'failed' | 'succeeded' | 'ignored'): void
  countDroppedEvent(): void
  countWrite(type: string, op: string, result: string, seconds: number): void
  countStoreError(operation: string): void
  countAuthFailure(reason: string): void
  countShed(kind: 'read' | 'write'): void
  addAnswers(answers: AnswerCache): void
  noteWatchers(count: number): void
  countDroppedWatcher(): void
  /** Connections, and what passes over them. */
  readonly traffic: Traffic
  render(): Promise<string>
  readonly contentType: string
}

export function createMetrics(
  types: Types,
  version: string,
  engine: Pick<Engine, 'state' | 'status' | 'fleet'>,
  now: () => Date,
): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const endpoints = types.delivered.map(({ delivery }) => delivery.endpoint)
  const polls = new PollMetrics([...endpoints, 'ack', 'clusters', 'unknown'])
  const requests = new Counter({
    name: 'flux_resourceset_requests_total',
    help: 'Requests other than polls by method and class of status.',
    labelNames: ['method', 'code'],
    registers,
  })
  const events = new Counter({
    name: 'flux_resourceset_events_total',
    help: 'Events of clusters by what they say of a component or endpoint: failed, succeeded, or ignored where they say nothing.',
    labelNames: ['verdict'],
    registers,
  })
  const droppedEvents = new Counter({
    name: 'flux_resourceset_dropped_events_total',
    help: 'Events of clusters that were refused because there were too many.',
    registers,
  })
  const countWrite = addWriteMetrics(registry)
  const storeErrors = new Counter({
    name: 'flux_resourceset_store_errors_total',
    help: 'Failures of the store by what was being done.',
    labelNames: ['operation'],
    registers,
  })
  const authFailures = new Counter({
    name: 'flux_resourceset_authentication_failures_total',
    help: 'Requests that were refused because of their credentials, by what was wrong with them.',
    labelNames: ['reason'],
    registers,
  })
  const shed = new Counter({
    name: 'flux_resourceset_shed_requests_total',
    help: 'Requests that were refused because too many were under way, by kind.',
    labelNames: ['kind'],
    registers,
  })
  const watchers = new Gauge({
    name: 'flux_resourceset_watchers',
    help: 'Streams of revisions that are open.',
    registers,
  })
  const droppedWatchers = new Counter({
    name: 'flux_resourceset_dropped_watchers_total',
    help: 'Streams of revisions that were cut because nobody read them fast enough.',
    registers,
  })
  const traffic = new Traffic(registry)
  addGauges(registry, types, version, engine)
  addFleetMetrics(registry, engine, now)

  return {
    countPoll: (endpoint, status, seconds) => polls.count(endpoint, status, seconds),
    countRequest: (method, status) => requests.inc({ method, code: statusClass(status) }),
    countEvent: (verdict) => events.inc({ verdict }),
    countDroppedEvent: () => droppedEvents.inc(),
    countWrite,
    countStoreError: (operation) => storeErrors.inc({ operation }),
    countAuthFailure: (reason) => authFailures.inc({ reason }),
    countShed: (kind) => shed.inc({ kind }),
    addAnswers: (answers) => addAnswerMetrics(registry, answers),
    noteWatchers: (count) => watchers.set(count),
    countDroppedWatcher: () => droppedWatchers.inc(),
    traffic,
    render: async () => (await registry.metrics()) + polls.render(),
    contentType: registry.contentType,
  }
}

function addWriteMetrics(registry: Registry): Metrics['countWrite'] {
  const registers = [registry]
  const writes = new Counter({
    name: 'flux_resourceset_writes_total',
    help: 'Writes by type, operation and result: done, unchanged or the code of the problem.',
    labelNames: ['type', 'op', 'result'],
    registers,
  })
  const duration = new Histogram({
    name: 'flux_resourceset_write_duration_seconds',
    help: 'Time from a write, or a preview of one, to its outcome, the wait for its turn included.',
    labelNames: ['kind'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  })
  return (type, op, result, seconds) => {
    writes.inc({ type, op, result })
    duration.observe({ kind: result === 'previewed' ? 'preview' : 'write' }, seconds)
  }
}

/** Of the cache of compressed answers. */
function addAnswerMetrics(registry: Registry, answers: AnswerCache): void {
  const registers = [registry]
  new Counter({
    name: 'flux_resourceset_cached_polls_total',
    help: 'Polls that accept compression, by whether the cache had their answer: hit or miss.',
    labelNames: ['result'],
    registers,
    collect() {
      this.reset()
      this.inc({ result: 'hit' }, answers.hits)
      this.inc({ result: 'miss' }, answers.misses)
    },
  })
  const gauge = addGauge.bind(undefined, registry)
  gauge('flux_resourceset_answer_cache_bytes', 'Compressed answers in the cache.', () => answers.bytes)
  gauge('flux_resourceset_answer_cache_limit_bytes', 'The most that the cache may hold.', () => answers.limit)
}

/** Read when Prometheus asks. */
function addGauges(
  registry: Registry,
  types: Types,
  version: string,
  engine: Pick<Engine, 'state' | 'status'>,
): void {
  const registers = [registry]
  const gauge = addGauge.bind(undefined, registry)
  gauge(
    'flux_resourceset_revision',
    'The last revision that this process serves.',
    () => engine.state.revision,
  )
  gauge(
    'flux_resourceset_store_revision',
    'The last revision that the store is known to have.',
    () => engine.status.storeRevision,
  )
  gauge('flux_resourceset_lag_revisions', 'How many revisions this process is behind the store.', () =>
    Math.max(0, engine.status.storeRevision - engine.state.revision),
  )
  gauge(
    'flux_resourceset_state_age_seconds',
    'How long the store has not been followed; 0 while it can be.',
    () => engine.status.stalenessMs / 1000,
  )
  gauge(
    'flux_resourceset_store_up',
    'Whether the store can be followed: 1, or 0 when it is unavailable or its history diverged.',
    () => (engine.status.problem === undefined ? 1 : 0),
  )
  new Gauge({
    name: 'flux_resourceset_documents',
    help: 'Live documents by type.',
    labelNames: ['type'],
    registers,
    collect() {
      for (const { name } of types.all) this.set({ type: name }, engine.state.count(name))
    },
  })
  gauge('flux_resourceset_clusters', 'Live clusters.', () => engine.state.count(types.cluster.type.name))
  for (const { name, gaugeHelp } of types.system.all)
    if (gaugeHelp !== undefined) gauge(`flux_resourceset_${name}`, gaugeHelp, () => engine.state.count(name))
  new Gauge({
    name: 'flux_resourceset_active_rollouts',
    help: 'Rollouts that have not ended, by state.',
    labelNames: ['state'],
    registers,
    collect() {
      for (const state of ACTIVE_STATES) this.set({ state }, 0)
      for (const { rollout } of stagingOf(types, engine.state).active) this.inc({ state: rollout.state })
    },
  })
  new Gauge({
    name: 'flux_resourceset_build_info',
    help: 'Always 1; the version is in the label.',
    labelNames: ['version'],
    registers,
  }).set({ version }, 1)
}

function statusClass(status: number): string {
  return `${Math.floor(status / 100)}xx`
}

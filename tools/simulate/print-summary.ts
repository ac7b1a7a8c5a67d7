// What a run of the simulator prints: one table for people, or JSON for programs.
import { loadavg } from 'node:os'
import type { FleetSummary, Percentiles } from './fleet-figures.ts'
import type { ServiceCost } from './fleet-source.ts'
import type { RolloutSummary } from './rollouts/rollout-scenario.ts'
import type { StatusCheckSummary } from './status-check.ts'

export interface StormSummary {
  /** Endpoints of clusters: all, and those that were answered. */
  readonly endpoints: number
  readonly answered: number
  readonly seconds: number
  readonly interval_seconds: number
  /** Whether all of them were answered within one interval. */
  readonly is_drained: boolean
}

export interface RunSummary extends FleetSummary {
  readonly clusters: number
  /** Answers that were compared with what the cluster should get; equal bytes to one cluster count once. */
  readonly compared_answers: number
  /** What the service said of clusters beside what was so; null when nobody asked. */
  readonly status_check: StatusCheckSummary | null
  /** What became of a rollout; null when nobody asked for one. */
  readonly rollout: RolloutSummary | null
  /** How long a restart storm took until every endpoint of every cluster was answered; null without one. */
  readonly storm: StormSummary | null
  /** Resident megabytes of the service at ten moments of the run, evenly spread; empty when it is not ours. */
  readonly server_rss_megabytes: readonly number[]
  /** What the service used during the run; null when it is not ours. */
  readonly server: ServiceCost | null
  /** CPU seconds of the simulation itself: where that is most of a core, it may have been the slower one. */
  readonly simulation_cpu_seconds: number
}

export function printSummary(summary: RunSummary, format: 'table' | 'json'): void {
  if (format === 'json') {
    console.log(JSON.stringify({ ...summary, load_average: loadavg() }))
    return
  }
  const rows: [string, string][] = [
    ['clusters', String(summary.clusters)],
    ['seconds', summary.seconds.toFixed(1)],
    ['polls', String(summary.polls)],
    ['acknowledgements', String(summary.acknowledgements)],
    ['events', String(summary.events)],
    ['requests a second', summary.requests_per_second.toFixed(0)],
    ['errors', String(summary.errors)],
    ...errorRows(summary),
    ['connections dropped on purpose', String(summary.dropped_on_purpose)],
    ['latency ms', percentiles(summary.latency_ms)],
    ['wait ms, from when it was due', percentiles(summary.wait_ms)],
    ...stormRows(summary),
    ...serverRows(summary),
    ['simulation CPU', cpu(summary.simulation_cpu_seconds, summary.seconds)],
    [
      'load average',
      loadavg()
        .map((load) => load.toFixed(1))
        .join(' '),
    ],
    ['answers compared', String(summary.compared_answers)],
    ['wrong answers', String(summary.wrong_answers)],
    ...statusRows(summary),
    ...rolloutRows(summary),
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  for (const [name, value] of rows) console.log(`${name.padEnd(width)}  ${value}`)
  for (const { dns, endpoint, problems } of summary.wrong) {
    const [first, ...more] = problems
    const rest = more.length > 0 ? `, and ${more.length} more` : ''
    console.log(`wrong: ${dns} ${endpoint}: ${first}${rest}`)
  }
  for (const problem of summary.rollout?.wrong_steps ?? []) console.log(`wrong step: ${problem}`)
  for (const { cluster, problems, said, truth } of summary.status_check?.wrong ?? []) {
    console.log(`wrong status: ${cluster}: ${problems.join('; ')}`)
    console.log(`  said:  ${JSON.stringify(said)}`)
    console.log(`  truth: ${JSON.stringify(truth)}`)
  }
}

function statusRows({ status_check }: RunSummary): [string, string][] {
  if (!status_check) return []
  const { checks, rows, statuses, settled, untold_failures, wrong_statuses } = status_check
  return [
    ['statuses compared', `${rows} rows and ${statuses} in full, at ${checks} times`],
    ['  of settled clusters', String(settled)],
    ['  failures nobody told of', String(untold_failures)],
    ['wrong statuses', String(wrong_statuses)],
  ]
}

function rolloutRows({ rollout }: RunSummary): [string, string][] {
  if (!rollout) return []
  const { preview_ms, start_ms, end_ms, seconds, heard_seconds, waves } = rollout
  const { retries, set_aside, revisions, steps, wrong_steps } = rollout
  const at = (moment: number | null): string => (moment === null ? 'never' : `${moment.toFixed(1)} s`)
  return [
    ['rollout', `${rollout.end} after ${seconds.toFixed(1)} s, ${revisions} revisions`],
    ['  preview and start', `${preview_ms.toFixed(0)} ms and ${start_ms.toFixed(0)} ms`],
    ...(end_ms === null ? [] : [[`  its ${rollout.end}`, `${end_ms.toFixed(0)} ms`] as [string, string]]),
    ['  every cluster answered', `${heard_seconds.toFixed(1)} s after its end`],
    ...waves.map(({ name, members, opened, passed }): [string, string] => [
      `  wave ${name}`,
      `${members} clusters, opened ${at(opened)}, passed ${at(passed)}`,
    ]),
    ['  paused by failures, and retried', String(retries)],
    ['  clusters set aside', String(set_aside)],
    ['steps judged', String(steps)],
    ['wrong steps', String(wrong_steps.length)],
  ]
}

function errorRows({ errors_by_kind }: FleetSummary): [string, string][] {
  return Object.entries(errors_by_kind).flatMap(([kind, errors]) =>
    Object.entries(errors).map(([error, count]): [string, string] => [`  ${kind}: ${error}`, String(count)]),
  )
}

function percentiles({ p50, p95, p99, max }: Percentiles): string {
  const parts = Object.entries({ p50, p95, p99, max })
  return parts.map(([name, ms]) => `${name} ${ms.toFixed(1)}`).join('  ')
}

function stormRows({ storm }: RunSummary): [string, string][] {
  if (!storm) return []
  const { endpoints, answered, seconds, interval_seconds, is_drained } = storm
  const outcome = is_drained ? 'drained' : 'not drained'
  return [
    ['restart storm', `${outcome}: ${answered} of ${endpoints} answered`],
    ['  the last after', `${seconds.toFixed(1)} s, of an interval of ${interval_seconds} s`],
  ]
}

function serverRows({ server, seconds, server_rss_megabytes }: RunSummary): [string, string][] {
  if (!server) return []
  const { cpuSeconds, rssMegabytes, peakRssMegabytes } = server
  return [
    ['server CPU', cpu(cpuSeconds, seconds)],
    ['server RSS over time, MB', server_rss_megabytes.map((each) => each.toFixed(0)).join(' ')],
    ['server RSS', `${rssMegabytes.toFixed(0)} MB, at most ${peakRssMegabytes.toFixed(0)} MB`],
  ]
}

function cpu(used: number, seconds: number): string {
  return `${used.toFixed(1)} s, ${((used / seconds) * 100).toFixed(0)} % of a core`
}

// What was seen during an attack, held against what is promised for it, and written into a table.
import { percentile } from '../load.ts'

/** Milliseconds from when each was due, those that waited in vain included; and why others failed, how often. */
export interface Series {
  readonly times: number[]
  readonly failures: Record<string, number>
}

export interface Sample {
  readonly polls: Series
  readonly writes: Series
  readonly revocations: Series
}

export const NO_ANSWER = 'no answer'

export const TARGETS = { ofIdle: 5, pollMs: 100, adminMs: 2000, rssMb: 1024 }

export interface Seen {
  readonly name: string
  /** Of a bare node:http server, which is not judged. */
  readonly isBare: boolean
  readonly sample: Sample
  /** The most that the service has had. */
  readonly rssMb: number
  /** What became of the service, if not what should. */
  readonly death: string | undefined
  readonly after: After | undefined
  /** How often the attacker was answered with what. */
  readonly answers: Readonly<Record<string, number>>
}

/** What is left when the attacker has gone. */
export interface After {
  readonly seconds: number
  /** Nothing is, and everybody is served as well as ever; left out where that is not asked. */
  readonly isGone?: boolean
  readonly sample: Sample
  readonly connections: number
  readonly rssMb: number
}

function failedOf({ failures }: Series): number {
  return Object.values(failures).reduce((sum, count) => sum + count, 0)
}

/** Those that waited in vain are in both. */
function sentOf(series: Series): number {
  return series.times.length + failedOf(series) - (series.failures[NO_ANSWER] ?? 0)
}

/** Any of them. */
export function isAnswered(series: Series): boolean {
  return sentOf(series) > failedOf(series)
}

function p99(series: Series): number {
  return percentile(series.times, 0.99)
}

function worst({ times }: Series): number {
  return times.reduce((most, time) => Math.max(most, time), 0)
}

/** Every target that is missed, in words; none when all are met. */
export function missedBy(sample: Sample, idleP99: number): string[] {
  const { polls, writes, revocations } = sample
  const missed: string[] = []
  if (failedOf(polls) > 0) missed.push('polls fail')
  if (p99(polls) > idleP99 * TARGETS.ofIdle) missed.push(`p99 > ${TARGETS.ofIdle}× idle`)
  if (p99(polls) > TARGETS.pollMs) missed.push(`p99 > ${TARGETS.pollMs} ms`)
  for (const [name, series] of Object.entries({ writes, revocations })) {
    if (failedOf(series) > 0) missed.push(`${name} fail`)
    else if (worst(series) > TARGETS.adminMs) missed.push(`${name} > ${TARGETS.adminMs / 1000} s`)
  }
  return missed
}

export function verdictOf({ isBare, sample, rssMb, death, after }: Seen, idleP99: number): string[] {
  if (isBare) return []
  const missed = missedBy(sample, idleP99)
  if (rssMb > TARGETS.rssMb) missed.push(`RSS > ${TARGETS.rssMb} MB`)
  if (death !== undefined) missed.push(death)
  else if (after?.isGone === false) missed.push(`not gone after ${after.seconds.toFixed(0)} s`)
  return missed
}

export const COLUMNS = [
  'attack',
  'its answers',
  'polls',
  'failed',
  'p50 ms',
  'p99 ms',
  'max ms',
  'p99 of idle',
  'writes: p99 ms',
  'max ms',
  'failed',
  'revocations: max ms',
  'failed',
  'RSS MB',
  'after',
  'missed',
]

export function cellsOf(seen: Seen, idleP99: number): string[] {
  const { polls, writes, revocations } = seen.sample
  return [
    seen.name,
    counts(seen.answers) || 'none',
    String(sentOf(polls)),
    counts(polls.failures) || '0',
    percentile(polls.times, 0.5).toFixed(1),
    p99(polls).toFixed(1),
    worst(polls).toFixed(0),
    `${(p99(polls) / idleP99).toFixed(1)}×`,
    p99(writes).toFixed(0),
    worst(writes).toFixed(0),
    counts(writes.failures) || '0',
    worst(revocations).toFixed(0),
    counts(revocations.failures) || '0',
    seen.rssMb.toFixed(0),
    describeAfter(seen),
    verdictOf(seen, idleP99).join(', ') || 'none',
  ]
}

/** What docs/benchmarks.md shows of a row. */
export const KEPT_COLUMNS = [
  'attacker',
  'attack',
  'polls failed',
  'p50 ms',
  'p99 ms',
  'max ms',
  'p99 of idle',
  'writes: max ms',
  'revocations: max ms',
  'RSS MB',
]

export function keptCellsOf(attacker: string, seen: Seen, idleP99: number): string[] {
  const { polls, writes, revocations } = seen.sample
  const measured = [
    attacker,
    seen.name,
    String(failedOf(polls)),
    percentile(polls.times, 0.5).toFixed(1),
    p99(polls).toFixed(1),
    worst(polls).toFixed(0),
    `${(p99(polls) / idleP99).toFixed(1)}×`,
  ]
  if (seen.isBare) return [...measured, '', '', '']
  return [...measured, worst(writes).toFixed(0), worst(revocations).toFixed(0), seen.rssMb.toFixed(0)]
}

function counts(counted: Readonly<Record<string, number>>): string {
  return Object.entries(counted)
    .map(([what, count]) => `${count} × ${what}`)
    .join(', ')
}

function describeAfter({ death, after }: Seen): string {
  if (death !== undefined) return death
  if (!after) return ''
  const { seconds, sample, connections, rssMb } = after
  const polls = isAnswered(sample.polls) ? `p99 ${p99(sample.polls).toFixed(1)} ms` : 'no poll answered'
  return `${seconds.toFixed(0)} s: ${polls}, ${connections} connections, ${rssMb.toFixed(0)} MB`
}

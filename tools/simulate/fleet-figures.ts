// What a simulated fleet saw: how many requests of each kind, how long they took, what failed, what was wrong.

import { percentile } from '../../bench/load.ts'
import type { ClusterAnswer, ClusterRequest, PollRequest } from './exchange.ts'

export interface Moments {
  readonly sentAt: number
  readonly answeredAt: number
}

export interface WrongAnswer {
  readonly dns: string
  readonly endpoint: string
  readonly problems: readonly string[]
}

/** Percentiles in milliseconds. */
export interface Percentiles {
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
}

const KINDS = ['poll', 'ack', 'event'] as const
type Kind = (typeof KINDS)[number]
/** So many wrong answers are kept with their details. */
const MAX_DETAILS = 20

export class FleetFigures {
  readonly #counts: Record<Kind, number> = { poll: 0, ack: 0, event: 0 }
  readonly #errors: Record<Kind, Record<string, number>> = { poll: {}, ack: {}, event: {} }
  readonly #latencies: number[] = []
  readonly #waits: number[] = []
  readonly #wrong: WrongAnswer[] = []
  /** Endpoints of clusters that were answered, and when the last of them was for the first time. */
  readonly #reached = new Set<string>()
  #reachedAt = 0
  #wrongCount = 0
  #injected = 0

  count(request: ClusterRequest, answer: ClusterAnswer, { sentAt, answeredAt }: Moments): void {
    const { kind } = request
    if (answer.kind === 'dropped' && answer.isInjected) {
      this.#injected++
      return
    }
    this.#counts[kind]++
    this.#latencies.push(answeredAt - sentAt)
    this.#waits.push(answeredAt - request.dueAt)
    const wanted = kind === 'event' ? 202 : 200
    if (answer.kind === 'answer' && answer.status === wanted) {
      if (kind === 'poll') this.#reach(request, answeredAt)
      return
    }
    const error = answer.kind === 'answer' ? String(answer.status) : answer.reason
    const errors = this.#errors[kind]
    errors[error] = (errors[error] ?? 0) + 1
  }

  #reach({ dns, endpoint }: PollRequest, at: number): void {
    const before = this.#reached.size
    if (this.#reached.add(`${dns} ${endpoint}`).size > before) this.#reachedAt = at
  }

  /** How many endpoints of clusters were answered at least once, and when the last of them first was. */
  get reached(): { readonly count: number; readonly at: number } {
    return { count: this.#reached.size, at: this.#reachedAt }
  }

  wrong({ dns, endpoint }: PollRequest, problems: readonly string[]): void {
    this.#wrongCount++
    if (this.#wrong.length < MAX_DETAILS) this.#wrong.push({ dns, endpoint, problems })
  }

  summary(seconds: number): FleetSummary {
    const requests = KINDS.reduce((sum, kind) => sum + this.#counts[kind], 0)
    const errors = KINDS.flatMap((kind) => Object.values(this.#errors[kind])).reduce((a, b) => a + b, 0)
    return {
      seconds,
      polls: this.#counts.poll,
      acknowledgements: this.#counts.ack,
      events: this.#counts.event,
      requests_per_second: requests / seconds,
      errors,
      errors_by_kind: this.#errors,
      dropped_on_purpose: this.#injected,
      latency_ms: percentilesOf(this.#latencies),
      wait_ms: percentilesOf(this.#waits),
      wrong_answers: this.#wrongCount,
      wrong: this.#wrong,
    }
  }
}

/** Plain data, for people and programs. */
export interface FleetSummary {
  readonly seconds: number
  readonly polls: number
  readonly acknowledgements: number
  readonly events: number
  readonly requests_per_second: number
  readonly errors: number
  readonly errors_by_kind: Readonly<Record<Kind, Readonly<Record<string, number>>>>
  /** Connections that the simulation itself dropped; they count nowhere else. */
  readonly dropped_on_purpose: number
  /** From the moment a request is sent. */
  readonly latency_ms: Percentiles
  /** From the moment a request was due, its time in the queue of the simulation included. */
  readonly wait_ms: Percentiles
  readonly wrong_answers: number
  readonly wrong: readonly WrongAnswer[]
}

function percentilesOf(times: readonly number[]): Percentiles {
  const at = (p: number): number => percentile(times, p)
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) }
}

// One type of resource in a simulated cluster: its provider, and the ResourceSet that applies what the provider got.
import { hash } from 'node:crypto'
import type { JsonObject } from '../../src/base/json.ts'
import type { ClusterAnswer } from './exchange.ts'
import { parseInputs } from './parse-inputs.ts'
import type { PollOutcome, PollSchedule } from './poll-schedule.ts'

/** An answer by its digest; that of an empty list is null. */
export interface Reached {
  readonly digest: string | null
  readonly at: number
}

/** What is so in the cluster, whatever the service was told. */
export interface EndpointTruth {
  readonly served: Reached | undefined
  readonly applied: Reached | undefined
  /** Whether the API server refuses what was served last. */
  readonly isRejected: boolean
}

export interface EndpointTimes {
  /** Milliseconds from an answer until it is applied. */
  readonly applyMs: number
  /** Milliseconds until something that failed is tried again. */
  readonly retryMs: number
}

type Attempt =
  | {
      readonly kind: 'applied'
      readonly inputs: readonly JsonObject[]
      /** Whether the cluster had something else before. */
      readonly isNews: boolean
    }
  | { readonly kind: 'rejected' }

export class SimulatedEndpoint {
  readonly name: string
  readonly schedule: PollSchedule
  readonly #times: EndpointTimes
  /** Whether the next answer is what the cluster has already. */
  #isSettled: boolean
  #fingerprint = ''
  #served: Reached | undefined
  #applied: Reached | undefined
  /** What the ResourceSet has still to apply, and when it tries. */
  #waiting: readonly JsonObject[] | undefined
  #appliesAt = Number.POSITIVE_INFINITY
  #isRejecting = false

  constructor(name: string, schedule: PollSchedule, times: EndpointTimes, isSettled: boolean) {
    this.name = name
    this.schedule = schedule
    this.#times = times
    this.#isSettled = isSettled
  }

  /** When the ResourceSet applies something, or tries to. */
  get appliesAt(): number {
    return this.#appliesAt
  }

  truth(): EndpointTruth {
    const isRejected = this.#isRejecting && this.#waiting !== undefined
    return { served: this.#served, applied: this.#applied, isRejected }
  }

  /** From now on the API server refuses, or accepts again, what the ResourceSet applies. */
  reject(isRejecting: boolean, now: number): void {
    this.#isRejecting = isRejecting
    if (this.#waiting) this.#appliesAt = now + this.#times.applyMs
  }

  /** Takes an answer as the provider does: only a well-formed 200 changes anything. */
  answered(answer: ClusterAnswer, now: number): void {
    this.schedule.ended(this.#take(answer, now), now)
  }

  /** Applies what is due; whatever was applied before is gone then. Rejected inputs are tried again later. */
  advance(now: number): Attempt | undefined {
    if (now < this.#appliesAt || !this.#waiting || !this.#served) return undefined
    if (this.#isRejecting && !this.#isSettled) {
      this.#appliesAt = now + this.#times.retryMs
      return { kind: 'rejected' }
    }
    const inputs = this.#waiting
    this.#applied = { digest: this.#served.digest, at: now }
    this.#waiting = undefined
    this.#appliesAt = Number.POSITIVE_INFINITY
    const isNews = !this.#isSettled
    this.#isSettled = false
    return { kind: 'applied', inputs, isNews }
  }

  /** The entry of the report; none for a type of which nothing is there. */
  entries(): string[] {
    return this.#applied?.digest ? [`${this.name}=${this.#applied.digest}`] : []
  }

  #take(answer: ClusterAnswer, now: number): PollOutcome {
    if (answer.kind === 'dropped') return 'dropped'
    if (answer.status !== 200) return 'failed'
    const fingerprint = hash('sha1', answer.body)
    if (this.#served && fingerprint === this.#fingerprint) {
      this.#served = { ...this.#served, at: now }
      return 'succeeded'
    }
    const parsed = parseInputs(answer.body)
    if (!parsed.ok) return 'failed'
    this.#fingerprint = fingerprint
    this.#served = { digest: digestOf(parsed.inputs), at: now }
    this.#waiting = parsed.inputs
    this.#appliesAt = this.#isSettled ? now : now + this.#times.applyMs
    return 'succeeded'
  }
}

function digestOf([first]: readonly JsonObject[]): string | null {
  return typeof first?.answer_digest === 'string' ? first.answer_digest : null
}

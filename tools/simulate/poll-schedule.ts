// When a provider of the Flux Operator polls: at exact intervals, and with its back-off while it fails.
import { backoff } from '../../src/runtime/backoff.ts'

const FIRST_RETRY_MS = 750
const MAX_RETRY_MS = 15 * 60 * 1000
/** Delays after which a dropped connection is tried again; after the last one the poll has failed. */
const DROPPED_RETRIES_MS = [1000, 2000, 4000]

/** What became of a poll; a connection without an answer was dropped. */
export type PollOutcome = 'succeeded' | 'failed' | 'dropped'

export class PollSchedule {
  readonly #interval: number
  /** Without jitter, as the operator's. */
  readonly #backoff = backoff({ first: FIRST_RETRY_MS, max: MAX_RETRY_MS, random: () => 1 })
  #dueAt: number
  #drops = 0
  #isUnderWay = false

  constructor(firstAt: number, interval: number) {
    this.#dueAt = firstAt
    this.#interval = interval
  }

  /** When to poll next; never while a poll is under way. */
  get dueAt(): number {
    return this.#isUnderWay ? Number.POSITIVE_INFINITY : this.#dueAt
  }

  started(): void {
    this.#isUnderWay = true
    this.#dueAt = Number.POSITIVE_INFINITY
  }

  ended(outcome: PollOutcome, now: number): void {
    this.#isUnderWay = false
    // Whoever asked for a poll at once while this one was under way gets it.
    this.#dueAt = Math.min(this.#dueAt, now + this.#delayAfter(outcome))
  }

  /** Polls as soon as no poll is under way: the URL changed, or the operator restarted. */
  pollNow(now: number): void {
    this.#dueAt = now
  }

  #delayAfter(outcome: PollOutcome): number {
    const retry = outcome === 'dropped' ? DROPPED_RETRIES_MS[this.#drops++] : undefined
    if (retry !== undefined) return retry
    this.#drops = 0
    if (outcome !== 'succeeded') return this.#backoff.next()
    this.#backoff.reset()
    return this.#interval
  }
}

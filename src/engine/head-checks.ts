// When the head of the store is compared with the state: at an interval, when the store notifies, and on request.
import { setTimeout as sleep } from 'node:timers/promises'
import { backoff } from '../runtime/backoff.ts'
import { StoreError } from '../store/store.ts'
import type { Follower } from './follower.ts'

/** Time between two checks; a notification of the store starts one sooner. */
const INTERVAL_MS = 250
/** Back-off cap while the store is unavailable. */
const MAX_INTERVAL_MS = 4000
/** The longest that a caller waits for a check. */
const MAX_WAIT_MS = 500

export class HeadChecks {
  readonly #follower: Follower
  #running: Promise<void> | undefined
  #fresh: Promise<void> = Promise.resolve()
  #nextFresh: Promise<void> | undefined
  readonly #delays = backoff({ first: INTERVAL_MS, max: MAX_INTERVAL_MS })
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(follower: Follower) {
    this.#follower = follower
  }

  /** Checks at an interval until stopped. */
  start(): void {
    this.#timer = setTimeout(() => this.#tick(), this.#delays.next()).unref()
  }

  /** Checks once, unless a check is under way. */
  async refresh(): Promise<void> {
    const { committing } = this.#follower
    // A commit of this process is not read back, so a check waits for it, but not for long: the store may hang.
    if (committing) await Promise.race([committing, sleep(MAX_WAIT_MS, undefined, { ref: false })])
    this.#running ??= this.#follower
      .checkHead()
      .catch(ignoreStoreError)
      .finally(() => {
        this.#running = undefined
      })
    await this.#running
  }

  /** Runs a check that begins after this call; returns after MAX_WAIT_MS even if it has not ended. */
  async checkNow(): Promise<void> {
    await Promise.race([this.#checkFresh(), sleep(MAX_WAIT_MS, undefined, { ref: false })])
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#running
  }

  /** Stops the interval only; checks on request go on. */
  pause(): void {
    this.#isStopped = true
  }

  /** Callers that come during a check share the next one, which sees everything committed before their call. */
  #checkFresh(): Promise<void> {
    this.#nextFresh ??= this.#fresh.then(() => {
      this.#nextFresh = undefined
      this.#fresh = this.#follower.checkHead().catch(ignoreStoreError)
      return this.#fresh
    })
    return this.#nextFresh
  }

  async #tick(): Promise<void> {
    await this.refresh()
    if (this.#isStopped) return
    if (!this.#follower.failure) this.#delays.reset()
    this.start()
  }
}

/** The follower has already reported a StoreError. */
function ignoreStoreError(error: unknown): void {
  if (!(error instanceof StoreError)) throw error
}

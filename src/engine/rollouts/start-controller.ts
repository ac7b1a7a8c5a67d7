// When the controller looks: when something may have changed, and at stored instants. Without rollouts and holds, never.
import { HOLDS } from '../../domain/rollouts/hold.ts'
import { ROLLOUTS } from '../../domain/rollouts/rollout.ts'
import { backoff } from '../../runtime/backoff.ts'
import { ReportOnce } from '../../runtime/report-once.ts'
import { type ControllerParts, createController, type RolloutController } from './controller.ts'

/** How often it is checked whether anything new became known while a rollout goes on. */
const CHECK_MS = 1000
/** Looking takes at most this share of the time. */
const LOOK_SHARE = 0.1
/** A look at least so often while a rollout goes on, whatever was noticed. */
const MAX_BLIND_MS = 30_000
/** A timer runs no longer: the clock may be put forward meanwhile. */
const MAX_SLEEP_MS = 30_000
/** The clock was put forward or back where it differs by so much from the time that has passed. */
const STEP_MS = 2000

/** Times and timers, so that tests can do without waiting. */
interface Clock {
  /** Milliseconds that only ever grow, whatever the clock on the wall does. */
  passed(): number
  set(run: () => void, ms: number): () => void
}

const REAL_CLOCK: Clock = {
  passed: () => performance.now(),
  set(run, ms) {
    const timer = setTimeout(run, ms).unref()
    return () => clearTimeout(timer)
  },
}

export interface StartedController {
  stop(): Promise<void>
}

/** Runs in processes that write. */
export function startController(parts: ControllerParts, clock = REAL_CLOCK): StartedController {
  const reports = new ReportOnce<unknown>({ failed: parts.failed })
  const lookout = new Lookout(parts, clock, reports)
  lookout.start()
  return lookout
}

class Lookout implements StartedController {
  readonly #parts: ControllerParts
  readonly #clock: Clock
  readonly #reports: ReportOnce<unknown>
  readonly #controller: RolloutController
  readonly #delays = backoff({ first: CHECK_MS, max: MAX_SLEEP_MS })
  #cancel = (): void => {}
  #unsubscribe = (): void => {}
  #running: Promise<unknown> | undefined
  #isStopped = false
  /** What the last look was of, and when it was by both clocks. */
  #seen = ''
  #seenAt = { wall: 0, passed: 0 }
  /** Of the rollouts and holds that were last published. */
  #stamp = ''

  constructor(parts: ControllerParts, clock: Clock, reports: ReportOnce<unknown>) {
    this.#parts = parts
    this.#clock = clock
    this.#reports = reports
    this.#controller = createController({ ...parts, failed: (problem) => reports.fail(problem) })
  }

  start(): void {
    this.#unsubscribe = this.#parts.subscribe(() => this.#published())
    this.#published()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#unsubscribe()
    this.#cancel()
    await this.#running
    // The store may be away: the lease then runs out by itself.
    await this.#controller.stop().catch(() => {})
  }

  /** What other processes and people do to rollouts and holds is looked at at once. */
  #published(): void {
    const { state } = this.#parts
    const stamp = `${state.stamp(ROLLOUTS)} ${state.stamp(HOLDS)}`
    if (stamp === this.#stamp) return
    this.#stamp = stamp
    if (!this.#running) this.#schedule(0)
  }

  #schedule(ms: number): void {
    this.#cancel()
    if (!this.#isStopped && ms < Number.POSITIVE_INFINITY)
      this.#cancel = this.#clock.set(() => this.#wake(), ms)
  }

  #wake(): void {
    if (!this.#isDue()) {
      this.#schedule(this.#sleepMs())
      return
    }
    this.#running = this.#look().then((ms) => {
      this.#running = undefined
      this.#schedule(ms)
    })
  }

  /** How long nothing has to be checked: without rollouts only holds end, at their times. */
  #sleepMs(): number {
    const { hasRollouts, nextLook } = this.#controller
    const ms = Math.max(0, nextLook - this.#parts.now().getTime())
    if (hasRollouts) return Math.min(ms, CHECK_MS)
    return ms === Number.POSITIVE_INFINITY ? ms : Math.min(ms, MAX_SLEEP_MS)
  }

  #isDue(): boolean {
    const { hasRollouts, hasHolds, nextLook } = this.#controller
    if (!hasRollouts && !hasHolds) return false
    const wall = this.#parts.now().getTime()
    const passed = this.#clock.passed() - this.#seenAt.passed
    const isSet = Math.abs(wall - this.#seenAt.wall - passed) > STEP_MS
    return wall >= nextLook || isSet || passed >= MAX_BLIND_MS || this.#stampOf() !== this.#seen
  }

  /** Looks; returns how long to sleep then. */
  async #look(): Promise<number> {
    const begun = this.#clock.passed()
    const former = this.#reports.failure
    this.#seen = this.#stampOf()
    this.#seenAt = { wall: this.#parts.now().getTime(), passed: begun }
    try {
      await this.#controller.tick()
      if (this.#reports.failure === former) this.#reports.succeed()
    } catch (error) {
      this.#reports.fail(error)
    }
    if (this.#reports.failure !== undefined) {
      // What failed is tried again, also where nothing changes.
      this.#seen = ''
      return this.#delays.next()
    }
    this.#delays.reset()
    return Math.max((this.#clock.passed() - begun) / LOOK_SHARE, this.#sleepMs())
  }

  #stampOf(): string {
    const { state, fleet } = this.#parts
    return `${state.revision} ${fleet.news}`
  }
}

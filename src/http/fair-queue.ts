// Requests in turn by who sends them: while the process is busy, one caller's thousand do not go before another's one.
import { RoundRobin } from '../engine/round-robin.ts'

/** How much of each turn of the event loop goes to requests that came in it, and to those that wait. */
const TURN_MS = 0.5

export class FairQueue {
  readonly #waiting = new RoundRobin<() => void>()
  #spent = 0
  #isScheduled = false

  /**
   * Runs the task at once, or when its caller's turn comes; who that is has to be known only then. What a task does later
   * is not seen here: `leastMs` is what it costs at the least.
   */
  run(callerOf: () => string, leastMs: number, task: () => void): void {
    if (this.#spent < TURN_MS && this.#waiting.isEmpty) this.#do(task, leastMs)
    else this.#waiting.add(callerOf(), () => this.#do(task, leastMs))
    this.#schedule()
  }

  #do(task: () => void, leastMs: number): void {
    const begun = performance.now()
    task()
    this.#spent += Math.max(performance.now() - begun, leastMs)
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#nextTurn())
  }

  #nextTurn(): void {
    this.#isScheduled = false
    this.#spent = 0
    while (this.#spent < TURN_MS && !this.#waiting.isEmpty) this.#waiting.take()?.()
    if (!this.#waiting.isEmpty) this.#schedule()
  }
}

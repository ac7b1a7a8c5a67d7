// Requests in turn by who sends them: while the process is busy, one caller's thousand do not go before another's one.
import { RoundRobin } from '../engine/round-robin.ts'

/** How much of a turn of the event loop goes to requests that came in it, and to those that wait. */
const TURN_MS = 0.5
/**
 * Turns between two in which waiting requests are served. Node accepts one connection in each turn: in short ones it
 * accepts those of polls as fast as an attacker can open others.
 */
const SHORT_TURNS = 7

export class FairQueue {
  readonly #waiting = new RoundRobin<() => void>()
  #spent = 0
  #isScheduled = false
  #shortTurns = 0

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
    if (this.#shortTurns-- > 0) return void this.#schedule()
    this.#spent = 0
    while (this.#spent < TURN_MS && !this.#waiting.isEmpty) this.#waiting.take()?.()
    this.#shortTurns = this.#waiting.isEmpty ? 0 : SHORT_TURNS
    if (!this.#waiting.isEmpty) this.#schedule()
  }
}

// Requests in turn by who sends them: while the process is busy, one caller's thousand do not go before another's one.
import { RoundRobin } from '../../runtime/round-robin.ts'

/** How much is done at once of what comes, and of what waits, before the event loop takes a turn. */
const TURN_MS = 0.5
/**
 * Turns in a row in which nothing that waits is done, while there are new connections: Node accepts one of them in each
 * turn, and in short ones it accepts those of polls as fast as an attacker can open others.
 */
const SHORT_TURNS = 7

export class FairQueue {
  readonly #waiting = new RoundRobin<() => void>()
  #spent = 0
  /** When the task began that is running. */
  #begun: number | undefined
  #isScheduled = false
  #shortTurns = 0
  #hasAccepted = false

  /** A connection was accepted: others may wait behind it. */
  noteConnection(): void {
    this.#hasAccepted = true
  }

  /**
   * Runs the task at once, or when its caller's turn comes; who that is has to be known only then. What a task does later
   * is not seen here: `leastMs` is what it costs at the least.
   */
  run(callerOf: () => string, leastMs: number, task: () => void): void {
    if (!this.#isOver && this.#waiting.isEmpty) this.#do(task, leastMs)
    else this.#waiting.add(nameOf(callerOf), () => this.#do(task, leastMs))
    if (this.#isOver) this.#schedule()
  }

  #do(task: () => void, leastMs: number): void {
    const begun = performance.now()
    // A task may run others by this queue: their time is part of its own.
    const isOutermost = this.#begun === undefined
    if (isOutermost) this.#begun = begun
    try {
      task()
    } finally {
      const took = performance.now() - begun
      if (isOutermost) {
        this.#begun = undefined
        this.#spent += took
      }
      this.#spent += Math.max(leastMs - took, 0)
    }
  }

  get #isOver(): boolean {
    const running = this.#begun === undefined ? 0 : performance.now() - this.#begun
    return this.#spent + running >= TURN_MS
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#nextTurn())
  }

  #nextTurn(): void {
    this.#isScheduled = false
    if (this.#hasAccepted && this.#shortTurns < SHORT_TURNS && !this.#waiting.isEmpty) {
      this.#shortTurns++
      this.#hasAccepted = false
      return void this.#schedule()
    }
    this.#shortTurns = 0
    this.#spent = 0
    while (!this.#isOver && !this.#waiting.isEmpty) this.#waiting.take()?.()
    if (this.#isOver || !this.#waiting.isEmpty) this.#schedule()
  }
}

/** A caller who cannot be named waits as nobody: the task meets the same failure, and responds with it. */
function nameOf(callerOf: () => string): string {
  try {
    return callerOf()
  } catch {
    return ''
  }
}

// Writes, one at a time: callers take turns, and administrators go first.
import { RoundRobin } from '../runtime/round-robin.ts'

/** Who sends a write. */
export interface Sender {
  /** Callers take turns, however much each of them sends. */
  readonly caller: string
  /** An urgent write goes before others, even before one that has begun but not committed. */
  readonly isUrgent: boolean
  /** Aborted when the caller has left, or has waited long enough. */
  readonly signal?: AbortSignal | undefined
}

/** How the queue and the write that runs talk to each other. */
export interface Turn {
  /** Aborted when the write has to stop: nothing of it may be committed then. */
  readonly signal: AbortSignal
  /** To be called before the commit: from here on the write runs to its end. */
  hold(): void
}

interface Waiting {
  readonly sender: Sender
  readonly task: (turn: Turn) => Promise<unknown>
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

interface Running extends Waiting {
  readonly controller: AbortController
  isHeld: boolean
}

/** The abort reason of a write that an urgent one overtakes; it runs again afterwards. */
const OVERTAKEN = new Error('an urgent write goes first')

export class WriteQueue {
  readonly #urgent = new RoundRobin<Waiting>()
  readonly #others = new RoundRobin<Waiting>()
  #running: Running | undefined
  #count = 0
  #idle = Promise.withResolvers<void>()

  /** How many writes have not ended yet. */
  get size(): number {
    return this.#count
  }

  /** Runs the task when its turn comes; an overtaken task runs again from its beginning. */
  run<T>(sender: Sender, task: (turn: Turn) => Promise<T>): Promise<T> {
    if (sender.signal?.aborted) return Promise.reject(sender.signal.reason)
    if (this.#count++ === 0) this.#idle = Promise.withResolvers()
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const waiting: Waiting = { sender, task, resolve: resolve as (value: unknown) => void, reject }
    const leave = (): void => this.#leave(waiting)
    sender.signal?.addEventListener('abort', leave, { once: true })
    this.#line(sender).add(sender.caller, waiting)
    if (sender.isUrgent) this.#overtake()
    this.#next()
    return promise.finally(() => {
      sender.signal?.removeEventListener('abort', leave)
      if (--this.#count === 0) this.#idle.resolve()
    })
  }

  /** Resolves when every write has ended. */
  async drained(): Promise<void> {
    if (this.#count > 0) await this.#idle.promise
  }

  #line({ isUrgent }: Sender): RoundRobin<Waiting> {
    return isUrgent ? this.#urgent : this.#others
  }

  #overtake(): void {
    const running = this.#running
    if (running && !running.sender.isUrgent && !running.isHeld) running.controller.abort(OVERTAKEN)
  }

  /** Cancels the write of a caller that has left, unless it is being committed. */
  #leave(waiting: Waiting): void {
    const { sender, reject } = waiting
    const reason = sender.signal?.reason
    const running = this.#running
    if (this.#line(sender).remove(sender.caller, waiting)) reject(reason)
    else if (running?.task === waiting.task && !running.isHeld) running.controller.abort(reason)
  }

  #next(): void {
    const waiting = this.#running ? undefined : (this.#urgent.take() ?? this.#others.take())
    if (waiting) void this.#run(waiting)
  }

  async #run(waiting: Waiting): Promise<void> {
    const controller = new AbortController()
    const running: Running = { ...waiting, controller, isHeld: false }
    this.#running = running
    const hold = (): void => {
      controller.signal.throwIfAborted()
      running.isHeld = true
    }
    try {
      waiting.resolve(await waiting.task({ signal: controller.signal, hold }))
    } catch (error) {
      const { signal } = waiting.sender
      if (error !== OVERTAKEN) waiting.reject(error)
      else if (signal?.aborted) waiting.reject(signal.reason)
      else this.#line(waiting.sender).addFirst(waiting.sender.caller, waiting)
    } finally {
      this.#running = undefined
      this.#next()
    }
  }
}

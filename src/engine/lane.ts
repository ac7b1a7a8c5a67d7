// A lane: expensive work with limited concurrency. Callers take turns, and administrators need not wait for others.
import { RoundRobin } from '../runtime/round-robin.ts'
import type { Sender } from './write-queue.ts'

export interface LaneLimits {
  /** How many tasks run at once; administrators may have `reserved` more. */
  readonly total: number
  readonly reserved: number
  /** How many tasks of one caller run at once. */
  readonly perCaller: number
}

interface Waiting {
  readonly sender: Sender
  readonly begin: () => void
}

export class Lane {
  readonly #limits: LaneLimits
  readonly #urgent = new RoundRobin<Waiting>()
  readonly #others = new RoundRobin<Waiting>()
  readonly #running = new Map<string, number>()
  #total = 0

  constructor(limits: LaneLimits) {
    this.#limits = limits
  }

  /** Runs the task when there is room; throws the signal's reason when it is aborted before. */
  async run<T>(sender: Sender, task: () => Promise<T>): Promise<T> {
    await this.#enter(sender)
    try {
      return await task()
    } finally {
      this.#count(sender.caller, -1)
      this.#next()
    }
  }

  async #enter(sender: Sender): Promise<void> {
    const { caller, isUrgent, signal } = sender
    signal?.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiting: Waiting = { sender, begin: resolve }
    const line = isUrgent ? this.#urgent : this.#others
    line.add(caller, waiting)
    const leave = (): void => {
      if (line.remove(caller, waiting)) reject(signal?.reason)
    }
    signal?.addEventListener('abort', leave, { once: true })
    this.#next()
    try {
      await promise
    } finally {
      signal?.removeEventListener('abort', leave)
    }
  }

  #next(): void {
    for (;;) {
      const { total, reserved, perCaller } = this.#limits
      const hasRoom = (caller: string): boolean => (this.#running.get(caller) ?? 0) < perCaller
      const next =
        (this.#total < total + reserved ? this.#urgent.take(hasRoom) : undefined) ??
        (this.#total < total ? this.#others.take(hasRoom) : undefined)
      if (!next) return
      this.#count(next.sender.caller, 1)
      next.begin()
    }
  }

  #count(caller: string, by: number): void {
    this.#total += by
    const running = (this.#running.get(caller) ?? 0) + by
    if (running > 0) this.#running.set(caller, running)
    else this.#running.delete(caller)
  }
}

// One calendar for everything that is due at some time: slots of some milliseconds, each with its members.
import { getOrSet } from '../../src/base/get-or-set.ts'

export class TimerWheel<T> {
  readonly #slotMs: number
  readonly #slots = new Map<number, Set<T>>()
  readonly #slotOf = new Map<T, number>()
  #passed: number

  constructor(slotMs: number, now: number) {
    this.#slotMs = slotMs
    this.#passed = Math.floor(now / slotMs) - 1
  }

  /** Enters something at its time, instead of any earlier entry; at Infinity it is not entered. */
  set(item: T, at: number): void {
    const before = this.#slotOf.get(item)
    // What was due already is due in the next slot that is taken. Never early: the end of a slot counts.
    const slot = Math.max(this.#passed + 1, Math.ceil(at / this.#slotMs))
    if (slot === before) return
    if (before !== undefined) this.#slots.get(before)?.delete(item)
    if (slot === Number.POSITIVE_INFINITY) {
      this.#slotOf.delete(item)
      return
    }
    this.#slotOf.set(item, slot)
    getOrSet(this.#slots, slot, () => new Set<T>()).add(item)
  }

  /** Takes out everything that is due, in order of time. */
  *take(now: number): Generator<T> {
    const last = Math.floor(now / this.#slotMs)
    for (let slot = this.#passed + 1; slot <= last; slot++) {
      this.#passed = slot
      const items = this.#slots.get(slot)
      if (!items) continue
      this.#slots.delete(slot)
      for (const item of items) this.#slotOf.delete(item)
      yield* items
    }
  }

  /** When the next slot with members ends; Infinity when there is none. */
  get dueAt(): number {
    let first = Number.POSITIVE_INFINITY
    for (const [slot, items] of this.#slots) if (items.size > 0 && slot < first) first = slot
    return first * this.#slotMs
  }
}

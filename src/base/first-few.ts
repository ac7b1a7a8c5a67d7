// The first few of many items by their order, without sorting all of them at once.

export class FirstFew<T> {
  readonly #count: number
  readonly #compare: (one: T, other: T) => number
  #kept: T[] = []

  constructor(count: number, compare: (one: T, other: T) => number) {
    this.#count = count
    this.#compare = compare
  }

  add(item: T): void {
    this.#kept.push(item)
    if (this.#kept.length >= 2 * this.#count + SLACK) this.#cut()
  }

  /** In order; of equal ones those that were added first. */
  all(): readonly T[] {
    this.#cut()
    return this.#kept
  }

  #cut(): void {
    this.#kept.sort(this.#compare)
    this.#kept.length = Math.min(this.#kept.length, this.#count)
  }
}

/** So that few items are not sorted again and again. */
const SLACK = 100

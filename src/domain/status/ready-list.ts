// The components that a cluster reported as ready, each with the digest of its input: compact, since every cluster has one.
import type { Halves } from '../../base/digest.ts'

export interface ReadyEntry {
  readonly id: string
  readonly mark: Halves
  /** When it was first reported with this digest, in milliseconds since the epoch. */
  readonly since: number
}

const FIELDS = 3

export class ReadyList {
  /** In order, so that an id is found by bisection. */
  readonly #ids: readonly string[]
  /** Three numbers for each id: the halves of the digest, and the time. */
  readonly #numbers: Float64Array

  /** Of two entries with one id the first counts. */
  constructor(entries: Iterable<ReadyEntry>) {
    const byId = new Map<string, ReadyEntry>()
    for (const entry of entries) if (!byId.has(entry.id)) byId.set(entry.id, entry)
    const sorted = [...byId.values()].sort((one, other) => (one.id < other.id ? -1 : 1))
    this.#ids = sorted.map(({ id }) => id)
    this.#numbers = new Float64Array(sorted.length * FIELDS)
    for (const [i, { mark, since }] of sorted.entries())
      this.#numbers.set([mark.a, mark.b, since], i * FIELDS)
  }

  get size(): number {
    return this.#ids.length
  }

  /** When an id was first reported with this digest; undefined when the last report does not hold it. */
  sinceOf(id: string, { a, b }: Halves): number | undefined {
    const at = this.#indexOf(id) * FIELDS
    if (at < 0 || this.#numbers[at] !== a || this.#numbers[at + 1] !== b) return undefined
    return this.#numbers[at + 2]
  }

  /** The digest that an id was reported with. */
  markOf(id: string): Halves | undefined {
    const at = this.#indexOf(id) * FIELDS
    return at < 0 ? undefined : { a: this.#numbers[at] as number, b: this.#numbers[at + 1] as number }
  }

  *entries(): Generator<ReadyEntry> {
    for (const [i, id] of this.#ids.entries()) {
      const [a, b, since] = this.#numbers.subarray(i * FIELDS) as unknown as [number, number, number]
      yield { id, mark: { a, b }, since }
    }
  }

  #indexOf(id: string): number {
    let [low, high] = [0, this.#ids.length - 1]
    while (low <= high) {
      const middle = (low + high) >> 1
      const found = this.#ids[middle] as string
      if (found === id) return middle
      if (found < id) low = middle + 1
      else high = middle - 1
    }
    return -1
  }
}

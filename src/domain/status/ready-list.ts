// The components that a cluster reported as ready, each with the digest of its input: compact, since every cluster has one.
import type { Halves } from '../../base/digest.ts'

export interface ReadyEntry {
  readonly id: string
  readonly mark: Halves
  /** When it was first reported with this digest, in milliseconds since the epoch. */
  readonly since: number
}

export class ReadyList {
  /** In order, so that an id is found by bisection. */
  readonly #ids: readonly string[]
  /** By the place of the id: the halves of the digest, and the time. Many small typed arrays would take more memory. */
  readonly #a: readonly number[]
  readonly #b: readonly number[]
  readonly #since: readonly number[]

  /** Of two entries with one id the first counts. */
  constructor(entries: Iterable<ReadyEntry>) {
    const byId = new Map<string, ReadyEntry>()
    for (const entry of entries) if (!byId.has(entry.id)) byId.set(entry.id, entry)
    const sorted = [...byId.values()].sort((one, other) => (one.id < other.id ? -1 : 1))
    this.#ids = sorted.map(({ id }) => id)
    this.#a = sorted.map(({ mark }) => mark.a)
    this.#b = sorted.map(({ mark }) => mark.b)
    this.#since = sorted.map(({ since }) => since)
  }

  get size(): number {
    return this.#ids.length
  }

  /** When an id was first reported with this digest; undefined when the last report does not hold it. */
  sinceOf(id: string, { a, b }: Halves): number | undefined {
    const at = this.#indexOf(id)
    return at >= 0 && this.#a[at] === a && this.#b[at] === b ? this.#since[at] : undefined
  }

  /** The digest that an id was reported with. */
  markOf(id: string): Halves | undefined {
    const at = this.#indexOf(id)
    return at < 0 ? undefined : this.#markAt(at)
  }

  *entries(): Generator<ReadyEntry> {
    for (const [at, id] of this.#ids.entries())
      yield { id, mark: this.#markAt(at), since: this.#since[at] as number }
  }

  #markAt(at: number): Halves {
    return { a: this.#a[at] as number, b: this.#b[at] as number }
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

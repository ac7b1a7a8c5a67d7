// How many clusters are in each state.
import {
  CONTACTS,
  type Column,
  type Contact,
  DELIVERIES,
  type Delivered,
  HEALTHS,
  type Health,
  isHeard,
  type StatusRow,
} from './status-words.ts'

/** Every state is there, those of no cluster as 0. */
export interface StatusCounts {
  readonly contact: Readonly<Record<Contact, number>>
  readonly delivery: Readonly<Record<Delivered, number>>
  readonly health: Readonly<Record<Health, number>>
  /** Of `delivery`, the clusters that are silent: it is what was so when they were last heard of. */
  readonly past: Readonly<Record<Delivered, number>>
}

/** Fast where clusters with the same states share one row. */
export class StatusTally {
  readonly #rows = new Map<StatusRow, number>()

  constructor(parts: Iterable<StatusTally> = []) {
    for (const part of parts) for (const [row, count] of part.#rows) this.count(row, count)
  }

  get total(): number {
    let total = 0
    for (const count of this.#rows.values()) total += count
    return total
  }

  count(row: StatusRow, by = 1): void {
    this.#rows.set(row, (this.#rows.get(row) ?? 0) + by)
  }

  counts(): StatusCounts {
    return {
      contact: this.#countsOf(CONTACTS, 'contact'),
      delivery: this.#countsOf(DELIVERIES, 'delivery'),
      health: this.#countsOf(HEALTHS, 'health'),
      past: this.#countsOf(DELIVERIES, 'delivery', ({ contact }) => !isHeard(contact)),
    }
  }

  #countsOf<T extends string>(
    words: readonly T[],
    column: Column,
    takes: (row: StatusRow) => boolean = () => true,
  ): Record<T, number> {
    const counts = Object.fromEntries(words.map((word) => [word, 0])) as Record<string, number>
    for (const [row, count] of this.#rows)
      if (takes(row)) counts[row[column]] = (counts[row[column]] ?? 0) + count
    return counts as Record<T, number>
  }
}

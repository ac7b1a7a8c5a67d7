// How many clusters a change affects, and how: exact over the whole fleet, however few details are shown.
import { getOrSet } from '../../base/get-or-set.ts'
import type { Steps } from '../../base/steps.ts'
import type { EndpointDifference } from './compare-inputs.ts'
import type { Passage } from './compare-served.ts'

export interface ImpactCounts {
  /** How many clusters receive anything differently. */
  readonly clusters: number
  readonly by_environment: Readonly<Record<string, number>>
  /** Clusters that receive anything differently, or whose own document changes. */
  readonly touched: number
  /** Clusters that exist only after, and those that exist only before; with inputs or without. */
  readonly joining: number
  readonly leaving: number
  /** Clusters that stay, and have an input removed or disabled. */
  readonly losing: number
  /** By endpoint; counts of clusters and of their inputs. */
  readonly endpoints: Readonly<Record<string, EndpointImpact>>
  /** By input, for clusters that stay: those that reach the most clusters first. */
  readonly inputs: readonly InputImpact[]
  /** How many inputs there are to count, shown or not. */
  readonly input_count: number
}

interface EndpointImpact {
  clusters: number
  added: number
  removed: number
  changed: number
}

/** How many clusters get an input, lose it, or receive it differently; of the latter, how many have it disabled. */
export interface InputImpact {
  readonly endpoint: string
  readonly id: string
  readonly added: number
  readonly removed: number
  readonly changed: number
  readonly switched_off: number
  /** By JSON pointer: how many clusters receive another value there. */
  readonly fields: Readonly<Record<string, number>>
}

const MAX_INPUTS = 100
/** Fields counted for one input, at most: values may have any number of keys. */
const MAX_FIELDS = 20

class InputCounts {
  added = 0
  removed = 0
  changed = 0
  disabled = 0
  readonly fields = new Map<string, number>()

  get reach(): number {
    return this.added + this.removed + this.changed
  }

  count(path: string): void {
    const known = this.fields.get(path)
    if (known === undefined && this.fields.size === MAX_FIELDS) return
    this.fields.set(path, (known ?? 0) + 1)
  }

  summary(): Omit<InputImpact, 'endpoint' | 'id'> {
    const { added, removed, changed, disabled } = this
    const fields = Object.fromEntries([...this.fields].sort(([, a], [, b]) => b - a))
    return { added, removed, changed, switched_off: disabled, fields }
  }
}

/** Counts one cluster after the other. */
export class ImpactCounter {
  #clusters = 0
  #touched = 0
  #losing = 0
  readonly #passages: Record<Passage, number> = { joins: 0, leaves: 0, stays: 0 }
  readonly #environments = new Map<string, number>()
  readonly #endpoints: Record<string, EndpointImpact> = {}
  readonly #inputs = new Map<string, Map<string, InputCounts>>()

  /** Adds a cluster that receives something different, or whose own document changes. */
  add(environment: string, passage: Passage, differences: readonly EndpointDifference[]): void {
    this.#touched++
    this.#passages[passage]++
    if (differences.length === 0) return
    this.#clusters++
    this.#environments.set(environment, (this.#environments.get(environment) ?? 0) + 1)
    for (const difference of differences) this.#addEndpoint(difference)
    if (passage !== 'stays') return
    for (const difference of differences) this.#addInputs(difference)
    if (differences.some(({ removed, disabled }) => removed.length + disabled.length > 0)) this.#losing++
  }

  #addEndpoint({ type, added, removed, changed }: EndpointDifference): void {
    const { endpoint } = type.delivery
    this.#endpoints[endpoint] ??= { clusters: 0, added: 0, removed: 0, changed: 0 }
    const counts = this.#endpoints[endpoint]
    counts.clusters++
    counts.added += added.length
    counts.removed += removed.length
    counts.changed += changed.length
  }

  #addInputs({ type, added, removed, changed, disabled }: EndpointDifference): void {
    const inputs = getOrSet(this.#inputs, type.delivery.endpoint, () => new Map<string, InputCounts>())
    const countsOf = (id: string): InputCounts => getOrSet(inputs, id, () => new InputCounts())
    for (const id of added) countsOf(id).added++
    for (const id of removed) countsOf(id).removed++
    for (const id of disabled) countsOf(id).disabled++
    for (const { id, fields } of changed) {
      const counts = countsOf(id)
      counts.changed++
      for (const { path } of fields) counts.count(path)
    }
  }

  *counts(): Steps<ImpactCounts> {
    return {
      clusters: this.#clusters,
      by_environment: Object.fromEntries([...this.#environments].sort()),
      touched: this.#touched,
      joining: this.#passages.joins,
      leaving: this.#passages.leaves,
      losing: this.#losing,
      endpoints: this.#endpoints,
      inputs: yield* this.#widest(),
      input_count: this.#inputs.values().reduce((sum, byId) => sum + byId.size, 0),
    }
  }

  /**
   * Returns the inputs that reach the most clusters. Sorts a few at a time: there may be as many as there are
   * definitions.
   */
  *#widest(): Steps<InputImpact[]> {
    let widest: Counted[] = []
    const cut = (): void => {
      widest = widest.sort(byReach).slice(0, MAX_INPUTS)
    }
    for (const [endpoint, byId] of this.#inputs) {
      for (const [id, counts] of byId) {
        yield
        if (widest.push({ endpoint, id, counts }) === 2 * MAX_INPUTS) cut()
      }
    }
    cut()
    return widest.map(({ endpoint, id, counts }) => ({ endpoint, id, ...counts.summary() }))
  }
}

interface Counted {
  readonly endpoint: string
  readonly id: string
  readonly counts: InputCounts
}

function byReach(a: Counted, b: Counted): number {
  const [x, y] = a.endpoint === b.endpoint ? [a.id, b.id] : [a.endpoint, b.endpoint]
  return b.counts.reach - a.counts.reach || (x < y ? -1 : 1)
}

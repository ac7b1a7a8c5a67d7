// What clusters are served differently between two views, cluster by cluster.
import { getOrSet } from '../../base/get-or-set.ts'
import type { Overlay } from '../documents/overlay.ts'
import type { Entry, View } from '../documents/view.ts'
import { StagedView } from '../rollouts/staged-view.ts'
import { restagedClusters, stagingOf } from '../rollouts/staging.ts'
import type { Types } from '../types/resource-type.ts'
import { type EndpointDifference, InputComparison } from './compare-inputs.ts'
import { type ServedTo, type ServedView, servedTo } from './served-view.ts'

/** Whether a cluster exists before and after, or comes or goes. */
export type Passage = 'joins' | 'stays' | 'leaves'

/** A cluster by its id; where its own document is the same before and after, its entry is at hand mostly. */
export type Candidate = Entry | { readonly id: string }

const NO_DIFFERENCES: readonly EndpointDifference[] = []

/** A view, and the same with something laid over it. Each cluster is compared as it is served from the two. */
export class Comparison {
  readonly types: Types
  readonly before: View
  readonly after: Overlay
  readonly #servedTo: ServedTo
  readonly #clusters: ReadonlyMap<string, unknown>
  readonly #definitions = new Map<string, ReadonlyMap<string, unknown>>()
  /** By the view before and the view after: nothing is kept across clusters that are served from different views. */
  readonly #pairs = new Map<ServedView, Map<ServedView, InputComparison>>()
  #lastPair: InputComparison | undefined
  /** Results for clusters with something laid over them: the brake asks for these, and the impact again. */
  readonly #compared = new Map<string, readonly EndpointDifference[]>()

  constructor(types: Types, before: View, after: Overlay, served: ServedTo = servedTo) {
    this.types = types
    this.before = before
    this.after = after
    this.#servedTo = served
    this.#clusters = after.laid(types.cluster.type.name)
    for (const { name } of types.delivered) {
      const laid = after.laid(name)
      if (laid.size > 0) this.#definitions.set(name, laid)
    }
  }

  /** The clusters that may receive something else, ordered by id. */
  *candidates(): Generator<Candidate> {
    const type = this.types.cluster.type.name
    if (this.#definitions.size === 0) {
      const restaged = restagedClusters(stagingOf(this.types, this.before), stagingOf(this.types, this.after))
      for (const id of [...new Set([...this.#clusters.keys(), ...restaged])].sort()) yield { id }
      return
    }
    const others = [...this.#clusters.keys()].filter((id) => !this.before.get(type, id)).sort()
    let next = 0
    for (const entry of this.before.all(type)) {
      for (let id = others[next]; id !== undefined && id < entry.id; id = others[++next]) yield { id }
      yield this.#clusters.has(entry.id) ? { id: entry.id } : entry
    }
    for (const id of others.slice(next)) yield { id }
  }

  compare(cluster: Candidate): readonly EndpointDifference[] {
    const { id } = cluster
    if (!this.#clusters.has(id)) return this.#compare(cluster)
    return getOrSet(this.#compared, id, () => this.#compare(cluster))
  }

  /** The deleted clusters that might receive something else if they were restored. */
  restorable(): Iterable<Entry> {
    return this.#definitions.size === 0 ? [] : this.before.tombstones(this.types.cluster.type.name)
  }

  /** What a deleted cluster would receive differently, restored as it is. */
  compareRestored({ id, document }: Entry): readonly EndpointDifference[] {
    const pair = this.#pairFor(id)
    return this.types.delivered.flatMap((type) => pair.compareDefinitions(type, document) ?? [])
  }

  #compare(cluster: Candidate): readonly EndpointDifference[] {
    const { id } = cluster
    const type = this.types.cluster.type.name
    const pair = this.#pairFor(id)
    const isAtHand = 'document' in cluster && pair.before === this.before
    const before = isAtHand ? cluster : pair.before.get(type, id)
    const isSame = !this.#clusters.has(id) && pair.isPlain
    const after = isSame ? before : pair.after.get(type, id)
    if (!before && !after) return []
    let differences: EndpointDifference[] | undefined
    for (const delivered of this.types.delivered) {
      const found =
        before === after
          ? pair.compareDefinitions(delivered, (before as Entry).document)
          : pair.compareDocuments(delivered, before?.document, after?.document)
      if (!found) continue
      differences ??= []
      differences.push(found)
    }
    return differences ?? NO_DIFFERENCES
  }

  #pairFor(cluster: string): InputComparison {
    const before = this.#servedTo(this.types, this.before, cluster)
    const after = this.#servedTo(this.types, this.after, cluster)
    const last = this.#lastPair
    if (last?.before === before && last.after === after) return last
    const byAfter = getOrSet(this.#pairs, before, () => new Map<ServedView, InputComparison>())
    const pair = getOrSet(byAfter, after, () => {
      const isPlain = this.#isPlain({ before, after })
      return new InputComparison(this.types, before, after, isPlain ? this.#definitions : undefined)
    })
    this.#lastPair = pair
    return pair
  }

  /**
   * Whether clusters are served from the compared views themselves, or with the same rollouts laid over both: then only
   * what is laid over one view can differ.
   */
  #isPlain({ before, after }: Pick<InputComparison, 'before' | 'after'>): boolean {
    const [one, other]: readonly View[] = [before, after]
    if (one instanceof StagedView && other instanceof StagedView) return one.hasSameOverlays(other)
    return one === this.before && other === this.after
  }

  /** Whether the cluster's own document changes. */
  isTouched(id: string): boolean {
    const type = this.types.cluster.type.name
    return this.#clusters.has(id) && this.before.get(type, id) !== this.after.get(type, id)
  }

  passageOf(id: string): Passage {
    if (!this.#clusters.has(id)) return 'stays'
    const type = this.types.cluster.type.name
    if (!this.before.get(type, id)) return 'joins'
    return this.after.get(type, id) ? 'stays' : 'leaves'
  }

  environmentOf(cluster: Candidate): string {
    const { id } = cluster
    const { type, environment } = this.types.cluster
    const entry =
      'document' in cluster ? cluster : (this.after.get(type.name, id) ?? this.before.get(type.name, id))
    return String((environment && entry?.document[environment]) ?? '')
  }
}

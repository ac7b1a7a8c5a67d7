// A view with the edits of rollouts laid over it.
import type { Ceilings, Entry, View } from '../documents/view.ts'
import type { RolloutOverlay } from './rollout-overlay.ts'

/** Follows the view underneath: a document that changes there changes here too, but for the edited fields. */
export class StagedView implements View {
  readonly #base: View
  readonly #overlays: readonly RolloutOverlay[]

  constructor(base: View, overlays: readonly RolloutOverlay[]) {
    this.#base = base
    this.#overlays = overlays
  }

  hasSameOverlays(other: StagedView): boolean {
    const others = other.#overlays
    return (
      this.#overlays.length === others.length && this.#overlays.every((overlay, i) => overlay === others[i])
    )
  }

  get revision(): number {
    return this.#base.revision
  }

  get ceilings(): Ceilings {
    return this.#base.ceilings
  }

  stamp(type: string): number {
    return this.#base.stamp(type)
  }

  get(type: string, id: string): Entry | undefined {
    let entry = this.#base.get(type, id)
    for (const overlay of this.#overlays) entry = overlay.lay(type, id, entry)
    return entry
  }

  tombstone(type: string, id: string): Entry | undefined {
    return this.get(type, id) ? undefined : this.#base.tombstone(type, id)
  }

  tombstones(type: string): Iterable<Entry> {
    return this.#base.tombstones(type)
  }

  *all(type: string): Generator<Entry> {
    const added = this.#added(type)
    let next = 0
    for (const { id } of this.#base.all(type)) {
      for (let first = added[next]; first && first.id < id; first = added[++next]) yield first
      const entry = this.get(type, id)
      if (entry) yield entry
    }
    yield* added.slice(next)
  }

  count(type: string): number {
    let count = this.#base.count(type)
    for (const id of this.#edited(type))
      count += Number(this.get(type, id) !== undefined) - Number(this.#base.get(type, id) !== undefined)
    return count
  }

  /** Rollouts change no DNS name, and neither create nor delete clusters. */
  dnsHolder(dns: string, except?: string): Entry | undefined {
    return this.#base.dnsHolder(dns, except)
  }

  tombstonesWithDns(dns: string): readonly Entry[] {
    return this.#base.tombstonesWithDns(dns)
  }

  #edited(type: string): Set<string> {
    return new Set(this.#overlays.flatMap((overlay) => [...overlay.edited(type).keys()]))
  }

  #added(type: string): Entry[] {
    const entries: Entry[] = []
    for (const id of this.#edited(type)) {
      const entry = this.#base.get(type, id) ? undefined : this.get(type, id)
      if (entry) entries.push(entry)
    }
    return entries.sort((a, b) => (a.id < b.id ? -1 : 1))
  }
}

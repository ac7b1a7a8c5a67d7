// Which clusters of a view are served something else than its documents: open waves of rollouts, and holds.
import { Overlay } from '../documents/overlay.ts'
import type { Entry, View } from '../documents/view.ts'
import type { Types } from '../types/resource-type.ts'
import { type ActiveRollout, activeRolloutOf } from './active-rollout.ts'
import { HeldView, HOLDS } from './hold.ts'
import { asRollout, isActive, ROLLOUT_PLANS, ROLLOUTS } from './rollout.ts'
import { StagedView } from './staged-view.ts'

/** So many rollouts may be active at a time: which of them are open for a cluster is a number of bits. */
export const MAX_ACTIVE = 16

export class Staging {
  /** Rollouts that have not ended, ordered by id. */
  readonly active: readonly ActiveRollout[]
  readonly #view: View
  readonly #clusters: string
  readonly #holds: number
  readonly #stamps: readonly number[]
  /** By the bits of the rollouts that are laid over the view. */
  readonly #views = new Map<number, View>()
  readonly #held: WeakMap<Entry, HeldView>

  constructor(types: Types, view: View, former?: Staging) {
    this.#view = view
    this.#clusters = types.cluster.type.name
    this.#stamps = stampsOf(view)
    this.#holds = view.count(HOLDS)
    this.#held = former ? former.#held : new WeakMap()
    const active: ActiveRollout[] = []
    // Only rollouts that have not ended have a plan: the others, which only ever grow in number, are not looked at.
    for (const plan of view.count(ROLLOUT_PLANS) > 0 ? view.all(ROLLOUT_PLANS) : []) {
      const entry = view.get(ROLLOUTS, plan.id)
      if (entry && isActive(asRollout(entry))) active.push(activeRolloutOf(types, entry, plan))
    }
    this.active = active
    // The same views as before where nothing but the state of rollouts has changed: callers compare them.
    if (former && hasSameOverlays(active, former.active))
      for (const [bits, staged] of former.#views) this.#views.set(bits, staged)
  }

  get isCurrent(): boolean {
    const [rollouts, plans, holds] = this.#stamps
    const view = this.#view
    return (
      view.stamp(ROLLOUTS) === rollouts && view.stamp(ROLLOUT_PLANS) === plans && view.stamp(HOLDS) === holds
    )
  }

  /** Whether every cluster is served the documents of the view. */
  get isPlain(): boolean {
    return this.active.length === 0 && this.#holds === 0
  }

  /** Returns what a cluster is rendered from. Every poll calls it: it allocates nothing but the first view of its kind. */
  viewFor(cluster: string): View {
    if (this.isPlain) return this.#view
    const hold = this.#holdOf(cluster)
    if (hold) return this.#heldView(hold)
    let bits = 0
    for (let i = 0; i < this.active.length; i++) {
      if ((this.active[i] as ActiveRollout).isOpenFor(cluster)) bits |= 1 << i
    }
    return bits === 0 ? this.#view : (this.#views.get(bits) ?? this.#staged(bits))
  }

  /** The views that a cluster may come to be served from while some rollouts that reach it go on, and when they have ended. */
  *possibleViews(reaching: readonly ActiveRollout[]): Generator<View> {
    const places = reaching.map((each) => 1 << this.active.indexOf(each))
    for (let chosen = 0; chosen < 1 << places.length; chosen++) {
      let bits = 0
      for (const [i, bit] of places.entries()) if (chosen & (1 << i)) bits |= bit
      yield bits === 0 ? this.#view : (this.#views.get(bits) ?? this.#staged(bits))
    }
  }

  /** The revision from which on a cluster is served from its present view; 0 for the documents of the view itself. */
  servedFrom(cluster: string): number {
    let last = 0
    for (const each of this.active) {
      const opened = each.isOpenFor(cluster) ? each.openedRevision(cluster) : 0
      if (opened > last) last = opened
    }
    return last
  }

  isHeld(cluster: string): boolean {
    return this.#holdOf(cluster) !== undefined
  }

  *heldDifferently(other: Staging): Generator<string> {
    for (const { id } of this.#view.all(HOLDS)) yield id
    for (const { id } of other.#view.all(HOLDS)) if (!this.isHeld(id)) yield id
  }

  /** Deleting a cluster ends its hold. */
  #holdOf(cluster: string): Entry | undefined {
    const hold = this.#holds > 0 ? this.#view.get(HOLDS, cluster) : undefined
    return hold && this.#view.get(this.#clusters, cluster) && hold
  }

  #staged(bits: number): View {
    const overlays = this.active.flatMap(({ overlay }, i) => (bits & (1 << i) ? [overlay] : []))
    const view = new StagedView(this.#view, overlays)
    this.#views.set(bits, view)
    return view
  }

  #heldView(hold: Entry): HeldView {
    let view = this.#held.get(hold)
    if (!view) {
      view = new HeldView(this.#view, hold)
      this.#held.set(hold, view)
    }
    return view
  }
}

function stampsOf(view: View): readonly number[] {
  return [ROLLOUTS, ROLLOUT_PLANS, HOLDS].map((type) => view.stamp(type))
}

function hasSameOverlays(one: readonly ActiveRollout[], other: readonly ActiveRollout[]): boolean {
  return one.length === other.length && one.every(({ overlay }, i) => overlay === other[i]?.overlay)
}

/** Clusters that two stagings may serve from different views, other documents aside. */
export function* restagedClusters(before: Staging, after: Staging): Generator<string> {
  yield* before.heldDifferently(after)
  const known = new Map(before.active.map((each) => [each.rollout.id, each]))
  for (const each of after.active) {
    const was = known.get(each.rollout.id)
    known.delete(each.rollout.id)
    if (was?.isOpenAs(each)) continue
    const ids = new Set([...each.members(), ...(was?.members() ?? [])])
    for (const id of ids) {
      const [wasOpen, isOpen] = [was?.isOpenFor(id) ?? false, each.isOpenFor(id)]
      if (wasOpen !== isOpen || (isOpen && was?.overlay !== each.overlay)) yield id
    }
  }
  for (const ended of known.values()) for (const id of ended.members()) if (ended.isOpenFor(id)) yield id
}

/** The view as it would be without a rollout. */
export function withoutRollout({ cluster }: Types, view: View, id: string): View {
  const without = new Overlay(view, cluster, view.revision)
  without.lay(ROLLOUT_PLANS, id, undefined)
  return without
}

const kept = new WeakMap<View, Staging>()

/** One staging for each view, made anew when its rollouts or holds have changed. */
export function stagingOf(types: Types, view: View): Staging {
  const known = kept.get(view)
  if (known?.isCurrent) return known
  const staging = new Staging(types, view, known)
  kept.set(view, staging)
  return staging
}

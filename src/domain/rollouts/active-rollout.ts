// A rollout that has not ended: its overlay, who is in its waves, and for whom it is open.
import type { Entry } from '../documents/view.ts'
import { referencesOf, type Types } from '../types/resource-type.ts'
import { isSomebody } from './partial-rollout.ts'
import { asPlan, asRollout, type Rollout, type Wave } from './rollout.ts'
import { type MemberPlace, overlayOf, type RolloutOverlay } from './rollout-overlay.ts'

const NOBODY: ReadonlyMap<string, MemberPlace> = new Map()

export class ActiveRollout {
  readonly entry: Entry
  readonly plan: Entry
  readonly rollout: Rollout
  readonly overlay: RolloutOverlay
  readonly #skipped: ReadonlySet<string>
  /** Members that came after the start. */
  readonly #joined: ReadonlyMap<string, MemberPlace>

  constructor(types: Types, entry: Entry, plan: Entry) {
    this.entry = entry
    this.plan = plan
    this.rollout = asRollout(entry)
    this.overlay = overlayOf(types, plan)
    this.#skipped = new Set(this.rollout.skipped)
    this.#joined = placesOf(this.rollout, asPlan(plan).members)
  }

  placeOf(cluster: string): MemberPlace | undefined {
    return this.overlay.placeOf(cluster) ?? this.#joined.get(cluster)
  }

  /** Whether a cluster is served the edits. Every poll asks: it allocates nothing. */
  isOpenFor(cluster: string): boolean {
    const found = this.placeOf(cluster)
    const wave = found && this.rollout.waves[found.wave]
    if (found === undefined || wave === undefined || found.place >= wave.opened) return false
    return !this.#skipped.has(cluster)
  }

  /** The revision that opened a member; 0 where none did. Every poll asks: it allocates nothing. */
  openedRevision(cluster: string): number {
    const found = this.placeOf(cluster)
    const wave = found && this.rollout.waves[found.wave]
    if (found === undefined || wave === undefined) return 0
    const { opened_revision = 0, widenings = NONE } = wave
    for (let i = widenings.length - 1; i >= 0; i--) {
      const widening = widenings[i]
      if (widening && widening[0] <= found.place) return widening[1]
    }
    return opened_revision
  }

  /**
   * Whether a cluster is a member, or may become one: inputs differ only where the cluster's own document is edited, or a
   * definition that it is assigned.
   */
  mayReach({ cluster, delivered }: Types, { id, document }: Pick<Entry, 'id' | 'document'>): boolean {
    if (this.placeOf(id) || this.overlay.edited(cluster.type.name).has(id)) return true
    return delivered.some(({ name, delivery }) => {
      const edited = this.overlay.edited(name)
      return edited.size > 0 && referencesOf(document, delivery).some((reference) => edited.has(reference.id))
    })
  }

  isSkipped(cluster: string): boolean {
    return this.#skipped.has(cluster)
  }

  /** Whether another version of the same rollout is open for the same clusters: what it lists of them only grows. */
  isOpenAs({ overlay, rollout }: ActiveRollout): boolean {
    if (overlay !== this.overlay || rollout.skipped.length !== this.rollout.skipped.length) return false
    return rollout.waves.every(({ opened }, i) => opened === this.rollout.waves[i]?.opened)
  }

  /** Ids of all members, opened or not. */
  *members(): Generator<string> {
    yield* this.overlay.members
    yield* this.#joined.keys()
  }

  /** Ids of the members of one wave, in the order in which they are opened. */
  *membersOf(wave: number): Generator<string> {
    yield* asPlan(this.plan).members[wave] ?? []
    yield* this.rollout.joined?.[wave] ?? []
  }
}

const NONE: NonNullable<Wave['widenings']> = []

function placesOf(
  { joined = [] }: Rollout,
  members: readonly (readonly string[])[],
): ReadonlyMap<string, MemberPlace> {
  if (joined.length === 0) return NOBODY
  const places = new Map<string, MemberPlace>()
  for (const [wave, ids] of joined.entries())
    for (const [i, id] of ids.entries())
      if (!isSomebody(id)) places.set(id, { wave, place: (members[wave]?.length ?? 0) + i })
  return places
}

const known = new WeakMap<Entry, ActiveRollout>()

/** One for each version of a rollout and its plan. */
export function activeRolloutOf(types: Types, entry: Entry, plan: Entry): ActiveRollout {
  const former = known.get(entry)
  if (former?.plan === plan) return former
  const active = new ActiveRollout(types, entry, plan)
  known.set(entry, active)
  return active
}

// Looks for clusters that have come to a rollout: only where clusters or definitions have changed since the last look.

import type { View } from '../../domain/documents/view.ts'
import type { ActiveRollout } from '../../domain/rollouts/active-rollout.ts'
import type { Surroundings } from '../../domain/rollouts/advance.ts'
import { findJoining, withJoining } from '../../domain/rollouts/join-waves.ts'
import type { Rollout } from '../../domain/rollouts/rollout.ts'
import type { Types } from '../../domain/types/resource-type.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'

export class JoinedMembers {
  readonly #types: Types
  /** By rollout: what its members were worked out from. */
  readonly #seen = new Map<string, string>()

  constructor(types: Types) {
    this.#types = types
  }

  /** Returns the rollout with those that have come; undefined where nobody has. */
  async look(view: View, active: ActiveRollout, around: Surroundings): Promise<Rollout | undefined> {
    const { id } = active.rollout
    const stamp = this.#stampOf(view, active)
    if (this.#seen.get(id) === stamp) return undefined
    const joining = await runTimeSliced(findJoining(this.#types, view, active))
    if (joining.length > 0) return withJoining(this.#types, active.rollout, joining, around)
    this.#seen.set(id, stamp)
    return undefined
  }

  forgetOthers(active: readonly ActiveRollout[]): void {
    const ids = new Set(active.map(({ rollout }) => rollout.id))
    for (const id of this.#seen.keys()) if (!ids.has(id)) this.#seen.delete(id)
  }

  #stampOf(view: View, { plan }: ActiveRollout): string {
    const { cluster, delivered } = this.#types
    const stamps = [cluster.type, ...delivered].map(({ name }) => view.stamp(name))
    return [plan.revision, ...stamps].join(' ')
  }
}

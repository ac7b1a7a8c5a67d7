// Which rollouts have changed their state since the last look.
import type { View } from '../../domain/documents/view.ts'
import { asRollout, ROLLOUTS, type RolloutState } from '../../domain/rollouts/rollout.ts'
import { stagingOf } from '../../domain/rollouts/staging.ts'
import type { Types } from '../../domain/types/resource-type.ts'

export interface RolloutTransition {
  readonly rollout: string
  /** Null of one that was not there before. */
  readonly from: RolloutState | null
  readonly to: RolloutState
  /** Why it is paused. */
  readonly waiting_for: string | null
}

export class RolloutStates {
  readonly #types: Types
  readonly #view: View
  /** Of rollouts that have not ended. */
  #known = new Map<string, RolloutState>()
  #stamp: number

  constructor(types: Types, view: View) {
    this.#types = types
    this.#view = view
    this.#stamp = view.stamp(ROLLOUTS)
    this.#look()
  }

  /** Costs nothing while no rollout has changed. */
  changes(): readonly RolloutTransition[] {
    const stamp = this.#view.stamp(ROLLOUTS)
    if (stamp === this.#stamp) return []
    this.#stamp = stamp
    return this.#look()
  }

  #look(): RolloutTransition[] {
    const active = stagingOf(this.#types, this.#view).active.map(({ rollout }) => rollout)
    const ids = new Set([...this.#known.keys(), ...active.map(({ id }) => id)])
    const changed: RolloutTransition[] = []
    for (const id of ids) {
      const entry = this.#view.get(ROLLOUTS, id)
      const from = this.#known.get(id) ?? null
      if (!entry || asRollout(entry).state === from) continue
      const { state: to, waiting_for } = asRollout(entry)
      changed.push({ rollout: id, from, to, waiting_for })
    }
    this.#known = new Map(active.map(({ id, state }) => [id, state]))
    return changed
  }
}

// Who may act on a rollout: callers whose scope covers all that it changes, for its steps are theirs then too.
import { forbidden, type Problem } from '../../base/problem.ts'
import { named } from '../../base/sentences.ts'
import type { Selector } from '../access/selector.ts'
import type { Comparison } from '../delivery/compare-served.ts'
import type { Change, View } from '../documents/view.ts'
import { type ActiveRollout, activeRolloutOf } from '../rollouts/active-rollout.ts'
import { ROLLOUT_PLANS, ROLLOUTS } from '../rollouts/rollout.ts'
import type { Types } from '../types/resource-type.ts'

interface Scope {
  readonly selector: Selector | undefined
  readonly types: readonly string[] | undefined
}

/** Returns why a changed rollout goes beyond a scope; undefined when none does. */
export function refuseRollouts(
  { selector, types: allowed }: Scope,
  { types, before, after }: Comparison,
  changes: readonly Change[],
  replaced: ActiveRollout | undefined,
): Problem | undefined {
  if (!selector && !allowed) return undefined
  for (const active of [...(replaced ? [replaced] : []), ...changedRollouts(types, before, after, changes)]) {
    const { id } = active.rollout
    const foreign = [...active.overlay.types].filter((name) => allowed && !isAllowed(types, name, allowed))
    const outside = selector ? membersOutside(types, before, active, selector) : []
    if (foreign.length + outside.length === 0) continue
    const what =
      outside.length > 0 ? `clusters outside your scope: ${named(outside)}` : `documents of ${named(foreign)}`
    return forbidden('out_of_scope', `rollout "${id}" changes ${what}`, [
      { path: `/${ROLLOUTS}/${id}`, message: `changes ${what}` },
    ])
  }
  return undefined
}

function* changedRollouts(
  types: Types,
  before: View,
  after: View,
  changes: readonly Change[],
): Generator<ActiveRollout> {
  for (const { type, id } of changes) {
    const entry = type === ROLLOUTS ? (after.get(ROLLOUTS, id) ?? before.get(ROLLOUTS, id)) : undefined
    const plan = entry && (after.get(ROLLOUT_PLANS, id) ?? before.get(ROLLOUT_PLANS, id))
    if (plan) yield activeRolloutOf(types, entry, plan)
  }
}

/** Edits of clusters are assignments and values: whoever started the rollout was checked for these. */
function isAllowed({ cluster }: Types, name: string, allowed: readonly string[]): boolean {
  return name === cluster.type.name || allowed.includes(name)
}

function membersOutside({ cluster }: Types, view: View, active: ActiveRollout, selector: Selector): string[] {
  const outside: string[] = []
  for (const id of active.members()) {
    const entry = view.get(cluster.type.name, id)
    if (entry && !selector.matches(entry.document)) outside.push(id)
  }
  return outside
}

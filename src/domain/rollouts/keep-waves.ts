// The waves of a rollout that is amended: its members stay where they are, whatever became of their labels.
import type { Steps } from '../../base/steps.ts'
import type { View } from '../documents/view.ts'
import type { Types } from '../types/resource-type.ts'
import type { ActiveRollout } from './active-rollout.ts'
import { type ResolvedWaves, waveFor } from './resolve-waves.ts'
import { specOf } from './rollout.ts'

/** Clusters that only the new edits reach enter the wave that they match, as those do that join. */
export function* keepWaves(
  types: Types,
  view: View,
  active: ActiveRollout,
  affected: Iterable<string>,
): Steps<ResolvedWaves> {
  const left = new Set(affected)
  const specs = active.rollout.waves.map((_, at) => specOf(active.rollout, at))
  const members = specs.map((_, at) => [...active.membersOf(at)].filter((id) => left.delete(id)))
  for (const id of left) {
    yield
    const cluster = view.get(types.cluster.type.name, id)
    if (cluster) members[waveFor(types, specs, cluster.document)]?.push(id)
  }
  return { waves: specs.map((spec, at) => ({ spec, members: members[at] ?? [] })), warnings: [] }
}

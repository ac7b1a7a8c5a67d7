// Clusters that come to a rollout after its start: each enters the wave that it matches.
import { named } from '../../base/sentences.ts'
import type { Steps } from '../../base/steps.ts'
import type { Entry, View } from '../documents/view.ts'
import type { Types } from '../types/resource-type.ts'
import type { ActiveRollout } from './active-rollout.ts'
import { actorOf, addEvent, type Surroundings } from './advance.ts'
import { changedInputs } from './member-progress.ts'
import { waveFor } from './resolve-waves.ts'
import { type Rollout, specOf, type Wave } from './rollout.ts'

/** The clusters that a rollout would change something for and that are in none of its waves. */
export function* findJoining(types: Types, view: View, active: ActiveRollout): Steps<Entry[]> {
  const joining: Entry[] = []
  for (const cluster of view.all(types.cluster.type.name)) {
    yield
    if (active.placeOf(cluster.id) || !active.mayReach(types, cluster)) continue
    if (changedInputs(types, view, active.overlay, cluster).length > 0) joining.push(cluster)
  }
  return joining
}

/** A wave that has passed opens for them too; one that was skipped for having no members has passed. */
export function withJoining(
  types: Types,
  rollout: Rollout,
  joining: readonly Entry[],
  { now }: Surroundings,
): Rollout {
  const specs = rollout.waves.map((_, at) => specOf(rollout, at))
  const joined = rollout.waves.map((_, at) => [...(rollout.joined?.[at] ?? [])])
  const came = new Map<number, string[]>()
  for (const { id, document } of joining) {
    const at = waveFor(types, specs, document)
    joined[at]?.push(id)
    came.set(at, [...(came.get(at) ?? []), id])
  }
  const waves = rollout.waves.map((wave, at): Wave => {
    const count = came.get(at)?.length ?? 0
    if (count === 0) return wave
    const isEmpty = wave.state === 'skipped' && wave.members === 0
    // It was skipped for want of members, not by anybody: it opens as any wave does, with its approvals and its window.
    return { ...wave, members: wave.members + count, ...(isEmpty && { state: 'waiting' }) }
  })
  let { events } = rollout
  for (const [at, ids] of came) {
    const what = `wave ${waves[at]?.name}: ${named(ids)} joined`
    events = addEvent(events, { at: now, by: actorOf(rollout), what })
  }
  return { ...rollout, joined, waves, events }
}

// Changes of states as events of a stream. Without an id: the last id that a client has is that of a revision.
import type { Transition } from '../../engine/fleet/fleet.ts'
import type { RolloutTransition } from './rollout-states.ts'

export function presentTransition({ cluster, column, from, to, time }: Transition): string {
  const data = JSON.stringify({ cluster, kind: column, from, to, time: new Date(time).toISOString() })
  return `event: status\ndata: ${data}\n\n`
}

export function presentRollout(changed: RolloutTransition, now: Date): string {
  return `event: rollout\ndata: ${JSON.stringify({ ...changed, time: now.toISOString() })}\n\n`
}

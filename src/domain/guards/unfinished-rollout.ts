// A rollout may be finished before its waves are through, by somebody who says that it is meant.
import { conflictOf, type Problem } from '../../base/problem.ts'
import { named } from '../../base/sentences.ts'
import type { Change } from '../documents/view.ts'
import { asRollout, ROLLOUTS } from '../rollouts/rollout.ts'

/** Returns the problem of a rollout that ends with waves that wait or are open. */
export function findUnfinished(changes: readonly Change[]): Problem | undefined {
  for (const { type, id, after } of changes) {
    const rollout = type === ROLLOUTS && after ? asRollout(after) : undefined
    if (rollout?.state !== 'finished') continue
    const left = rollout.waves.filter(({ state }) => state === 'waiting' || state === 'open')
    if (left.length === 0) continue
    const members = left.reduce((sum, { members, opened }) => sum + members - opened, 0)
    const names = named(left.map(({ name }) => name))
    return conflictOf(
      'rollout_unfinished',
      `rollout "${id}" is not through wave${left.length > 1 ? 's' : ''} ${names}: its ${members} clusters that are not open get the change at once. If that is meant, send it again with ?confirm=finish`,
    )
  }
  return undefined
}

// A plan is a digest of changes: it tells whether a write still does what its preview showed.
import { createHash } from 'node:crypto'
import type { Detail, Problem } from '../base/problem.ts'
import type { Steps } from '../base/steps.ts'
import type { Change, DocumentVersion } from '../domain/documents/view.ts'
import type { RolloutPlan } from '../domain/rollouts/rollout.ts'
import type { Types } from '../domain/types/resource-type.ts'

/** Equal for equal changes, whatever order they were made in and whatever else is in the fleet. */
export function* planOf(
  { system }: Types,
  changes: readonly Change[],
  rollout?: PlannedRollout,
): Steps<string> {
  const hash = createHash('sha256')
  for (const { type, id, before, after } of [...changes].sort(byPlace)) {
    yield
    const planned = after && (system.get(type)?.planned?.(after.document) ?? differing(before, after))
    hash.update(`${JSON.stringify([type, id, before?.deleted, after?.deleted, planned])}\n`)
    if (before) hash.update(`${JSON.stringify(before.document)}\n`)
  }
  if (rollout) {
    hash.update(`${JSON.stringify(rollout.spec)}\n`)
    for (const wave of rollout.members) {
      yield
      hash.update(`${JSON.stringify(wave)}\n`)
    }
  }
  return `sha256:${hash.digest('hex')}`
}

/** What a change makes of a document. The document before says the rest. */
function differing(before: Change['before'], { document }: DocumentVersion): object {
  if (!before) return document
  const was = before.document
  const removed = Object.keys(was).filter((name) => !Object.hasOwn(document, name))
  const changed = Object.entries(document).filter(
    ([name, value]) => value !== was[name] && JSON.stringify(value) !== JSON.stringify(was[name]),
  )
  return [changed, removed]
}

/** Of a rollout whose edits were changed past its plan. */
export function digestOfEdits({ edits, members }: RolloutPlan, spec: object): string {
  return `sha256:${createHash('sha256').update(JSON.stringify({ edits, members, spec })).digest('hex')}`
}

/** What the plan of a rollout is bound to beside its changes. */
export interface PlannedRollout {
  readonly spec: object
  readonly members: readonly (readonly string[])[]
}

/** By type and id. Changes mostly come in this order, so that sorting them costs little. */
function byPlace(a: Change, b: Change): number {
  if (a.type === b.type) return a.id < b.id ? -1 : 1
  return a.type < b.type ? -1 : 1
}

const MAX_TOLD = 20

/** Lists what the write would change now, without reading history: other writes wait for this one. */
export function planChanged(changes: readonly Change[]): Problem {
  const now = changes.length === 0 ? ': it would change nothing now' : ''
  return {
    code: 'plan_changed',
    reason: 'plan_changed',
    message: `this write does not do what the plan says${now}. Documents have changed since it was made, or the request is another one: preview it again`,
    details: changes.slice(0, MAX_TOLD).map(tellChange),
  }
}

function tellChange({ type, id, before, after }: Change): Detail {
  const removed = !after || after.deleted
  const what = removed ? 'deleted' : !before || before.deleted ? 'created' : 'changed'
  const since = before ? `, and was last changed by revision ${before.revision}` : ''
  return { path: `/${type}/${id}`, message: `would be ${what} now${since}` }
}

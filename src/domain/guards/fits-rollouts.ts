// What a write changes has to go with what running rollouts change, or these could never be finished.
import { conflictOf, type Problem } from '../../base/problem.ts'
import { named } from '../../base/sentences.ts'
import type { Steps } from '../../base/steps.ts'
import { Draft } from '../documents/draft.ts'
import type { Change, Entry, View } from '../documents/view.ts'
import type { ActiveRollout } from '../rollouts/active-rollout.ts'
import type { RolloutOverlay } from '../rollouts/rollout-overlay.ts'
import { StagedView } from '../rollouts/staged-view.ts'
import { stagingOf } from '../rollouts/staging.ts'
import type { Types } from '../types/resource-type.ts'
import { checkIntegrity } from './check-integrity.ts'
import { checkPatchNames } from './check-patch-names.ts'

export interface FittingWrite {
  readonly types: Types
  readonly before: View
  readonly changes: readonly Change[]
  /** A rollout that need not go with this write: its own finish or amendment. */
  readonly except: string | undefined
}

/**
 * Returns why the fleet would not be whole if all running rollouts were finished after a write, each of which is right by
 * itself: one adds a reference to what the other deletes, or both together make a cycle.
 */
export function* checkFit(write: FittingWrite): Steps<Problem | undefined> {
  const { types, before, except } = write
  const changes = write.changes.filter(({ type }) => types.get(type))
  const active = stagingOf(types, before).active.filter(({ rollout }) => rollout.id !== except)
  if (active.length === 0 || changes.length === 0) return undefined
  const problem = yield* checkWith(write, changes, active)
  if (!problem) return undefined
  const guilty: ActiveRollout[] = []
  for (const each of active) if (yield* checkWith(write, changes, [each])) guilty.push(each)
  const rollouts = named((guilty.length > 0 ? guilty : active).map(({ rollout }) => rollout.id))
  const message = `this does not go with what rollout ${rollouts} changes: ${problem.message}. Amend, supersede or abort it, wait for its end, or bypass it with a reason`
  return conflictOf('held_by_rollout', message, problem.details)
}

function* checkWith(
  { types, before }: FittingWrite,
  changes: readonly Change[],
  active: readonly ActiveRollout[],
): Steps<Problem | undefined> {
  const overlays = active.map(({ overlay }) => overlay)
  const finished = new StagedView(before, overlays)
  const draft = new Draft(finished, types.cluster)
  for (const change of changes) {
    yield
    const { type, id, after } = change
    const origin = { path: `/${type}/${id}` }
    const laid = layOver(overlays, change)
    if (laid) draft.put(type, laid.document, origin)
    else if (after?.deleted) draft.put(type, after.document, origin, true)
    else draft.remove(type, id, origin)
  }
  for (const check of [checkIntegrity, checkPatchNames]) {
    const checked = yield* check(types, draft, finished)
    if (!checked.ok) return checked.problem
  }
  return undefined
}

/** A written document with the edits of rollouts; undefined where it is deleted. */
function layOver(overlays: readonly RolloutOverlay[], { type, id, after }: Change): Entry | undefined {
  let entry: Entry | undefined
  if (after && !after.deleted) {
    const { document, json } = after
    entry = { id, document, deleted: false, size: json.length, revision: 0 }
  }
  for (const overlay of overlays) entry = overlay.lay(type, id, entry)
  return entry
}

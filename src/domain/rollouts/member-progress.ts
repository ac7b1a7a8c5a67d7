// How far one member of a rollout is: what the evidence about the rollout's own answers comes to.
import { digestInputs } from '../delivery/render-inputs.ts'
import type { ServedView } from '../delivery/served-view.ts'
import type { Entry, View } from '../documents/view.ts'
import { deliveryOf, healthOf, type Situation } from '../status/derive-status.ts'
import { sameMark } from '../status/evidence.ts'
import type { Contact } from '../status/status-words.ts'
import type { DeliveredType, Types } from '../types/resource-type.ts'
import type { RolloutOverlay } from './rollout-overlay.ts'
import { StagedView } from './staged-view.ts'

/** The inputs of one type that a rollout changes for a cluster. */
export interface ChangedInputs {
  readonly type: DeliveredType
  /** Ids of those that it adds or changes. */
  readonly ids: ReadonlySet<string>
}

export interface MemberProgress {
  readonly served: boolean
  readonly applied: boolean
  readonly healthy: boolean
  readonly failed: boolean
  /** Whether nothing is to be expected of it now. */
  readonly isAbsent: boolean
}

/** Clusters that are not expected to ask. */
export const AWAY: readonly Contact[] = ['offline', 'never', 'refused', 'unobserved']

/** What the edits of a rollout alone change for a cluster; empty where they change nothing for it any more. */
export function changedInputs(
  types: Types,
  view: View,
  overlay: RolloutOverlay,
  cluster: Entry,
): readonly ChangedInputs[] {
  const staged = new StagedView(view, [overlay]) as View as ServedView
  const after = staged.get(types.cluster.type.name, cluster.id) ?? cluster
  const changed: ChangedInputs[] = []
  for (const type of types.delivered) {
    const was = digestInputs(view as ServedView, types, type, cluster)
    const is = digestInputs(staged, types, type, after)
    if (was.inputs.length === is.inputs.length && sameMark(was.digest, is.digest)) continue
    const marks = new Map(was.inputs.map(({ reference, digest }) => [reference.id, digest]))
    const ids = is.inputs.flatMap(({ reference: { id }, digest }) =>
      sameMark(marks.get(id), digest) ? [] : [id],
    )
    changed.push({ type, ids: new Set(ids) })
  }
  return changed
}

export interface Membership {
  /** The revision that opened its wave: what was served before says nothing. */
  readonly openedRevision: number
  readonly isHeld: boolean
  /** Failures from before, in milliseconds, do not count. */
  readonly retriedAt: number
}

/** `situation` is the member's present one, by what it would be served now. */
export function progressOf(
  situation: Situation,
  changed: readonly ChangedInputs[],
  { openedRevision, isHeld, retriedAt }: Membership,
): MemberProgress {
  const { evidence, contact } = situation
  // What a held cluster is served says nothing of the rollout.
  if (isHeld) return { served: false, applied: false, healthy: false, failed: false, isAbsent: true }
  let [served, applied, healthy, failed] = [true, true, true, false]
  for (const { type, ids } of changed) {
    const desired = situation.desired.find((each) => each.type === type)
    if (!desired) continue
    const poll = evidence.poll(desired.endpoint)
    const isServed =
      poll !== undefined && poll.revision >= openedRevision && sameMark(poll.mark, desired.mark)
    const delivery = deliveryOf(situation, desired)
    if (!isServed) served = false
    if (!isServed || delivery !== 'applied') applied = false
    const ofEndpoint = evidence.failureOf({ endpoint: desired.endpoint })
    if (isServed && delivery === 'rejected' && (ofEndpoint?.at ?? 0) > retriedAt) failed = true
    for (const input of desired.components) {
      if (!ids.has(input.id)) continue
      const health = healthOf(situation, desired, input)
      if (health !== 'healthy') healthy = false
      const failure = evidence.failureOf({ component: input.id })
      if (isServed && health === 'failed' && (failure?.at ?? 0) > retriedAt) failed = true
    }
  }
  return { served, applied, healthy: applied && healthy, failed, isAbsent: AWAY.includes(contact) }
}

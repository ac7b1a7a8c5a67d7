// How far one member of a rollout is: what the evidence about the rollout's own answers comes to.
import { digestInputs } from '../delivery/render-inputs.ts'
import type { ServedView } from '../delivery/served-view.ts'
import type { Entry, View } from '../documents/view.ts'
import { healthOf, progressSince, type Situation } from '../status/derive-status.ts'
import type { Desired } from '../status/desired.ts'
import { givenSince, sameMark, wholeSince } from '../status/evidence.ts'
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
  /** When this may come out differently without anything new becoming known, in milliseconds. */
  readonly until: number
}

/** Clusters that are not expected to ask. */
export const AWAY = ['offline', 'never', 'refused', 'unobserved'] as const satisfies readonly Contact[]

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
  /** The revision that opened it: what came before the first answer under it says nothing. */
  readonly openedRevision: number
  /** Failures from before, in milliseconds, do not count. */
  readonly retriedAt: number
}

/** `situation` is the member's present one, by what it would be served now. */
export function progressOf(
  situation: Situation,
  changed: readonly ChangedInputs[],
  membership: Membership,
): MemberProgress {
  const isAbsent = situation.isHeld || AWAY.some((away) => away === situation.contact)
  // What a held cluster is served says nothing of the rollout.
  const endpoints = situation.isHeld ? [] : changed
  const parts = endpoints.flatMap(({ type, ids }) => {
    const desired = situation.desired.find((each) => each.type === type)
    return desired ? [progressAt(situation, desired, ids, membership)] : []
  })
  const all = (holds: (part: EndpointProgress) => boolean): boolean => parts.length > 0 && parts.every(holds)
  return {
    served: all(({ served }) => served),
    applied: all(({ applied }) => applied),
    healthy: all(({ applied, healthy }) => applied && healthy),
    failed: parts.some(({ failed }) => failed),
    isAbsent,
    until: situation.clock.until,
  }
}

type EndpointProgress = Omit<MemberProgress, 'isAbsent' | 'until'>

const NOTHING: EndpointProgress = {
  served: false,
  applied: false,
  healthy: false,
  failed: false,
}

/** Evidence counts from the first answer under the rollout on. */
function progressAt(
  situation: Situation,
  desired: Desired,
  ids: ReadonlySet<string>,
  { openedRevision, retriedAt }: Membership,
): EndpointProgress {
  const { evidence } = situation
  const { endpoint, mark } = desired
  const poll = evidence.poll(endpoint)
  const since = poll && sameMark(poll.mark, mark) ? givenSince(poll, openedRevision) : undefined
  if (since === undefined) return NOTHING
  const isNew = (failure: { readonly at: number } | undefined): boolean =>
    failure !== undefined && failure.at >= since && failure.at > retriedAt
  const delivery = progressSince(situation, endpoint, { since, mark })
  const inputs = desired.components.filter(({ id }) => ids.has(id))
  const healths = inputs.map((input) => ({ id: input.id, health: healthOf(situation, desired, input) }))
  const isReported = evidence.report !== undefined && wholeSince(evidence.report) >= since
  return {
    served: true,
    applied: delivery === 'applied',
    healthy: isReported && healths.every(({ health }) => health === 'healthy'),
    failed:
      (delivery === 'rejected' && isNew(evidence.failureOf({ endpoint }))) ||
      healths.some(({ id, health }) => health === 'failed' && isNew(evidence.failureOf({ component: id }))),
  }
}

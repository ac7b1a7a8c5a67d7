// The Flux Operator's limits for one answer are limits of ours: beyond them a cluster would stop or lose objects.

import { getOrSet } from '../../base/get-or-set.ts'
import { pointer } from '../../base/json.ts'
import { invalid, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { renderInputs } from '../delivery/render-inputs.ts'
import type { ServedView } from '../delivery/served-view.ts'
import { type Draft, pointerTo, type Touched } from '../documents/draft.ts'
import type { Entry, View } from '../documents/view.ts'
import type { ActiveRollout } from '../rollouts/active-rollout.ts'
import { type Staging, stagingOf } from '../rollouts/staging.ts'
import {
  type DeliveredType,
  findReference,
  identityLength,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'
import { StagedBounds } from './staged-bounds.ts'

/** Flux refuses a body that is larger. */
export const MAX_ANSWER_BYTES = 900 * 1024
/** The highest `spec.filter.limit` of a provider; what is beyond it is cut off, and so deleted. */
export const MAX_INPUTS = 10_000

/** Field names, punctuation, defaults and digests (63 characters) that an input adds to its definition's text. */
const INPUT_OVERHEAD = 576
const MAX_BYTES_PER_CHAR = 3
const MAX_CHARS_PER_ESCAPED_CHAR = 6
/** Rollouts that reach one cluster and whose combinations are all looked at; more of them double the work each. */
const MAX_COMBINED = 8

/** Refuses changes after which some cluster's answer would be too large, whichever waves of rollouts are open. */
export function* checkLimits(types: Types, draft: Draft, before: View): Steps<Result<string[]>> {
  const clusters = types.cluster.type.name
  const touched = draft.touched()
  for (const type of types.delivered) {
    const checker = new AnswerChecker(types, draft, type)
    for (const { type: name, id, origins } of touched) {
      yield
      const problem = name === clusters ? checker.problemOf(draft.get(clusters, id)) : undefined
      if (problem)
        return invalid(
          [{ path: pointerTo(origins, pointer('', type.delivery.assignedBy)), message: problem }],
          'answer_too_large',
        )
    }
    const changed = changedDefinitions(before, touched, type)
    if (changed.length === 0 || !(yield* checker.mayExceedAnywhere(before))) continue
    for (const cluster of draft.all(clusters)) {
      yield
      const cause = changed.find(({ id }) => checker.mayBeAssigned(cluster, id))
      const problem = cause && checker.problemOf(cluster)
      if (problem)
        return invalid([{ path: pointerTo(cause.origins, ''), message: problem }], 'answer_too_large')
    }
  }
  return succeed([])
}

/** Looks at the answers of one type, bounds first: nearly no cluster has to be rendered. */
class AnswerChecker {
  readonly #types: Types
  readonly #view: View
  readonly #type: DeliveredType
  readonly #staging: Staging
  readonly #bounds: StagedBounds
  readonly #sizes = new Map<View, number>()

  constructor(types: Types, view: View, type: DeliveredType) {
    this.#types = types
    this.#view = view
    this.#type = type
    this.#staging = stagingOf(types, view)
    this.#bounds = new StagedBounds(types, view, type, this.#staging.active)
  }

  /** What is wrong with some answer that a cluster may come to be given. */
  problemOf(cluster: Entry | undefined): string | undefined {
    if (!cluster) return undefined
    const { active } = this.#staging
    const reaching =
      active.length === 0 ? active : active.filter((each) => each.mayReach(this.#types, cluster))
    if (reaching.length === 0) return this.#problemIn(this.#view, cluster)
    const { references, size } = this.#bounds.boundsOf(cluster, reaching)
    const identity = identityLength(this.#types.cluster, cluster.document)
    const isSmall = !mayExceed(references, this.#bounds.largest, identity, size)
    if (references <= MAX_INPUTS && isSmall) return undefined
    if (reaching.length > MAX_COMBINED) return tooManyRollouts(cluster, reaching)
    for (const view of this.#staging.possibleViews(reaching)) {
      const problem = this.#problemIn(view, view.get(this.#types.cluster.type.name, cluster.id))
      if (problem) return problem
    }
    return undefined
  }

  /** Whether a definition is assigned to a cluster, or would be by a rollout. */
  mayBeAssigned(cluster: Entry, id: string): boolean {
    const { delivery } = this.#type
    if (findReference(cluster.document, delivery, id)) return true
    const { name } = this.#types.cluster.type
    return this.#staging.active.some(({ overlay }) => {
      const laid = overlay.edited(name).has(cluster.id) && overlay.lay(name, cluster.id, cluster)
      return laid && findReference(laid.document, delivery, id) !== undefined
    })
  }

  /** A bound over all clusters and combinations. */
  *mayExceedAnywhere({ ceilings }: View): Steps<boolean> {
    const { references, size } = yield* this.#bounds.growth()
    const most = (ceilings.references.get(this.#type.name) ?? 0) + references
    return mayExceed(most, this.#bounds.largest, ceilings.identity, ceilings.size + size)
  }

  #problemIn(view: View, cluster: Entry | undefined): string | undefined {
    if (!cluster) return undefined
    const { endpoint } = this.#type.delivery
    const { id } = cluster
    const count = referencesOf(cluster.document, this.#type.delivery).length
    if (count > MAX_INPUTS)
      return `would give cluster "${id}" ${count} inputs of ${endpoint}: Flux takes at most ${MAX_INPUTS}`
    const identity = identityLength(this.#types.cluster, cluster.document)
    const largest = getOrSet(this.#sizes, view, () => largestDefinition(view, this.#type))
    if (!mayExceed(count, largest, identity, cluster.size)) return undefined
    const { text } = renderInputs(view as ServedView, this.#types, this.#type, cluster)
    const bytes = new TextEncoder().encode(text).length
    if (bytes <= MAX_ANSWER_BYTES) return undefined
    return `would make the ${endpoint} answer of cluster "${id}" ${bytes} bytes: Flux takes at most ${MAX_ANSWER_BYTES}`
  }
}

function tooManyRollouts({ id }: Entry, reaching: readonly ActiveRollout[]): string {
  return `would be too much for cluster "${id}" together with the ${reaching.length} rollouts that reach it: wait for some of them to end`
}

/** An upper bound that needs no rendering: it spares nearly every cluster the exact count. */
function mayExceed(references: number, largest: number, identity: number, size: number): boolean {
  const perInput = largest + INPUT_OVERHEAD + identity * MAX_CHARS_PER_ESCAPED_CHAR
  return (references * perInput + size) * MAX_BYTES_PER_CHAR > MAX_ANSWER_BYTES
}

function largestDefinition(view: View, type: DeliveredType): number {
  let largest = 0
  for (const { size } of view.all(type.name)) if (size > largest) largest = size
  return largest
}

/** Definitions that clusters may be using already; a new one reaches only clusters that are touched too. */
function changedDefinitions(
  before: View,
  touched: readonly Touched[],
  type: DeliveredType,
): readonly Touched[] {
  return touched.filter(({ type: name, id, after }) => name === type.name && after && before.get(name, id))
}

// The Flux Operator's limits for one answer are limits of ours: beyond them a cluster would stop or lose objects.

import { getOrSet } from '../../base/get-or-set.ts'
import { pointer } from '../../base/json.ts'
import { invalid, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { renderInputs } from '../delivery/render-inputs.ts'
import { type ServedView, servedTo } from '../delivery/served-view.ts'
import { type Draft, pointerTo, type Touched } from '../documents/draft.ts'
import type { View } from '../documents/view.ts'
import {
  type DeliveredType,
  findReference,
  identityLength,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'

/** Flux refuses a body that is larger. */
const MAX_ANSWER_BYTES = 900 * 1024
/** The highest `spec.filter.limit` of a provider; what is beyond it is cut off, and so deleted. */
export const MAX_INPUTS = 10_000

/** Field names, punctuation, defaults and digests (63 characters) that an input adds to its definition's text. */
const INPUT_OVERHEAD = 576
const MAX_BYTES_PER_CHAR = 3
const MAX_CHARS_PER_ESCAPED_CHAR = 6

/** Refuses changes after which some cluster's answer would be too large. */
export function* checkLimits(types: Types, draft: Draft, before: View): Steps<Result<string[]>> {
  const clusters = types.cluster.type.name
  const touched = draft.touched()
  for (const type of types.delivered) {
    const sizes = new Map<View, number>()
    const largestIn = (view: View): number => getOrSet(sizes, view, () => largestDefinition(view, type))
    for (const { type: name, id, origins } of touched) {
      yield
      const problem =
        name === clusters && limitProblem(types, servedTo(types, draft, id), type, id, largestIn)
      if (problem)
        return invalid(
          [{ path: pointerTo(origins, pointer('', type.delivery.assignedBy)), message: problem }],
          'answer_too_large',
        )
    }
    const changed = changedDefinitions(before, touched, type)
    const { size, identity, references } = before.ceilings
    if (changed.length === 0) continue
    // A bound over the draft: it says nothing of clusters that are served from another view.
    if (!mayExceed(references.get(type.name) ?? 0, largestIn(draft), identity, size)) continue
    for (const { id, document } of draft.all(clusters)) {
      yield
      const cause = changed.find((definition) => findReference(document, type.delivery, definition.id))
      const problem = cause && limitProblem(types, servedTo(types, draft, id), type, id, largestIn)
      if (problem)
        return invalid([{ path: pointerTo(cause.origins, ''), message: problem }], 'answer_too_large')
    }
  }
  return succeed([])
}

function limitProblem(
  types: Types,
  view: ServedView,
  type: DeliveredType,
  id: string,
  largestIn: (view: View) => number,
): string | undefined {
  const { endpoint } = type.delivery
  const cluster = view.get(types.cluster.type.name, id)
  if (!cluster) return undefined
  const count = referencesOf(cluster.document, type.delivery).length
  if (count > MAX_INPUTS) {
    return `would give cluster "${id}" ${count} inputs of ${endpoint}: Flux takes at most ${MAX_INPUTS}`
  }
  const identity = identityLength(types.cluster, cluster.document)
  if (!mayExceed(count, largestIn(view), identity, cluster.size)) return undefined
  const bytes = new TextEncoder().encode(renderInputs(view, types, type, cluster).text).length
  if (bytes <= MAX_ANSWER_BYTES) return undefined
  return `would make the ${endpoint} answer of cluster "${id}" ${bytes} bytes: Flux takes at most ${MAX_ANSWER_BYTES}`
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

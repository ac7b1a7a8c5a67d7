// What makes a write so destructive that it has to be confirmed.

import { named } from '../../base/sentences.ts'
import type { Steps } from '../../base/steps.ts'
import type { EndpointDifference } from '../delivery/compare-inputs.ts'
import type { Comparison } from '../delivery/compare-served.ts'
import type { Change, Entry } from '../documents/view.ts'
import { type Delivery, isEnabled, type Reference, referencesOf } from '../types/resource-type.ts'

/** Fewer clusters than this may lose something without a word. */
const MIN_CLUSTERS = 5
/** As many clusters may be deleted at once. */
const MAX_DELETED = 5
/** An endpoint that has as many inputs is not emptied by the way. */
const MIN_EMPTIED = 3

/** Why the changes need confirmation; nothing when they do not. */
export function* findRemovals(
  comparison: Comparison,
  changes: readonly Change[],
  percent: number,
): Steps<string[]> {
  const { types, before, after } = comparison
  const clusters = types.cluster.type.name
  const deleted: string[] = []
  const losing: string[] = []
  const emptied: string[] = []
  // Nothing but a cluster's own document says what it is assigned.
  for (const { type, id } of changes) {
    yield
    const was = type === clusters ? before.get(clusters, id) : undefined
    if (!was) continue
    const is = after.get(clusters, id)
    if (!is) {
      deleted.push(id)
      continue
    }
    const differences = comparison.compare(id)
    if (differences.some((difference) => takesAway(difference, was, is))) losing.push(id)
    for (const { type: delivered, removed, changed } of differences) {
      const { delivery } = delivered
      if (removed.length + changed.length > 0 && empties(delivery, was, is)) {
        emptied.push(`${id} (${delivery.endpoint})`)
      }
    }
  }
  const live = before.count(clusters)
  const share = ((losing.length / live) * 100).toFixed(1)
  return [
    ...(losing.length >= MIN_CLUSTERS && losing.length * 100 > percent * live
      ? [`it takes inputs from ${losing.length} of ${live} clusters (${share} %, more than ${percent} %)`]
      : []),
    ...(emptied.length > 0 ? [`it empties ${named(emptied)}`] : []),
    ...(deleted.length > MAX_DELETED ? [`it deletes ${deleted.length} clusters: ${named(deleted)}`] : []),
  ]
}

/** Removed, or disabled. */
function takesAway(
  { type: { delivery }, removed, changed }: EndpointDifference,
  was: Entry,
  is: Entry,
): boolean {
  if (removed.length > 0) return true
  if (changed.length === 0) return false
  const off = new Set(
    referencesOf(is.document, delivery).flatMap((ref) => (isEnabled(delivery, ref) ? [] : ref.id)),
  )
  return referencesOf(was.document, delivery).some((ref) => isEnabled(delivery, ref) && off.has(ref.id))
}

function empties(delivery: Delivery, was: Entry, is: Entry): boolean {
  const had = referencesOf(was.document, delivery)
  const has = referencesOf(is.document, delivery)
  const enabled = (references: readonly Reference[]): number =>
    references.filter((ref) => isEnabled(delivery, ref)).length
  return (
    (had.length >= MIN_EMPTIED && has.length === 0) || (enabled(had) >= MIN_EMPTIED && enabled(has) === 0)
  )
}

// What makes a write so destructive that it has to be confirmed.

import type { BrakePercents } from '../../base/brake-percents.ts'
import { getOrSet } from '../../base/get-or-set.ts'
import { named } from '../../base/sentences.ts'
import type { Steps } from '../../base/steps.ts'
import { type EndpointDifference, receivedBy } from '../delivery/compare-inputs.ts'
import type { Comparison } from '../delivery/compare-served.ts'
import { servedTo } from '../delivery/served-view.ts'
import type { Change, Entry, View } from '../documents/view.ts'
import {
  type DeliveredType,
  isEnabled,
  type Reference,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'

/** Fewer clusters than this may lose something without confirmation, whatever share they are. */
const MIN_CLUSTERS = 5
/** Clusters that one write may delete without confirmation, at most. */
const MAX_DELETED = 5

/** Live clusters that have something in common, and how many of them lose inputs. */
interface Group {
  losing: number
  live: number
}

/** What the changed clusters lose. */
class Losses {
  /** Clusters that stay, and have an input removed or disabled. */
  losing = 0
  readonly deleted: string[] = []
  readonly emptied: string[] = []
  /** Clusters that lose inputs, by environment; deleted clusters included. */
  readonly environments = new Map<string, Group>()
  /** Clusters that lose an enabled input, by its type and id; deleted clusters included. */
  readonly inputs = new Map<DeliveredType, Map<string, Group>>()

  count(environment: string, was: Entry, differences: readonly EndpointDifference[]): void {
    addTo(this.environments, environment)
    for (const { type, removed, disabled } of differences) {
      const lost = new Set([...removed, ...disabled])
      if (lost.size === 0) continue
      const groups = getOrSet(this.inputs, type, () => new Map<string, Group>())
      for (const reference of referencesOf(was.document, type.delivery)) {
        if (lost.has(reference.id) && isEnabled(type.delivery, reference)) addTo(groups, reference.id)
      }
    }
  }
}

function addTo(groups: Map<string, Group>, name: string): void {
  getOrSet(groups, name, () => ({ losing: 0, live: 0 })).losing++
}

/** Returns why the changes need confirmation; empty when they do not. */
export function* findRemovals(
  comparison: Comparison,
  changes: readonly Change[],
  { percent, groupPercent }: BrakePercents,
): Steps<string[]> {
  const losses = yield* countLosses(comparison, changes)
  const { losing, emptied, deleted } = losses
  const fleet = { losing, live: comparison.before.count(comparison.types.cluster.type.name) }
  return [
    ...(isBeyond(fleet, percent) ? [`it takes inputs from ${share(fleet, '', percent)}`] : []),
    ...(yield* findWideLosses(comparison, losses, groupPercent)),
    ...(emptied.length > 0 ? [`it empties ${named(emptied)}: Flux deletes there all that came from it`] : []),
    ...(deleted.length > MAX_DELETED ? [`it deletes ${deleted.length} clusters: ${named(deleted)}`] : []),
  ]
}

function* countLosses(comparison: Comparison, changes: readonly Change[]): Steps<Losses> {
  const { types, before, after } = comparison
  const clusters = types.cluster.type.name
  const losses = new Losses()
  // Only a change of its own document can take an input from a cluster.
  for (const { type, id } of changes) {
    yield
    const was = type === clusters ? before.get(clusters, id) : undefined
    if (!was) continue
    const is = after.get(clusters, id)
    if (!is) losses.deleted.push(id)
    const differences = comparison
      .compare({ id })
      .filter(({ removed, disabled }) => removed.length + disabled.length > 0)
    if (differences.length === 0) continue
    losses.count(environmentOf(comparison, was), was, differences)
    if (!is) continue
    losses.losing++
    for (const { type: delivered } of differences) {
      if (!empties(comparison, delivered, was, is)) continue
      losses.emptied.push(`${id} (${delivered.delivery.endpoint})`)
    }
  }
  return losses
}

/** Losses by many clusters of one environment, or of those that have an input. Reads the fleet only if there may be any. */
function* findWideLosses(
  comparison: Comparison,
  { environments, inputs }: Losses,
  percent: number,
): Steps<string[]> {
  if (percent === 100) return []
  const all = [environments, ...inputs.values()]
  if (!all.some((groups) => groups.values().some(({ losing }) => losing >= MIN_CLUSTERS))) return []
  const { before, types } = comparison
  for (const cluster of before.all(types.cluster.type.name)) {
    yield
    countLive(environments, environmentOf(comparison, cluster))
    for (const [{ delivery }, groups] of inputs) {
      for (const reference of referencesOf(cluster.document, delivery)) {
        if (isEnabled(delivery, reference)) countLive(groups, reference.id)
      }
    }
  }
  const ofEnvironments: string[] = []
  for (const [name, group] of environments) {
    yield
    if (name === '' || !isBeyond(group, percent)) continue
    ofEnvironments.push(share(group, ` of environment ${name}`, percent))
  }
  const ofInputs: string[] = []
  for (const [{ delivery }, groups] of inputs) {
    for (const [id, group] of groups) {
      yield
      if (!isBeyond(group, percent)) continue
      ofInputs.push(`${id} (${delivery.endpoint}) from ${share(group, ' that have it', percent)}`)
    }
  }
  return [
    ...(ofEnvironments.length > 0 ? [`it takes inputs from ${named(ofEnvironments)}`] : []),
    ...(ofInputs.length > 0 ? [`it takes ${named(ofInputs)}`] : []),
  ]
}

function countLive(groups: ReadonlyMap<string, Group>, name: string): void {
  const group = groups.get(name)
  if (group) group.live++
}

function isBeyond({ losing, live }: Group, percent: number): boolean {
  return losing >= MIN_CLUSTERS && losing * 100 > percent * live
}

function share({ losing, live }: Group, which: string, percent: number): string {
  return `${losing} of ${live} clusters${which} (${((losing / live) * 100).toFixed(1)} %, more than ${percent} %)`
}

/** The environment of a cluster before the write, which may change it. */
function environmentOf({ types: { cluster } }: Comparison, { document }: Entry): string {
  return String((cluster.environment && document[cluster.environment]) ?? '')
}

/** Whether a cluster that had inputs of a type is left without any, or one that had enabled ones without these. */
function empties(comparison: Comparison, type: DeliveredType, was: Entry, is: Entry): boolean {
  const had = servedReferences(comparison.types, comparison.before, type, was)
  const has = servedReferences(comparison.types, comparison.after, type, is)
  const on = (reference: Reference): boolean => isEnabled(type.delivery, reference)
  return had.length > 0 && (has.length === 0 || (had.some(on) && !has.some(on)))
}

function servedReferences(
  types: Types,
  view: View,
  type: DeliveredType,
  cluster: Entry,
): readonly Reference[] {
  const served = servedTo(types, view, cluster.id)
  const { document } = served.get(types.cluster.type.name, cluster.id) ?? cluster
  return receivedBy(served, type, document)
}

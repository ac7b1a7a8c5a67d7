// The whole fleet in a few numbers, for metrics; going through it also notices what changes as time passes.
import { getOrSet } from '../../base/get-or-set.ts'
import type { Steps } from '../../base/steps.ts'
import type { View } from '../../domain/documents/view.ts'
import { type ClusterProblem, PROBLEMS } from '../../domain/status/find-problem.ts'
import { type StatusCounts, StatusTally } from '../../domain/status/status-tally.ts'
import type { ClusterType } from '../../domain/types/resource-type.ts'
import type { Fleet } from './fleet.ts'

export interface FleetSummary {
  /** By environment: the largest ones, and the others together. */
  readonly environments: ReadonlyMap<string, StatusCounts>
  /** How many clusters have a problem, each counted by its worst. */
  readonly problems: ReadonlyMap<ClusterProblem, number>
  /** When the live cluster was heard of that has been silent for longest; 0 when none ever was. */
  readonly oldestContact: number
  /** Clusters that are in contact, and were not served what they are to have. */
  readonly behind: number
  /** Since when one of them has been behind, as far as this process knows; 0 without one. */
  readonly behindSince: number
}

/** Environments are texts of documents: there may be any number of them. */
const MAX_ENVIRONMENTS = 20
const OTHERS = 'other'

/** Clusters are chosen by one view, and looked at as they are in the present. */
export function* summariseFleet(
  fleet: Fleet,
  { type, environment }: ClusterType,
  chosen: View,
  present: View,
): Steps<FleetSummary> {
  const environments = new Map<string, StatusTally>()
  const problems = new Map(PROBLEMS.map((problem): [ClusterProblem, number] => [problem, 0]))
  let [oldestContact, behind, behindSince] = [0, 0, 0]
  for (const { id } of chosen.all(type.name)) {
    yield
    const cluster = present.get(type.name, id)
    if (!cluster) continue
    const row = fleet.rowOf(cluster)
    const name = environment === undefined ? '' : String(cluster.document[environment] ?? '')
    getOrSet(environments, name, () => new StatusTally()).count(row)
    const { problem } = fleet.problemOf(cluster) ?? {}
    if (problem) problems.set(problem, (problems.get(problem) ?? 0) + 1)
    oldestContact = earlier(oldestContact, fleet.lastSeen(id))
    if (row.contact !== 'current' || row.delivery !== 'behind') continue
    behind++
    behindSince = earlier(behindSince, fleet.behindSince(id))
  }
  return { environments: largest(environments), problems, oldestContact, behind, behindSince }
}

/** 0 is no time. */
function earlier(one: number, other: number): number {
  return one === 0 || (other > 0 && other < one) ? other : one
}

function largest(environments: ReadonlyMap<string, StatusTally>): ReadonlyMap<string, StatusCounts> {
  const bySize = [...environments].sort(([, one], [, other]) => other.total - one.total)
  const shown = bySize.slice(0, MAX_ENVIRONMENTS)
  const rest = bySize.slice(MAX_ENVIRONMENTS).map(([, tally]) => tally)
  const named = shown.find(([name]) => name === OTHERS)?.[1]
  const others = new StatusTally(named ? [named, ...rest] : rest)
  const counts = shown.map(([name, tally]): [string, StatusCounts] => [name, tally.counts()])
  return new Map(rest.length === 0 ? counts : [...counts, [OTHERS, others.counts()]])
}

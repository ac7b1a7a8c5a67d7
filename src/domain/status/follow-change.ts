// How far one cluster is with what a revision changed for it.
import type { EndpointDifference } from '../delivery/compare-inputs.ts'
import { deliveryOf, hasApplied, healthOf, type Situation } from './derive-status.ts'
import type { Desired } from './desired.ts'
import type { Contact, Health } from './status-words.ts'

export interface ChangeProgress {
  /** When the cluster was served it, at every endpoint; undefined before. */
  readonly servedAt: number | undefined
  /** When the cluster first reported it as applied, at every endpoint; undefined before, and never before `servedAt`. */
  readonly appliedAt: number | undefined
  readonly outcome: 'healthy' | 'failed' | 'offline' | 'unknown'
  /** When it is expected to have asked for what it was not served yet; 0 when it has, or is not expected to ask. */
  readonly expectedAt: number
}

/** Clusters that are not expected to ask. */
const AWAY: readonly Contact[] = ['offline', 'never', 'refused', 'unobserved']

/** For a live cluster, by its present situation: what was changed again since counts as it is now. */
export function followChange(
  situation: Situation,
  revision: number,
  differences: readonly EndpointDifference[],
): ChangeProgress {
  const { contact } = situation
  const endpoints = differences.flatMap((difference) => {
    const desired = situation.desired.find(({ type }) => type === difference.type)
    return desired ? [{ difference, desired }] : []
  })
  const servedAt = latest(endpoints, ({ desired }) => servedSince(situation, desired, revision))
  if (servedAt === undefined) {
    const isAway = AWAY.includes(contact)
    const expectedAt = isAway ? 0 : nextPoll(situation, revision, endpoints)
    return { servedAt, appliedAt: undefined, outcome: isAway ? 'offline' : 'unknown', expectedAt }
  }
  const appliedAt = latest(endpoints, ({ desired }) => appliedSince(situation, desired, revision))
  const isRejected = endpoints.some(({ desired }) => deliveryOf(situation, desired) === 'rejected')
  const healths = endpoints.flatMap((endpoint) => healthsOf(situation, endpoint))
  const isHealthy = appliedAt !== undefined && healths.every((health) => health === 'healthy')
  const outcome = isRejected || healths.includes('failed') ? 'failed' : isHealthy ? 'healthy' : 'unknown'
  return { servedAt, appliedAt, outcome, expectedAt: 0 }
}

interface ChangedEndpoint {
  readonly difference: EndpointDifference
  readonly desired: Desired
}

/** The latest of the moments; undefined when one of them is. */
function latest(
  endpoints: readonly ChangedEndpoint[],
  momentOf: (endpoint: ChangedEndpoint) => number | undefined,
): number | undefined {
  let last = 0
  for (const endpoint of endpoints) {
    const moment = momentOf(endpoint)
    if (moment === undefined) return undefined
    last = Math.max(last, moment)
  }
  return last
}

function servedSince({ evidence }: Situation, { endpoint }: Desired, revision: number): number | undefined {
  const poll = evidence.poll(endpoint)
  return poll && poll.revision >= revision ? poll.since : undefined
}

/** An endpoint without inputs has no time of its own: it counts from when that was served. */
function appliedSince(situation: Situation, desired: Desired, revision: number): number | undefined {
  const { evidence } = situation
  const { endpoint } = desired
  const applied = evidence.report?.applied.get(endpoint)
  const isApplied =
    (applied !== undefined && applied.revision >= revision) || hasApplied(deliveryOf(situation, desired))
  return isApplied ? (applied?.since ?? evidence.poll(endpoint)?.since) : undefined
}

/** Of the components that were added or changed; what has no health any more counts for nothing. */
function healthsOf(situation: Situation, { difference, desired }: ChangedEndpoint): Health[] {
  const ids = new Set([...difference.added, ...difference.changed.map(({ id }) => id)])
  return desired.components.flatMap((input) =>
    ids.has(input.id) ? [healthOf(situation, desired, input)] : [],
  )
}

function nextPoll(
  { evidence, interval }: Situation,
  revision: number,
  endpoints: readonly ChangedEndpoint[],
): number {
  let last = 0
  for (const { desired } of endpoints) {
    const poll = evidence.poll(desired.endpoint)
    if (poll && poll.revision >= revision) continue
    last = Math.max(last, (poll?.at ?? evidence.lastSeen) + interval.ms)
  }
  return last
}

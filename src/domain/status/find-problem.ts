// What is wrong with a cluster, so that somebody should look: its worst problem, and since when.
import { expectedInterval, FAILURE_MS, type StatusRules, type Stuck, stuckIn } from './derive-status.ts'
import type { Evidence } from './evidence.ts'
import type { StatusRow } from './status-words.ts'

/** Worst first. */
export const PROBLEMS = [
  'refused',
  'failed',
  'rejected',
  'offline',
  'stuck',
  'partial',
  'flapping',
  'late',
] as const
export type ClusterProblem = (typeof PROBLEMS)[number]

export interface Trouble {
  readonly problem: ClusterProblem
  /** In milliseconds since the epoch; 0 when it is not known. */
  readonly since: number
}

export interface Suspect {
  readonly row: StatusRow
  readonly evidence: Evidence
  readonly endpoints: readonly string[]
  readonly rules: StatusRules
  readonly now: number
  /** When contact changed within the last hour, or a component failed or recovered; oldest first. */
  readonly changes: readonly number[]
  /** When the oldest failure of components, or of endpoints, began that was repeated after a moment; 0 without one. */
  failingSince(subject: 'component' | 'endpoint', after: number): number
}

/** So many changes within an hour are flapping. */
const FLAPPING = 4

export function findProblem(suspect: Suspect): Trouble | undefined {
  const { row, evidence, endpoints, rules, now, changes } = suspect
  const { contact, delivery, health } = row
  if (contact === 'refused') return { problem: 'refused', since: evidence.lastSeen }
  if (health === 'failed')
    return { problem: 'failed', since: suspect.failingSince('component', now - FAILURE_MS) }
  if (delivery === 'rejected')
    return { problem: 'rejected', since: suspect.failingSince('endpoint', now - FAILURE_MS) }
  if (contact === 'offline') return { problem: 'offline', since: evidence.lastSeen }
  const stuck = delivery === 'served' ? stuckIn(evidence, endpoints, rules, now) : undefined
  if (stuck) return { problem: 'stuck', since: stuck.since }
  const unasked = contact === 'current' ? unaskedIn(evidence, endpoints, rules, now) : undefined
  if (unasked) return { problem: 'partial', since: unasked.since }
  if (changes.length >= FLAPPING) return { problem: 'flapping', since: changes[0] ?? 0 }
  return contact === 'late' ? { problem: 'late', since: evidence.lastSeen } : undefined
}

/**
 * For a cluster that polls: the endpoint that it has not asked for in so long that it would be offline if it were its only
 * one, for longest first. One that it never asked for is missing at least since its oldest answer; since when it has been
 * of a cluster that only reports, nobody knows.
 */
export function unaskedIn(
  evidence: Evidence,
  endpoints: readonly string[],
  rules: StatusRules,
  now: number,
): Stuck | undefined {
  const { ms } = expectedInterval(evidence, endpoints, rules)
  let begun = Number.POSITIVE_INFINITY
  for (const endpoint of endpoints) begun = Math.min(begun, evidence.poll(endpoint)?.since ?? begun)
  if (begun === Number.POSITIVE_INFINITY) begun = 0
  let longest: Stuck | undefined
  for (const endpoint of endpoints) {
    const { at: since = begun, intervalMs = 0 } = evidence.poll(endpoint) ?? {}
    if (longest && since >= longest.since) continue
    const patienceMs = rules.offline * Math.max(ms, intervalMs)
    if (now > since + rules.unobservedAfter(since) + patienceMs) longest = { endpoint, since }
  }
  return longest
}

// The rules of status: what polls, reports and events come to. No state is better than its evidence.
import type { Entry } from '../documents/view.ts'
import type { Document } from '../types/resource-type.ts'
import type { Desired, DesiredInput } from './desired.ts'
import { type Evidence, type FailureEvidence, type PollEvidence, sameMark } from './evidence.ts'
import type { StatusClock } from './status-clock.ts'
import {
  type Contact,
  DELIVERIES,
  type Delivered,
  HEALTHS,
  type Health,
  type StatusRow,
  worse,
} from './status-words.ts'

export interface StatusRules {
  /** A cluster is late, and then offline, after this many of its intervals without an answer to it. */
  readonly late: number
  readonly offline: number
  /** For clusters whose interval is not known. */
  readonly defaultIntervalMs: number
  /** For how long after this moment no poll was noted, because no process of the service ran. It counts for nobody. */
  unobservedAfter(moment: number): number
  /** Whether a cluster polls somewhere that tells nothing. */
  isUnobserved(cluster: Document): boolean
}

/** A failure that is not repeated for so long says nothing any more. */
export const FAILURE_MS = 3_600_000
/** A component may take this long to become ready, or `offline` intervals where that is longer. */
const PROGRESS_MS = 15 * 60_000

interface ExpectedInterval {
  readonly ms: number
  readonly source: 'reported' | 'learned' | 'default'
}

/** How often a cluster speaks: as it says itself, or by the gaps between its polls. */
export function expectedInterval(
  evidence: Pick<Evidence, 'report' | 'poll'>,
  endpoints: readonly string[],
  { defaultIntervalMs }: StatusRules,
): ExpectedInterval {
  const { report } = evidence
  if (report && report.everyMs > 0) return { ms: report.everyMs, source: 'reported' }
  let least = Number.POSITIVE_INFINITY
  for (const endpoint of endpoints) {
    const learned = evidence.poll(endpoint)?.intervalMs ?? 0
    if (learned > 0 && learned < least) least = learned
  }
  return least < Number.POSITIVE_INFINITY
    ? { ms: least, source: 'learned' }
    : { ms: defaultIntervalMs, source: 'default' }
}

/** All that the state of one cluster is derived from. */
export interface Situation {
  readonly cluster: Entry
  readonly desired: readonly Desired[]
  readonly evidence: Evidence
  readonly rules: StatusRules
  readonly clock: StatusClock
  /** Whether it is held at what it was served. */
  readonly isHeld: boolean
  readonly interval: ExpectedInterval
  readonly contact: Contact
}

/** `endpoints` are all that a cluster polls, `desired` those that are asked about. */
export function situationOf(
  parts: Omit<Situation, 'interval' | 'contact'>,
  endpoints: readonly string[],
): Situation {
  const interval = expectedInterval(parts.evidence, endpoints, parts.rules)
  return { ...parts, interval, contact: contactOf(parts, interval.ms) }
}

export function contactOf(
  { cluster, evidence, rules, clock }: Pick<Situation, 'cluster' | 'evidence' | 'rules' | 'clock'>,
  intervalMs: number,
): Contact {
  if (cluster.deleted) return 'deleted'
  const { lastSeen, refusal } = evidence
  const seen = lastSeen + rules.unobservedAfter(lastSeen)
  const offlineMs = rules.offline * intervalMs
  // A refusal alone says little: anybody can send a request with a wrong token in a cluster's name.
  if (lastSeen > 0 && !clock.isPast(seen + rules.late * intervalMs)) return 'current'
  if (refusal && refusal.at > lastSeen && !clock.isPast(refusal.at + offlineMs)) return 'refused'
  if (rules.isUnobserved(cluster.document)) return 'unobserved'
  if (lastSeen === 0) return 'never'
  return clock.isPast(seen + offlineMs) ? 'offline' : 'late'
}

/** Whether the last answer to an endpoint is what the cluster is to be served. */
function isServed(desired: Desired, poll: PollEvidence | undefined): poll is PollEvidence {
  return poll !== undefined && sameMark(poll.mark, desired.mark)
}

/** When the cluster first reported what it was last served as applied; undefined while it has not. */
function appliedSince(
  { report }: Pick<Evidence, 'report'>,
  endpoint: string,
  { since, mark }: Pick<PollEvidence, 'since' | 'mark'>,
): number | undefined {
  // A report from before the answer is about an earlier stretch of the same answer.
  if (!report || report.at < since) return undefined
  const applied = report.applied.get(endpoint)
  // An endpoint without inputs has no mark: it is applied when a report no longer names it.
  if (mark === undefined) return applied === undefined ? report.at : undefined
  return applied && sameMark(applied.mark, mark) ? applied.since : undefined
}

/** What a held cluster has applied, it is held at. */
export function deliveryOf(situation: Situation, desired: Desired): Delivered {
  const poll = situation.evidence.poll(desired.endpoint)
  if (!isServed(desired, poll)) return 'behind'
  const delivery = progressSince(situation, desired.endpoint, poll)
  return delivery === 'applied' && situation.isHeld ? 'held' : delivery
}

/** Whether all that is to come has come: a held cluster has applied what it is held at. */
export function hasApplied(delivery: Delivered): boolean {
  return delivery === 'applied' || delivery === 'held'
}

/** How far an answer has come that was given since a moment: what was told before says nothing of it. */
export function progressSince(
  { evidence, clock }: Pick<Situation, 'evidence' | 'clock'>,
  endpoint: string,
  given: Pick<PollEvidence, 'since' | 'mark'>,
): 'rejected' | 'served' | 'applied' {
  const applied = appliedSince(evidence, endpoint, given)
  const failure = evidence.failureOf({ endpoint })
  const isRejected =
    failure &&
    failure.at >= Math.max(applied ?? given.since, given.since) &&
    !clock.isPast(failure.at + FAILURE_MS)
  return isRejected ? 'rejected' : applied === undefined ? 'served' : 'applied'
}

/** The endpoint that a cluster has not applied for longest. */
export interface Stuck {
  readonly endpoint: string
  readonly since: number
}

/**
 * For a cluster that was served all that it is to have: what it has not applied for too long. Undefined for clusters that
 * never report, of which nothing is known.
 */
export function stuckIn(
  evidence: Evidence,
  endpoints: readonly string[],
  rules: StatusRules,
  now: number,
): Stuck | undefined {
  if (!evidence.report) return undefined
  let longest: Stuck | undefined
  for (const endpoint of endpoints) {
    const poll = evidence.poll(endpoint)
    if (!poll || appliedSince(evidence, endpoint, poll) !== undefined) continue
    if (!longest || poll.since < longest.since) longest = { endpoint, since: poll.since }
  }
  if (!longest) return undefined
  const { since } = longest
  const patienceMs = Math.max(rules.offline * expectedInterval(evidence, endpoints, rules).ms, PROGRESS_MS)
  return now > since + rules.unobservedAfter(since) + patienceMs ? longest : undefined
}

export function healthOf(situation: Situation, desired: Desired, input: DesiredInput): Health {
  const { evidence, clock, rules, interval, contact } = situation
  const { report } = evidence
  const poll = evidence.poll(desired.endpoint)
  const readySince = report?.ready.sinceOf(input.id, input.mark)
  const failure = evidence.failureOf({ component: input.id })
  if (failure && speaksOf(failure, input, poll) && !(readySince !== undefined && readySince > failure.at))
    return clock.isPast(failure.at + FAILURE_MS) ? 'unknown' : 'failed'
  if (contact !== 'current' && contact !== 'late') return 'unknown'
  const offlineMs = rules.offline * interval.ms
  if (report && readySince !== undefined) return clock.isPast(report.at + offlineMs) ? 'unknown' : 'healthy'
  const isUnderway = isServed(desired, poll) && !clock.isPast(poll.since + Math.max(offlineMs, PROGRESS_MS))
  return isUnderway ? 'progressing' : 'unknown'
}

/** An event without a digest is taken to be about the last answer, if it came after that. */
function speaksOf(
  { mark, at }: FailureEvidence,
  input: DesiredInput,
  poll: PollEvidence | undefined,
): boolean {
  return mark === undefined ? poll !== undefined && at >= poll.since : sameMark(mark, input.mark)
}

/** The states of one endpoint of a cluster. */
export interface EndpointStates {
  readonly delivery: Delivered
  /** Undefined where no input has a health. */
  readonly health: Health | undefined
}

export function endpointStatesOf(situation: Situation, desired: Desired): EndpointStates {
  let health: Health | undefined
  for (const input of desired.components)
    health = worse(HEALTHS, health ?? 'healthy', healthOf(situation, desired, input))
  return { delivery: deliveryOf(situation, desired), health }
}

/** A cluster's delivery is its worst endpoint's, its health its worst component's. */
export function worstOf(contact: Contact, endpoints: readonly EndpointStates[]): StatusRow {
  let delivery: Delivered = 'applied'
  let health: Health | undefined
  for (const each of endpoints) {
    delivery = worse(DELIVERIES, delivery, each.delivery)
    if (each.health) health = worse(HEALTHS, health ?? 'healthy', each.health)
  }
  return { contact, delivery, health: health ?? withoutComponents(contact, delivery) }
}

export function rowOf(situation: Situation): StatusRow {
  return worstOf(
    situation.contact,
    situation.desired.map((each) => endpointStatesOf(situation, each)),
  )
}

/** A cluster without components is healthy when all that it is to have is applied, and it was heard of lately. */
function withoutComponents(contact: Contact, delivery: Delivered): Health {
  return hasApplied(delivery) && (contact === 'current' || contact === 'late') ? 'healthy' : 'unknown'
}

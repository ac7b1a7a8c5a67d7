// The status of one cluster in full, with the evidence behind each state.
import type {
  AppliedStatus,
  ClusterStatus,
  ComponentStatus,
  EndpointStatus,
  ServedStatus,
} from '../../api/status-schema.ts'
import { hexOf } from '../../base/digest.ts'
import { deliveryOf, healthOf, rowOf, type Situation } from '../../domain/status/derive-status.ts'
import type { Desired, DesiredInput } from '../../domain/status/desired.ts'
import type { AnswerMark, PollEvidence } from '../../domain/status/evidence.ts'
import type { ClusterType } from '../../domain/types/resource-type.ts'
import type { KeptTransition } from '../../engine/fleet/transition-log.ts'

export function describeCluster(
  type: ClusterType,
  situation: Situation,
  operatorVersion: string | undefined,
  transitions: readonly KeptTransition[],
): ClusterStatus {
  const { cluster, evidence, interval, desired } = situation
  const { refusal, lastSeen } = evidence
  const { contact: state, delivery, health } = rowOf(situation)
  const lastChange = transitions.find(({ column }) => column === 'contact')
  const components = desired.flatMap((each) =>
    each.components.map((input) => [input.id, componentStatus(situation, each, input)] as const),
  )
  return {
    cluster: cluster.id,
    environment: type.environment ? String(cluster.document[type.environment] ?? '') : null,
    dns: String(cluster.document[type.dns]),
    operator_version: operatorVersion ?? null,
    contact: {
      state,
      since: lastChange?.to === state ? timeOf(lastChange.time) : null,
      last_seen: timeOf(lastSeen),
      expected_interval_s: Math.round(interval.ms / 100) / 10,
      interval_source: interval.source,
      reason: refusal && refusal.at > lastSeen ? `${refusal.status} ${refusal.reason}` : null,
    },
    delivery,
    health,
    endpoints: Object.fromEntries(desired.map((each) => [each.endpoint, endpointStatus(situation, each)])),
    components: Object.fromEntries(components),
    transitions: transitions.map(({ time, column, from, to }) => ({
      time: new Date(time).toISOString(),
      kind: column,
      from,
      to,
    })),
  }
}

function timeOf(moment: number): string | null {
  return moment > 0 ? new Date(moment).toISOString() : null
}

function digestOf(mark: AnswerMark): string | null {
  return mark ? hexOf(mark) : null
}

function endpointStatus(situation: Situation, desired: Desired): EndpointStatus {
  const { evidence } = situation
  const { endpoint, mark, count } = desired
  const delivery = deliveryOf(situation, desired)
  const poll = evidence.poll(endpoint)
  const failure = delivery === 'rejected' ? evidence.failureOf({ endpoint }) : undefined
  return {
    delivery,
    desired: digestOf(mark),
    inputs: count,
    served: poll ? servedStatus(poll) : null,
    applied: appliedStatus(situation, endpoint, poll),
    reason: failure?.reason ?? null,
    message: failure?.message ?? null,
  }
}

function servedStatus({ mark, revision, at, since }: PollEvidence): ServedStatus {
  return {
    digest: digestOf(mark),
    revision,
    at: new Date(at).toISOString(),
    since: new Date(since).toISOString(),
  }
}

/** The last report, if any; one that names no digest says that there is nothing. */
function appliedStatus(
  { evidence: { report } }: Situation,
  endpoint: string,
  poll: PollEvidence | undefined,
): AppliedStatus | null {
  if (!report) return null
  const applied = report.applied.get(endpoint)
  if (applied)
    return {
      digest: hexOf(applied.mark),
      revision: applied.revision || null,
      at: new Date(applied.since).toISOString(),
    }
  const isEmpty = poll !== undefined && poll.mark === undefined && report.at >= poll.since
  return isEmpty ? { digest: null, revision: poll.revision, at: new Date(report.at).toISOString() } : null
}

function componentStatus(situation: Situation, desired: Desired, input: DesiredInput): ComponentStatus {
  const { evidence } = situation
  const health = healthOf(situation, desired, input)
  const base = { health, digest: hexOf(input.mark), reason: null, message: null }
  if (health === 'healthy')
    return {
      ...base,
      since: timeOf(evidence.report?.ready.sinceOf(input.id, input.mark) ?? 0),
      source: 'ack',
    }
  if (health === 'failed') {
    const { since = 0, reason = '', message = '' } = evidence.failureOf({ component: input.id }) ?? {}
    return { ...base, since: timeOf(since), source: 'event', reason, message }
  }
  if (health === 'progressing')
    return { ...base, since: timeOf(evidence.poll(desired.endpoint)?.since ?? 0), source: 'poll' }
  return { ...base, since: null, source: null }
}

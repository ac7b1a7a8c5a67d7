// The clusters that need somebody: worst problem first, each with what to do next.
import type { Attention, TroubledCluster } from '../../api/attention-schema.ts'
import { FirstFew } from '../../base/first-few.ts'
import type { Steps } from '../../base/steps.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import { deliveryOf, healthOf, type Situation, stuckIn } from '../../domain/status/derive-status.ts'
import type { FailureEvidence } from '../../domain/status/evidence.ts'
import { type ClusterProblem, PROBLEMS, type Trouble, unaskedIn } from '../../domain/status/find-problem.ts'
import type { ClusterType, Document } from '../../domain/types/resource-type.ts'
import type { Fleet } from '../../engine/fleet/fleet.ts'
import { environmentOf } from './list-status.ts'

export interface AttentionQuery {
  matches(cluster: Document, view: View): boolean
  readonly limit: number
}

interface Found extends Trouble {
  readonly entry: Entry
}

export function* listAttention(
  fleet: Fleet,
  type: ClusterType,
  view: View,
  { matches, limit }: AttentionQuery,
): Steps<Attention> {
  const first = new FirstFew<Found>(limit, byUrgency)
  let total = 0
  for (const entry of view.all(type.type.name)) {
    yield
    if (!matches(entry.document, view)) continue
    const trouble = fleet.problemOf(entry)
    if (!trouble) continue
    total++
    first.add({ ...trouble, entry })
  }
  const clusters: TroubledCluster[] = []
  for (const found of first.all()) {
    yield
    clusters.push(describe(type, fleet.situationOf(found.entry), found))
  }
  return { total, clusters }
}

/** Of one problem what lasts longest first, and last what nobody knows the beginning of. */
function byUrgency(one: Found, other: Found): number {
  const ranks = PROBLEMS.indexOf(one.problem) - PROBLEMS.indexOf(other.problem)
  return ranks || (one.since || Number.MAX_VALUE) - (other.since || Number.MAX_VALUE)
}

interface Cause {
  readonly component?: string
  readonly endpoint?: string
  readonly reason?: string
  readonly message?: string
  readonly since?: number
}

function describe(
  type: ClusterType,
  situation: Situation,
  { problem, since, entry }: Found,
): TroubledCluster {
  const cause = causeOf(situation, problem)
  const { component, endpoint, reason, message } = cause
  const begun = cause.since ?? since
  return {
    cluster: entry.id,
    environment: environmentOf(type, entry),
    problem,
    since: begun > 0 ? new Date(begun).toISOString() : null,
    component: component ?? null,
    endpoint: endpoint ?? null,
    reason: reason || null,
    message: message || null,
    next_step: NEXT_STEPS[problem]({ ...cause, cluster: entry.id }),
  }
}

function causeOf(situation: Situation, problem: ClusterProblem): Cause {
  const { evidence, desired, rules, clock } = situation
  if (problem === 'refused') {
    const { refusal } = evidence
    return refusal ? { reason: `${refusal.status} ${refusal.reason}` } : {}
  }
  if (problem === 'failed') return failedComponent(situation)
  if (problem === 'rejected') {
    const rejected = desired.find((each) => deliveryOf(situation, each) === 'rejected')
    if (!rejected) return {}
    const { endpoint } = rejected
    return { endpoint, ...causeIn(evidence.failureOf({ endpoint })) }
  }
  const find = problem === 'stuck' ? stuckIn : problem === 'partial' ? unaskedIn : undefined
  const endpoints = desired.map(({ endpoint }) => endpoint)
  const { endpoint } = find?.(evidence, endpoints, rules, clock.now) ?? {}
  return endpoint === undefined ? {} : { endpoint }
}

/** The component that has failed for longest. */
function failedComponent(situation: Situation): Cause {
  let longest: Cause = {}
  for (const each of situation.desired)
    for (const input of each.components) {
      if (healthOf(situation, each, input) !== 'failed') continue
      const failure = situation.evidence.failureOf({ component: input.id })
      if (failure && (longest.since === undefined || failure.since < longest.since))
        longest = { component: input.id, endpoint: each.endpoint, ...causeIn(failure) }
    }
  return longest
}

function causeIn(failure: FailureEvidence | undefined): Cause {
  if (!failure) return {}
  const { reason, message, since } = failure
  return { reason, message, since }
}

type Step = (cause: Cause & { readonly cluster: string }) => string

/** One sentence each, with the command to run next; kubectl is meant on the cluster itself. */
const NEXT_STEPS: Readonly<Record<ClusterProblem, Step>> = {
  refused: ({ cluster, reason }) =>
    reason?.startsWith('404')
      ? `It asks for what this service does not have, so give it a new bundle: flux-resourceset-cli bootstrap ${cluster} | kubectl apply -f -`
      : `Its token is refused, so give it a new one: flux-resourceset-cli bootstrap ${cluster} --with-token | kubectl apply -f -`,
  failed: ({ component }) =>
    `Ask the cluster why the component fails: kubectl -n flux-system describe helmrelease,kustomization ${component ?? ''}`.trim(),
  rejected: ({ endpoint }) =>
    `Ask the cluster why it cannot apply its inputs: kubectl -n flux-system describe resourceset ${endpoint ?? ''}`.trim(),
  offline: () =>
    'See whether the cluster is up, reaches this service, and has no suspended provider: kubectl -n flux-system get resourcesetinputprovider',
  stuck: ({ endpoint }) =>
    `It polls, and has not applied what it got: kubectl -n flux-system describe resourceset ${endpoint ?? ''}`.trim(),
  partial: ({ cluster, endpoint }) =>
    `It polls, but not for ${endpoint ?? 'everything'}: resume that provider, or give it all of them with flux-resourceset-cli bootstrap ${cluster} | kubectl apply -f -`,
  flapping: () =>
    'See what comes and goes on the cluster: kubectl -n flux-system get events --sort-by=.lastTimestamp',
  late: () =>
    'Wait for its next poll, and then see what holds its operator up: kubectl -n flux-system logs deployment/flux-operator --since=1h',
}

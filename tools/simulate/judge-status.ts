// What a service may say of a cluster, by what is so there: never more than the truth, and of a settled cluster not less.
import type { ClusterStatus } from '../../src/api/status-schema.ts'
import { DEFAULT_STATUS_LIMITS } from '../../src/base/status-limits.ts'
import type { StatusRow } from '../../src/domain/status/status-words.ts'
import type { ClusterTruth } from './simulated-cluster.ts'
import type { EndpointTruth } from './simulated-endpoint.ts'

/** What may be said of a cluster at one moment. */
export interface Standing {
  readonly mayBeCurrent: boolean
  readonly mayBeApplied: boolean
  readonly mayBeHealthy: boolean
  /** Whether all is well, the service was told so, and nothing is under way: then nothing may look worse. */
  readonly isSettled: boolean
  /** Whether a component fails and the event was lost or held back. No service can know of it. */
  readonly hasUntoldFailure: boolean
}

/**
 * Before a status was asked for, and after it was answered. The service made it somewhere in between: what was so at either
 * moment may be said, and what was so at both must be.
 */
export type Between<T> = readonly [before: T, after: T]

export interface Moment {
  readonly truth: ClusterTruth
  readonly now: number
}

/** The service reads its clock in whole milliseconds, and that clock may drift from ours. */
const TOLERANCE_MS = 250
const { late, offline } = DEFAULT_STATUS_LIMITS

export function standingOf({ truth, now }: Moment): Standing {
  const { confirmedSentAt = 0, everyMs } = truth
  const components = Object.entries(truth.components)
  const mayBeApplied = Object.values(truth.endpoints).every(isApplied)
  return {
    mayBeCurrent: isWithin(truth, late, now),
    mayBeApplied,
    mayBeHealthy:
      mayBeApplied &&
      components.every(([id, { digest }]) => mayComponentBeHealthy({ truth, now }, id, digest)),
    isSettled:
      mayBeApplied &&
      components.every(([, { state }]) => state === 'ready') &&
      !truth.isAway &&
      truth.underWay === 0 &&
      truth.toldFailures.length === 0 &&
      truth.report === truth.confirmedReport &&
      now < confirmedSentAt + late * everyMs - TOLERANCE_MS,
    hasUntoldFailure: components.some(([id, { state }]) => state === 'failed' && !isKnownToFail(truth, id)),
  }
}

/** An answer without inputs is applied where nothing is there. */
function isApplied(endpoint: EndpointTruth | undefined): boolean {
  const { served, applied } = endpoint ?? {}
  return served !== undefined && served.digest === (applied?.digest ?? null)
}

/** A report says that a component became ready with this digest; what happens to it later is told by events alone. */
function mayComponentBeHealthy({ truth, now }: Moment, id: string, digest: string): boolean {
  const component = truth.components[id]
  const isReached = component?.digest === digest && component.isReached
  return isReached && !isKnownToFail(truth, id) && isWithin(truth, offline, now)
}

/** Whether the service can have heard of the cluster within so many intervals; what is under way may be news to it. */
function isWithin(truth: ClusterTruth, intervals: number, now: number): boolean {
  const { underWay, lastHeardAt, confirmedReport, everyMs } = truth
  if (underWay > 0) return true
  if (lastHeardAt === undefined) return false
  // Without a report the service does not know the interval.
  return confirmedReport === undefined || now <= lastHeardAt + intervals * everyMs + TOLERANCE_MS
}

function isKnownToFail({ components, toldFailures }: ClusterTruth, id: string): boolean {
  const component = components[id]
  if (component?.state !== 'failed') return false
  // Events tell whole milliseconds. A failure from before the component was ready says nothing of this one.
  const since = Math.floor(component.since)
  return toldFailures.some(
    ({ kind, name, at, isOvercome }) => kind !== 'ResourceSet' && name === id && at >= since && !isOvercome,
  )
}

/** Returns what is wrong in the row of a cluster; `isPartial` where the cluster does not poll all of its endpoints. */
export function judgeRow(row: StatusRow, between: Between<Standing>, isPartial = false): string[] {
  const { contact, delivery, health } = row
  const problems: string[] = []
  if (contact === 'current' && !between.some(({ mayBeCurrent }) => mayBeCurrent))
    problems.push(`contact current, and nothing was heard for ${late} intervals`)
  if (delivery === 'applied' && (isPartial || !between.some(({ mayBeApplied }) => mayBeApplied)))
    problems.push('delivery applied, and not everything is')
  if (health === 'healthy' && !between.some(({ mayBeHealthy }) => mayBeHealthy))
    problems.push('health healthy, and not every component is')
  if (!isSettled(between)) return problems
  if (contact !== 'current') problems.push(`contact ${contact} of a settled cluster`)
  if (delivery !== 'applied' && !isPartial) problems.push(`delivery ${delivery} of a settled cluster`)
  // Without components health is that of the delivery; where there are any, each is judged.
  if (health !== 'healthy' && !(isPartial && health === 'unknown'))
    problems.push(`health ${health} of a settled cluster`)
  return problems
}

export function isSettled(between: Between<Standing>): boolean {
  return between.every((standing) => standing.isSettled)
}

/** Returns what is wrong in the whole status of one cluster. */
export function judgeStatus(status: ClusterStatus, moments: Between<Moment>): string[] {
  const { contact, delivery, health } = status
  const [before, after] = moments
  const between = [standingOf(before), standingOf(after)] as const
  const row = { contact: contact.state, delivery, health }
  const problems = judgeRow(row, between, isPartial(status, before.truth))
  const mustBeGood = isSettled(between)
  for (const [name, { delivery: said }] of Object.entries(status.endpoints)) {
    const mayBeApplied = moments.some(({ truth }) => isApplied(truth.endpoints[name]))
    if (said === 'applied' && !mayBeApplied) problems.push(`endpoint ${name} applied, and it is not`)
    if (said !== 'applied' && mustBeGood && mayBeApplied)
      problems.push(`endpoint ${name} ${said} of a settled cluster`)
  }
  for (const [id, { health: said, digest }] of Object.entries(status.components)) {
    const mayBeHealthy = moments.some((moment) => mayComponentBeHealthy(moment, id, digest))
    if (said === 'healthy' && !mayBeHealthy) problems.push(`component ${id} healthy, and it is not`)
    if (said !== 'healthy' && mustBeGood) problems.push(`component ${id} ${said} of a settled cluster`)
  }
  return problems
}

/** Whether the cluster does not poll everything that the service has for it. */
export function isPartial({ endpoints }: ClusterStatus, truth: ClusterTruth): boolean {
  return Object.keys(endpoints).some((endpoint) => !(endpoint in truth.endpoints))
}

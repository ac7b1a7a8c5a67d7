// The clusters that are assigned one document, each with the version that it is served.
import type { AssignedCluster } from '../../api/versions-schema.ts'
import type { Steps } from '../../base/steps.ts'
import { type ServedVersion, servedVersion } from '../../domain/delivery/served-version.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import {
  type DeliveredType,
  type Document,
  overriddenFields,
  patchesOf,
  type Types,
} from '../../domain/types/resource-type.ts'
import type { Fleet } from '../../engine/fleet/fleet.ts'
import { fateOf } from './fate-of-input.ts'
import { environmentOf } from './list-status.ts'

export interface AssignedQuery {
  readonly type: DeliveredType
  readonly id: string
  matches(cluster: Document, view: View): boolean
  readonly limit: number
  readonly offset: number
}

export interface AssignedPage {
  readonly clusters: readonly AssignedCluster[]
  /** On all pages. */
  readonly total: number
}

export function* listAssigned(
  fleet: Fleet,
  types: Types,
  view: View,
  { type, id, matches, limit, offset }: AssignedQuery,
): Steps<AssignedPage> {
  const clusters: AssignedCluster[] = []
  let total = 0
  for (const entry of view.all(types.cluster.type.name)) {
    yield
    if (!matches(entry.document, view)) continue
    const found = servedVersion(types, view, type, entry.id, id)
    if (!found) continue
    if (total >= offset && total < offset + limit) clusters.push(lineOf(fleet, types, type, entry, found))
    total++
  }
  return { clusters, total }
}

function lineOf(
  fleet: Fleet,
  types: Types,
  { delivery }: DeliveredType,
  entry: Entry,
  { version, isOverridden, isEnabled, cluster, reference }: ServedVersion,
): AssignedCluster {
  const situation = fleet.situationOf(entry)
  const fate = fateOf(situation, delivery, reference.id)
  const own = overriddenFields(delivery, reference).map((field) => [field, reference[field] ?? null] as const)
  return {
    cluster: entry.id,
    environment: environmentOf(types.cluster, entry),
    contact: situation.contact,
    enabled: isEnabled,
    version: isEnabled ? version : null,
    overridden: isEnabled && isOverridden,
    overrides: Object.fromEntries(own),
    patches: delivery.patches ? Object.keys(patchesOf(types.cluster, cluster, reference.id)).length : 0,
    applied: fate.isApplied,
    healthy: fate.isHealthy,
    failed: fate.isFailed,
  }
}

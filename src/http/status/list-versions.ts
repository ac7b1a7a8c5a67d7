// Which versions of a document clusters are to have, and how each fares.
import type { VersionCounts, VersionList } from '../../api/versions-schema.ts'
import { getOrSet } from '../../base/get-or-set.ts'
import type { Steps } from '../../base/steps.ts'
import { holderOf, readerOf } from '../../domain/delivery/resolve-field.ts'
import { servedTo } from '../../domain/delivery/served-view.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import { deliveryOf, hasApplied, healthOf, type Situation } from '../../domain/status/derive-status.ts'
import {
  type DeliveredType,
  type Delivery,
  type Document,
  findReference,
  isEnabled,
  type Reference,
  type Types,
} from '../../domain/types/resource-type.ts'
import type { Fleet } from '../../engine/fleet/fleet.ts'
import { environmentOf } from './list-status.ts'

class Counts {
  clusters = 0
  applied = 0
  healthy = 0
  failed = 0

  count({ isApplied, isHealthy, isFailed }: Fate): void {
    this.clusters++
    if (isApplied) this.applied++
    if (isHealthy) this.healthy++
    if (isFailed) this.failed++
  }

  plain(): VersionCounts {
    const { clusters, applied, healthy, failed } = this
    return { clusters, applied, healthy, failed }
  }
}

class Version {
  readonly all = new Counts()
  readonly environments = new Map<string, Counts>()
  overridden = 0
}

export function* listVersions(
  fleet: Fleet,
  types: Types,
  view: View,
  type: DeliveredType,
  id: string,
): Steps<VersionList> {
  const { delivery } = type
  const clusters = types.cluster
  const versions = new Map<string | null, Version>()
  for (const cluster of view.all(clusters.type.name)) {
    yield
    const found = versionFor(types, view, type, cluster, id)
    if (!found) continue
    const version = getOrSet(versions, found.version, () => new Version())
    const fate = fateOf(fleet.situationOf(cluster), delivery, id)
    version.all.count(fate)
    if (found.isOverridden) version.overridden++
    const environment = environmentOf(clusters, cluster) ?? ''
    getOrSet(version.environments, environment, () => new Counts()).count(fate)
  }
  return { type: type.name, id, versions: sorted(versions) }
}

function sorted(versions: ReadonlyMap<string | null, Version>): VersionList['versions'] {
  return [...versions]
    .sort(([, one], [, other]) => other.all.clusters - one.all.clusters)
    .map(([version, { all, overridden, environments }]) => ({
      version,
      overridden,
      ...all.plain(),
      environments: Object.fromEntries(
        [...environments].sort().map(([name, counts]) => [name, counts.plain()] as const),
      ),
    }))
}

/** Undefined for a cluster that is not to have the document. */
function versionFor(
  types: Types,
  view: View,
  { name, delivery }: DeliveredType,
  { id: clusterId }: Entry,
  id: string,
): { readonly version: string | null; readonly isOverridden: boolean } | undefined {
  const served = servedTo(types, view, clusterId)
  const cluster = served.get(types.cluster.type.name, clusterId)
  const reference = cluster && findReference(cluster.document, delivery, id)
  const definition = reference && served.get(name, id)
  if (!definition || !isEnabled(delivery, reference)) return undefined
  return versionOf(delivery, definition.document, reference)
}

function versionOf(delivery: Delivery, definition: Document, reference: Reference) {
  const read = readerOf(delivery, definition, reference)
  const field = delivery.versionField?.(read)
  const value = field === undefined ? undefined : read(field)
  const isOverridden = field !== undefined && holderOf(delivery, definition, reference, field) === reference
  return { version: value === undefined ? null : String(value), isOverridden }
}

interface Fate {
  readonly isApplied: boolean
  readonly isHealthy: boolean
  readonly isFailed: boolean
}

/** A component that is reported as ready with its present digest is applied, whatever the rest of its endpoint is. */
function fateOf(situation: Situation, delivery: Delivery, id: string): Fate {
  const desired = situation.desired.find(({ endpoint }) => endpoint === delivery.endpoint)
  if (!desired) return { isApplied: false, isHealthy: false, isFailed: false }
  const isWhole = hasApplied(deliveryOf(situation, desired))
  const input = desired.components.find((each) => each.id === id)
  if (!input) {
    const { contact } = situation
    const isHeard = contact === 'current' || contact === 'late'
    return { isApplied: isWhole, isHealthy: isWhole && isHeard, isFailed: false }
  }
  const isReady = situation.evidence.report?.ready.sinceOf(id, input.mark) !== undefined
  const health = healthOf(situation, desired, input)
  return { isApplied: isWhole || isReady, isHealthy: health === 'healthy', isFailed: health === 'failed' }
}

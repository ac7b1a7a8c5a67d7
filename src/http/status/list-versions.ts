// Which versions of a document clusters are to have, and how each fares.
import type { VersionCounts, VersionList } from '../../api/versions-schema.ts'
import { getOrSet } from '../../base/get-or-set.ts'
import type { Steps } from '../../base/steps.ts'
import { servedVersion } from '../../domain/delivery/served-version.ts'
import type { View } from '../../domain/documents/view.ts'
import type { DeliveredType, Types } from '../../domain/types/resource-type.ts'
import type { Fleet } from '../../engine/fleet/fleet.ts'
import { type Fate, fateOf } from './fate-of-input.ts'
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
    const found = servedVersion(types, view, type, cluster.id, id)
    if (!found?.isEnabled) continue
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

// Which versions of a document clusters are to have, and have, on the wire.
import { ref } from './component-ref.ts'
import { COUNT, described, object } from './schema-parts.ts'

/** How many clusters are to have a version, and how it fares there. */
export interface VersionCounts {
  readonly clusters: number
  readonly applied: number
  readonly healthy: number
  readonly failed: number
}

export interface VersionStatus extends VersionCounts {
  /** Null where the field has no value. */
  readonly version: string | null
  /** How many have it by an override of their own. */
  readonly overridden: number
  readonly environments: Readonly<Record<string, VersionCounts>>
}

export interface VersionList {
  readonly type: string
  readonly id: string
  /** Those of most clusters first. */
  readonly versions: readonly VersionStatus[]
}

const COUNTS = {
  clusters: described(COUNT, 'Clusters that are to have it; those that have it switched off do not count.'),
  applied: described(COUNT, 'Those that report to have applied it as it is now.'),
  healthy: described(
    COUNT,
    'Those where it is healthy; of a type that is not reported on one by one, applied.',
  ),
  failed: described(COUNT, 'Those where it failed.'),
}

export const VERSIONS_SCHEMAS = {
  version_counts: object(COUNTS),
  version_list: object({
    type: { type: 'string' },
    id: { type: 'string' },
    versions: {
      type: 'array',
      items: object({
        version: { type: ['string', 'null'] },
        overridden: described(COUNT, 'Clusters that have it by an override of their own.'),
        ...COUNTS,
        environments: { type: 'object', additionalProperties: ref('version_counts') },
      }),
    },
  }),
}

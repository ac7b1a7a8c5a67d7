// Which versions of a document clusters are to have, and have, on the wire.

import type { Json } from '../base/json.ts'
import { CONTACTS, type Contact } from '../domain/status/status-words.ts'
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

/** A cluster that is assigned a document, and how it has it. */
export interface AssignedCluster {
  readonly cluster: string
  readonly environment: string | null
  readonly contact: Contact
  readonly enabled: boolean
  /** Null where the field has no value, and of types without versions. */
  readonly version: string | null
  /** Whether the version is an override of the cluster's own. */
  readonly overridden: boolean
  /** The fields that the cluster sets itself. */
  readonly overrides: Readonly<Record<string, Json>>
  /** How many values the cluster has for it. */
  readonly patches: number
  readonly applied: boolean
  readonly healthy: boolean
  readonly failed: boolean
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
  assigned_cluster: object({
    cluster: { type: 'string' },
    environment: { type: ['string', 'null'] },
    contact: described(
      { type: 'string', enum: CONTACTS },
      'Whether it speaks: evidence of a silent one is old.',
    ),
    enabled: described({ type: 'boolean' }, 'Whether the cluster has it switched on.'),
    version: described({ type: ['string', 'null'] }, 'The inputs that the cluster is served now.'),
    overridden: described({ type: 'boolean' }, 'Whether the version is an override of its own.'),
    overrides: described(
      { type: 'object', additionalProperties: true },
      'The fields that the cluster sets itself.',
    ),
    patches: described(COUNT, 'How many values the cluster has for it.'),
    applied: described({ type: 'boolean' }, 'Whether it reports to have applied it as it is now.'),
    healthy: described({ type: 'boolean' }, 'Whether it is healthy there; without own reports, applied.'),
    failed: described({ type: 'boolean' }, 'Whether it failed there.'),
  }),
}

// The status of clusters on the wire: its types, and their schemas for the description.
import type { StatusCounts } from '../domain/status/status-tally.ts'
import {
  COLUMNS,
  CONTACTS,
  type Contact,
  DELIVERIES,
  type Delivered,
  HEALTHS,
  type Health,
} from '../domain/status/status-words.ts'
import { ref } from './component-ref.ts'
import {
  CLUSTER,
  COUNT,
  described,
  MAYBE_TIME,
  maybe,
  object,
  REVISION,
  type Schema,
  TEXT,
  TIME,
  word,
} from './schema-parts.ts'

/** Times are RFC 3339, UTC. */
export interface ServedStatus {
  /** Null of an answer without inputs. */
  readonly digest: string | null
  /** The revision of the last answer. */
  readonly revision: number
  readonly at: string
  /** When answers of this digest began. */
  readonly since: string
}

export interface AppliedStatus {
  /** Null when the cluster reported that it has nothing of this type. */
  readonly digest: string | null
  /** The newest revision that was served with this digest; null when that is not known. */
  readonly revision: number | null
  /** When it was first reported. */
  readonly at: string
}

export interface EndpointStatus {
  readonly delivery: Delivered
  /** The digest of what the cluster gets now; null without inputs. */
  readonly desired: string | null
  readonly inputs: number
  readonly served: ServedStatus | null
  readonly applied: AppliedStatus | null
  /** Of the event that says why the answer is rejected. */
  readonly reason: string | null
  readonly message: string | null
}

export interface ComponentStatus {
  readonly health: Health
  /** Of the input that the health is about. */
  readonly digest: string
  readonly since: string | null
  /** Where it is known from. */
  readonly source: 'ack' | 'event' | 'poll' | null
  readonly reason: string | null
  readonly message: string | null
}

interface TransitionStatus {
  readonly time: string
  readonly kind: (typeof COLUMNS)[number]
  readonly from: string
  readonly to: string
}

export interface ClusterStatus {
  readonly cluster: string
  readonly environment: string | null
  readonly dns: string
  readonly operator_version: string | null
  readonly contact: {
    readonly state: Contact
    readonly since: string | null
    readonly last_seen: string | null
    readonly expected_interval_s: number
    readonly interval_source: 'reported' | 'learned' | 'default'
    /** Why the last request was refused. */
    readonly reason: string | null
  }
  /** That of the worst endpoint. */
  readonly delivery: Delivered
  /** That of the worst component. */
  readonly health: Health
  readonly endpoints: Readonly<Record<string, EndpointStatus>>
  readonly components: Readonly<Record<string, ComponentStatus>>
  /** Newest first. */
  readonly transitions: readonly TransitionStatus[]
}

export interface StatusLine {
  readonly cluster: string
  readonly environment: string | null
  readonly contact: Contact
  readonly delivery: Delivered
  readonly health: Health
  readonly last_seen: string | null
  readonly operator_version: string | null
}

/** The clusters of an environment with one value of a label; empty texts are a missing one. */
export interface StatusGroup {
  readonly environment: string
  readonly value: string
  readonly counts: StatusCounts
}

export interface FleetStatus {
  readonly total: number
  readonly at: string
  readonly counts: StatusCounts
  readonly environments: Readonly<Record<string, StatusCounts>>
  /** Where a label was named to split the counts by: the largest 200. */
  readonly groups?: readonly StatusGroup[]
  readonly operator_versions: Readonly<Record<string, number>>
  readonly clusters: readonly StatusLine[]
}

const DIGEST = { type: 'string', pattern: '^[0-9a-f]{16}$', example: '2c1f0e9d84b3a657' }
const MAYBE_DIGEST = { ...DIGEST, type: ['string', 'null'] }
const ENVIRONMENT = { ...TEXT, example: 'prod' }
const OPERATOR_VERSION = { ...TEXT, example: '0.58.1' }

function countsOf(words: readonly string[]): Schema {
  return object(Object.fromEntries(words.map((each) => [each, COUNT])))
}

const NUMBER_BY_NAME = { type: 'object', additionalProperties: COUNT }

export const STATUS_SCHEMAS = {
  endpoint_status: object({
    delivery: word(DELIVERIES),
    desired: { ...MAYBE_DIGEST, description: 'Digest of what the cluster gets now; null without inputs.' },
    inputs: COUNT,
    served: maybe(object({ digest: MAYBE_DIGEST, revision: REVISION, at: TIME, since: TIME })),
    applied: maybe(
      object({ digest: MAYBE_DIGEST, revision: { ...REVISION, type: ['integer', 'null'] }, at: TIME }),
    ),
    reason: TEXT,
    message: TEXT,
  }),
  component_status: object({
    health: word(HEALTHS),
    digest: DIGEST,
    since: MAYBE_TIME,
    source: { type: ['string', 'null'], enum: ['ack', 'event', 'poll', null] },
    reason: TEXT,
    message: TEXT,
  }),
  status_of_cluster: object({
    cluster: CLUSTER,
    environment: ENVIRONMENT,
    dns: { type: 'string', example: 'prod-eu-01.k8s.example.com' },
    operator_version: OPERATOR_VERSION,
    contact: object({
      state: word(CONTACTS),
      since: MAYBE_TIME,
      last_seen: MAYBE_TIME,
      expected_interval_s: { type: 'number' },
      interval_source: word(['reported', 'learned', 'default']),
      reason: { ...TEXT, example: '401 unauthorized' },
    }),
    delivery: word(DELIVERIES),
    health: word(HEALTHS),
    endpoints: { type: 'object', additionalProperties: ref('endpoint_status') },
    components: { type: 'object', additionalProperties: ref('component_status') },
    transitions: {
      type: 'array',
      items: object({
        time: TIME,
        kind: word(COLUMNS),
        from: { type: 'string', example: 'current' },
        to: { type: 'string', example: 'offline' },
      }),
    },
  }),
  status_counts: object({
    contact: countsOf(CONTACTS),
    delivery: countsOf(DELIVERIES),
    health: countsOf(HEALTHS),
    past: described(
      countsOf(DELIVERIES),
      'The part of delivery that belongs to silent clusters: their state is as old as their last sign of life.',
    ),
  }),
  status_line: object({
    cluster: CLUSTER,
    environment: ENVIRONMENT,
    contact: word(CONTACTS),
    delivery: word(DELIVERIES),
    health: word(HEALTHS),
    last_seen: MAYBE_TIME,
    operator_version: OPERATOR_VERSION,
  }),
  status_group: object({ environment: TEXT, value: TEXT, counts: ref('status_counts') }),
  fleet_status: {
    type: 'object',
    required: ['total', 'at', 'counts', 'environments', 'operator_versions', 'clusters'],
    properties: {
      total: COUNT,
      at: TIME,
      counts: ref('status_counts'),
      environments: { type: 'object', additionalProperties: ref('status_counts') },
      groups: described(
        { type: 'array', items: ref('status_group') },
        'With by: the counts of each environment by the value of that label, the largest 200 groups. Empty texts are a missing one.',
      ),
      operator_versions: NUMBER_BY_NAME,
      clusters: { type: 'array', items: ref('status_line') },
    },
  },
}

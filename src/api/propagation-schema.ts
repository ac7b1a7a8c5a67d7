// How far a revision has come, on the wire.
import { CONTACTS, DELIVERIES, HEALTHS, type StatusRow } from '../domain/status/status-words.ts'
import { CLUSTER, COUNT, described, object, REVISION, TIME, word } from './schema-parts.ts'

/** Seconds since the revision was made; null until that share of all affected clusters has got there. */
export interface PropagationTimes {
  readonly p50_s: number | null
  readonly p95_s: number | null
  readonly p100_s: number | null
}

export interface PendingCluster extends StatusRow {
  readonly cluster: string
}

export interface Propagation {
  readonly revision: number
  readonly time: string
  readonly affected: number
  readonly served: number
  readonly applied: number
  readonly healthy: number
  readonly failed: number
  readonly offline: number
  readonly unknown: number
  readonly times: { readonly served: PropagationTimes; readonly applied: PropagationTimes }
  readonly forecast: { readonly served_s: number | null }
  /** The first that have not applied it. */
  readonly pending: readonly PendingCluster[]
}

const SECONDS = { type: ['number', 'null'], minimum: 0 }
const TIMES = object({ p50_s: SECONDS, p95_s: SECONDS, p100_s: SECONDS })

export const PROPAGATION_SCHEMAS = {
  propagation: object({
    revision: REVISION,
    time: TIME,
    affected: described(COUNT, 'Live clusters whose inputs the revision changed.'),
    served: described(
      COUNT,
      'Those that were served this revision or a later one, at every endpoint of theirs that it changed.',
    ),
    applied: described(COUNT, 'Those of them that report to have applied it, or what they are to have now.'),
    healthy: described(
      COUNT,
      'Those of them whose changed components are all healthy; one that was removed counts as healthy.',
    ),
    failed: described(
      COUNT,
      'Those that were served it, and where a changed component failed or the answer was rejected.',
    ),
    offline: described(
      COUNT,
      'Those that were not served it, and are offline, refused, unobserved or never asked.',
    ),
    unknown: described(
      COUNT,
      'The rest: affected without healthy, failed and offline. It is under way there, or nothing is known.',
    ),
    times: described(
      object({ served: TIMES, applied: TIMES }),
      'Seconds from the revision until so many of all affected clusters had it; null until they have. Where a later revision changed the same endpoint, the time is until that was there.',
    ),
    forecast: object({
      served_s: described(
        SECONDS,
        'Seconds until the slowest cluster that is not offline is expected to have asked for it; null when none is left.',
      ),
    }),
    pending: {
      type: 'array',
      description: 'The first clusters that have not applied it.',
      items: object({
        cluster: CLUSTER,
        contact: word(CONTACTS),
        delivery: word(DELIVERIES),
        health: word(HEALTHS),
      }),
    },
  }),
}

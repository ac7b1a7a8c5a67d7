// How far clusters have come towards a goal: those of a selector, or those that a revision changed something for.

import type { Attention } from '../../api/attention-schema.ts'
import { MAX_IMPACT_DETAILS, STATUS_PAGES } from '../../api/limits.ts'
import type { Propagation } from '../../api/propagation-schema.ts'
import type { StatusLine } from '../../api/status-schema.ts'
import { DELIVERIES, type StatusRow } from '../../domain/status/status-words.ts'
import { unmet } from '../failure.ts'
import type { Goal } from '../input/goals.ts'
import { whyOf } from '../output/cluster-status-report.ts'
import type { Session } from '../session.ts'
import { getNew, readStatus } from './read-status.ts'

/** How far clusters have come. */
export interface Standing {
  readonly total: number
  readonly reached: number
  readonly failed: number
  /** Those that are not there, and of which nothing is heard. */
  readonly offline: number
  /** The first that are not there, as far as they are known. */
  readonly pending: readonly PendingCluster[]
}

export interface PendingCluster extends StatusRow {
  readonly cluster: string
}

/** Clusters whose standing is asked for again and again. */
export interface Group {
  /** What they are, in words: `revision 12`. */
  readonly name: string
  read(goal: Goal): Promise<Standing>
  /** Why those have failed that have: a line for each. */
  explainFailures(): Promise<string[]>
}

interface OfRevision {
  readonly isNew?: boolean
  readonly selector?: string | undefined
}

export function revisionGroup(
  session: Session,
  revision: number,
  { isNew = false, selector }: OfRevision = {},
): Group {
  const path = `/revisions/${revision}/propagation`
  return {
    name: selector === undefined ? `revision ${revision}` : `revision ${revision} (${selector})`,
    async read(goal) {
      // What was just written may not be known yet to the process that responds.
      const { body } = await getNew(session, path, { selector, ...(isNew && { min_revision: revision }) })
      const { affected, failed, pending, ...rest }: Propagation = body
      const offline = Math.max(rest.offline, pending.filter(isAbsent).length)
      return {
        total: affected,
        reached: rest[goal],
        failed: goal === 'served' ? 0 : failed,
        offline,
        pending,
      }
    },
    async explainFailures() {
      const query = { limit: 1, impact_limit: MAX_IMPACT_DETAILS }
      const { body } = await session.api.get(`/revisions/${revision}`, { query })
      const details: readonly { readonly cluster: string }[] = body.impact?.details ?? []
      return failuresOf(session, new Set(details.map(({ cluster }) => cluster)))
    },
  }
}

export function selectedGroup(session: Session, selector: string | undefined): Group {
  let failed: readonly string[] = []
  return {
    name: selector === undefined ? 'all clusters' : `clusters (${selector})`,
    async read(goal) {
      const { clusters } = await readStatus(session, { query: { selector } })
      if (clusters.length === 0) throw unmet('there is no such cluster: nothing to wait for')
      const pending = clusters.filter((line) => !isThere(goal, line))
      failed = pending.filter((line) => hasFailed(goal, line)).map(({ cluster }) => cluster)
      return {
        total: clusters.length,
        reached: clusters.length - pending.length,
        failed: failed.length,
        offline: pending.filter(isAbsent).length,
        pending,
      }
    },
    explainFailures: () => failuresOf(session, new Set(failed)),
  }
}

function isThere(goal: Goal, { delivery, health }: StatusLine): boolean {
  if (goal === 'served') return DELIVERIES.indexOf(delivery) >= DELIVERIES.indexOf('served')
  return delivery === 'applied' && (goal === 'applied' || health === 'healthy')
}

/** An answer that the cluster rejected ends every wait, a component that failed the one for health. */
function hasFailed(goal: Goal, { delivery, health }: StatusLine): boolean {
  return delivery === 'rejected' || (goal === 'healthy' && health === 'failed')
}

/** Whether nothing is heard of a cluster. */
export function isAbsent({ contact }: Pick<StatusRow, 'contact'>): boolean {
  return contact !== 'current' && contact !== 'late'
}

async function failuresOf(session: Session, ids: ReadonlySet<string>): Promise<string[]> {
  const { body } = await getNew(session, '/status/attention', { limit: STATUS_PAGES.max })
  const { clusters }: Attention = body
  return clusters
    .filter(({ cluster, problem }) => ids.has(cluster) && (problem === 'failed' || problem === 'rejected'))
    .map(
      (each) =>
        `${each.cluster}: ${[each.component ?? each.endpoint, whyOf(each)].filter(Boolean).join(' ')}`,
    )
}

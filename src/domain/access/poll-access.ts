// Who may poll for whom.
import { forbidden, type Problem } from '../../base/problem.ts'
import { findVersion } from '../documents/find-document.ts'
import type { Entry, PolledView } from '../documents/view.ts'
import type { Types } from '../types/resource-type.ts'
import type { Grant } from './grant.ts'
import { leastRoleWith, may } from './permissions.ts'

/** Why a caller may poll for no cluster at all; undefined where it may. */
export function refusePolls(grant: Grant): Problem | undefined {
  if (may(grant, 'poll')) return undefined
  return forbidden('copies_only', `this token copies the clusters (${grant.selector}), and polls for none`)
}

/** Why a caller may not poll the list of all clusters; undefined where it may. */
export function refuseClusterList(grant: Grant): Problem | undefined {
  const refused = refusePolls(grant)
  if (refused || may(grant, 'list_clusters')) return refused
  return forbidden(
    'needs_poller',
    `this token polls for one cluster: the list of all needs the role ${leastRoleWith('list_clusters')}`,
  )
}

/** Why a caller may not poll for a DNS name, where `found` is its cluster or undefined; undefined where it may. */
export function refusePollFor(
  types: Types,
  view: PolledView,
  grant: Grant,
  dns: string,
  found: Entry | undefined,
): Problem | undefined {
  if (may(grant, 'poll_any') || isOwn(view, grant, dns, found)) return undefined
  const { cluster = '' } = grant
  const { name } = types.cluster.type
  const own = findVersion(view, name, cluster)
  const why = own
    ? `whose DNS name is "${own.document[types.cluster.dns]}", not "${dns}"`
    : 'which is no more'
  return forbidden('other_cluster', `this token polls for cluster "${cluster}" alone, ${why}`)
}

/**
 * Whether the cluster is the caller's own. Several deleted clusters may have had one name: each may poll its empty
 * list.
 */
function isOwn(view: PolledView, { cluster }: Grant, dns: string, found: Entry | undefined): boolean {
  if (found === undefined || found.id === cluster) return found !== undefined
  return found.deleted && view.tombstonesWithDns(dns).some(({ id }) => id === cluster)
}

// The columns of the fleet.
import type { StatusLine } from '../../../src/api/status-schema.ts'
import type { FleetFilter } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { ClusterLink } from '../../parts/cluster-link.tsx'
import type { PagedColumn, Placed } from '../../parts/paged-table.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'

export const SORTABLE = ['cluster', 'contact', 'delivery', 'health', 'last_seen']
export const WIDE_ONLY = ['environment', 'delivery', 'operator', 'last_seen']
export const WIDTHS = {
  environment: '104px',
  contact: '112px',
  delivery: '112px',
  health: '120px',
  last_seen: '128px',
  operator: '104px',
}

export function columnsFor(filter: FleetFilter): PagedColumn<Placed<StatusLine>>[] {
  return [
    {
      id: 'cluster',
      header: 'Cluster',
      cell: ({ row }) => (
        <ClusterLink cluster={row.original.cluster} search={{ ...filter, at: row.original.index }} />
      ),
    },
    { id: 'environment', header: 'Environment', cell: ({ row }) => row.original.environment },
    {
      id: 'contact',
      header: 'Contact',
      cell: ({ row }) => <StateBadge state={row.original.contact} isQuiet />,
    },
    {
      id: 'delivery',
      header: 'Delivery',
      cell: ({ row }) => <StateBadge state={row.original.delivery} isQuiet />,
    },
    {
      id: 'health',
      header: 'Health',
      cell: ({ row }) => <StateBadge state={row.original.health} isQuiet />,
    },
    {
      id: 'last_seen',
      header: 'Last seen',
      cell: ({ row }) => <Age at={row.original.last_seen} never="never" />,
    },
    { id: 'operator', header: 'Operator', cell: ({ row }) => row.original.operator_version ?? 'unknown' },
  ]
}

// The columns of the fleet.
import { Group } from '@mantine/core'
import type { StatusLine } from '../../../src/api/status-schema.ts'
import { isHeard } from '../../../src/domain/status/status-words.ts'
import type { FleetFilter } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { ClusterLink } from '../../parts/cluster-link.tsx'
import type { PagedColumn, Placed } from '../../parts/paged-table.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { FavouriteStar } from './favourite-star.tsx'

export const SORTABLE = ['cluster', 'contact', 'delivery', 'health', 'last_seen']
export const CHOOSABLE = {
  environment: 'Environment',
  contact: 'Contact',
  delivery: 'Delivery',
  health: 'Health',
  last_seen: 'Last seen',
  operator: 'Operator',
}
export const WIDE_ONLY = ['environment', 'delivery', 'operator', 'last_seen']
export const WIDTHS = {
  environment: '112px',
  contact: '104px',
  delivery: '100px',
  health: '112px',
  last_seen: '112px',
  operator: '88px',
}

export function columnsFor(
  filter: FleetFilter,
  hidden: readonly string[],
): PagedColumn<Placed<StatusLine>>[] {
  return allColumns(filter).filter(({ id }) => !hidden.includes(String(id)) || !(String(id) in CHOOSABLE))
}

function allColumns(filter: FleetFilter): PagedColumn<Placed<StatusLine>>[] {
  return [
    {
      id: 'cluster',
      header: 'Cluster',
      cell: ({ row }) => (
        <Group gap={4} wrap="nowrap">
          <FavouriteStar cluster={row.original.cluster} />
          <ClusterLink cluster={row.original.cluster} search={{ ...filter, at: row.original.index }} />
        </Group>
      ),
    },
    { id: 'environment', header: CHOOSABLE.environment, cell: ({ row }) => row.original.environment },
    {
      id: 'contact',
      header: CHOOSABLE.contact,
      cell: ({ row }) => <StateBadge state={row.original.contact} isQuiet />,
    },
    {
      id: 'delivery',
      header: CHOOSABLE.delivery,
      cell: ({ row: { original } }) => (
        <StateBadge state={original.delivery} isQuiet isPast={!isHeard(original.contact)} />
      ),
    },
    {
      id: 'health',
      header: CHOOSABLE.health,
      cell: ({ row }) => <StateBadge state={row.original.health} isQuiet />,
    },
    {
      id: 'last_seen',
      header: CHOOSABLE.last_seen,
      cell: ({ row }) => <Age at={row.original.last_seen} never="never" />,
    },
    {
      id: 'operator',
      header: CHOOSABLE.operator,
      cell: ({ row }) => row.original.operator_version ?? 'unknown',
    },
  ]
}

// The clusters that are assigned a definition: which version, what they override, and how it fares.
import { useQuery } from '@tanstack/react-query'
import type { AssignedCluster } from '../../../src/api/versions-schema.ts'
import { isHeard } from '../../../src/domain/status/status-words.ts'
import type { Reply } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { ClusterLink } from '../../parts/cluster-link.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Empty, Panel } from '../../parts/page.tsx'
import { type PagedColumn, PagedTable, type Placed } from '../../parts/paged-table.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import type { State } from '../../parts/state-words.ts'

const PAGE_SIZE = 100
type Row = Placed<AssignedCluster>

const COLUMNS: PagedColumn<Row>[] = [
  { id: 'cluster', header: 'Cluster', cell: ({ row }) => <ClusterLink cluster={row.original.cluster} /> },
  { id: 'environment', header: 'Environment', cell: ({ row }) => row.original.environment },
  {
    id: 'version',
    header: 'Version',
    cell: ({ row: { original } }) => (
      <span>
        <code>{original.enabled ? (original.version ?? 'none') : 'switched off'}</code>
        {original.overridden && ' by override'}
      </span>
    ),
  },
  {
    id: 'own',
    header: 'Own values',
    cell: ({ row: { original } }) => {
      const fields = Object.keys(original.overrides)
      const values =
        original.patches > 0 ? [`${original.patches} ${original.patches === 1 ? 'value' : 'values'}`] : []
      return [...fields, ...values].join(', ')
    },
  },
  { id: 'state', header: 'State', cell: ({ row }) => <StateBadge state={stateOf(row.original)} isQuiet /> },
]

/** A silent cluster is nothing better than that. */
function stateOf({ contact, failed, healthy, applied }: AssignedCluster): State {
  if (failed) return 'failed'
  if (!isHeard(contact)) return contact
  if (healthy) return 'healthy'
  return applied ? 'applied' : 'unknown'
}

export function AssignedPanel({ type, id }: { readonly type: string; readonly id: string }) {
  const first = useQuery(queries.assigned(type, id, { offset: 0, limit: PAGE_SIZE }))
  return (
    <Panel title="Clusters" aside={first.data && <span>{first.data.total ?? first.data.body.length}</span>}>
      <Loaded query={first} lines={6}>
        {({ body, total = body.length }) =>
          total === 0 ? (
            <Empty title="No cluster is assigned it" />
          ) : (
            <PagedTable<Reply<AssignedCluster[]>, AssignedCluster>
              label="Clusters that are assigned it"
              total={total}
              pageSize={PAGE_SIZE}
              pageAt={(offset) => queries.assigned(type, id, { offset, limit: PAGE_SIZE }) as never}
              rowsOf={(page) => page.body as Row[]}
              columns={COLUMNS}
              widths={{ environment: '112px', version: 'clamp(96px, 20vw, 180px)', state: '112px' }}
              wideOnly={['environment', 'own']}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

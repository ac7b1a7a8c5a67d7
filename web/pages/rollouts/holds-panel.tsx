// Clusters that keep what they are served: nothing that is written or rolled out reaches them.
import { Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { queries, STATUS_REFRESH_MS } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { ClusterLink } from '../../parts/cluster-link.tsx'
import { Facts } from '../../parts/facts.tsx'
import { AsOf, Loaded } from '../../parts/loaded.tsx'
import { Empty, Panel } from '../../parts/page.tsx'

/** Those that end first. */
const SHOWN = 100

export function HoldsPanel() {
  const query = useQuery(queries.holds(SHOWN))
  return (
    <Panel title="Holds" aside={<AsOf query={query} staleAfterMs={4 * STATUS_REFRESH_MS} />}>
      <Loaded query={query} lines={2}>
        {({ body, total = body.length }) =>
          body.length === 0 ? (
            <Empty title="No cluster is held">
              A held cluster keeps what it is served. Its own page holds one; the fleet holds all that a
              filter leaves.
            </Empty>
          ) : (
            <>
              <Facts
                label="Holds"
                head={['Cluster', 'Since', 'Until', 'Who', 'Why']}
                rows={body.map(({ cluster, since, until, held_by, reason }) => ({
                  id: cluster,
                  cells: [
                    <ClusterLink key="cluster" cluster={cluster} />,
                    <Age key="since" at={since} />,
                    <Age key="until" at={until} never="it is released" />,
                    held_by,
                    reason,
                  ],
                }))}
              />
              {total > body.length && (
                <Text size="xs" c="dimmed" p="sm">
                  and {(total - body.length).toLocaleString('en')} more
                </Text>
              )}
            </>
          )
        }
      </Loaded>
    </Panel>
  )
}

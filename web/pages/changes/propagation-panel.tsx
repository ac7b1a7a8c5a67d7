// How far a change has come: how many of the clusters that it changed something for have it, over time, and who has not.
import { Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { Propagation } from '../../../src/api/propagation-schema.ts'
import { howLong } from '../../../src/base/relative-time.ts'
import { queries, STATUS_REFRESH_MS } from '../../api/queries.ts'
import { ClusterLink } from '../../parts/cluster-link.tsx'
import { Facts } from '../../parts/facts.tsx'
import { AsOf, Loaded } from '../../parts/loaded.tsx'
import { Empty, Panel } from '../../parts/page.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { PropagationCurve } from './propagation-curve.tsx'

const SHOWN = 20

export function PropagationPanel({ revision }: { readonly revision: number }) {
  const query = useQuery(queries.propagation(revision))
  return (
    <Panel title="How far it has come" aside={<AsOf query={query} staleAfterMs={4 * STATUS_REFRESH_MS} />}>
      <Loaded query={query} lines={6}>
        {(found) =>
          found.affected === 0 ? (
            <Empty title="No cluster that is left was changed by it" />
          ) : (
            <Stack gap="md" p="sm">
              <Numbers propagation={found} />
              <PropagationCurve propagation={found} />
              <Pending propagation={found} />
            </Stack>
          )
        }
      </Loaded>
    </Panel>
  )
}

function Numbers({ propagation }: { readonly propagation: Propagation }) {
  const { affected, served, applied, healthy, failed, offline, unknown, times, forecast } = propagation
  const share = (count: number): string => `${count.toLocaleString('en')} of ${affected.toLocaleString('en')}`
  const after = (seconds: number | null): string => (seconds === null ? 'not yet' : howLong(seconds * 1000))
  const timesOf = ({ p50_s, p95_s, p100_s }: Propagation['times']['served']) =>
    [p50_s, p95_s, p100_s].map(after)
  return (
    <>
      <Facts
        label="Propagation"
        head={['', 'Clusters', 'half after', '95 % after', 'all after']}
        rows={[
          { id: 'served', cells: ['served', share(served), ...timesOf(times.served)] },
          { id: 'applied', cells: ['applied', share(applied), ...timesOf(times.applied)] },
          { id: 'healthy', cells: ['healthy', share(healthy), '', '', ''] },
        ]}
      />
      <Group gap="lg" fz="sm">
        <span>{failed} failed</span>
        <span>{offline} offline</span>
        <span>{unknown} under way or unknown</span>
        {forecast.served_s !== null && (
          <span>the slowest is expected to ask within {howLong(forecast.served_s * 1000)}</span>
        )}
      </Group>
    </>
  )
}

function Pending({ propagation: { pending, affected, applied } }: { readonly propagation: Propagation }) {
  if (pending.length === 0) return null
  return (
    <Stack gap={4}>
      <Text size="sm" fw={600}>
        {affected - applied} have not applied it
        {affected - applied > SHOWN && `; the first ${SHOWN} of them`}
      </Text>
      <Facts
        label="Clusters that have not applied it"
        head={['Cluster', 'Contact', 'Delivery', 'Health']}
        rows={pending.slice(0, SHOWN).map(({ cluster, contact, delivery, health }) => ({
          id: cluster,
          cells: [
            <ClusterLink key="cluster" cluster={cluster} />,
            <StateBadge key="contact" state={contact} />,
            <StateBadge key="delivery" state={delivery} />,
            <StateBadge key="health" state={health} />,
          ],
        }))}
      />
    </Stack>
  )
}

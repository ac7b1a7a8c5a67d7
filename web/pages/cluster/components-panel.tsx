// How each component of the cluster fares, the worst first, with where that is known from.

import type { ClusterStatus, ComponentStatus } from '../../../src/api/status-schema.ts'
import { HEALTHS } from '../../../src/domain/status/status-words.ts'
import { Age } from '../../parts/age.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Empty, Panel } from '../../parts/page.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'

const SOURCES: Readonly<Record<NonNullable<ComponentStatus['source']>, string>> = {
  ack: 'its report',
  event: 'an event of Flux',
  poll: 'its poll',
}

export function ComponentsPanel({ status: { components } }: { readonly status: ClusterStatus }) {
  const rows = Object.entries(components).sort(
    ([, one], [, other]) => HEALTHS.indexOf(one.health) - HEALTHS.indexOf(other.health),
  )
  return (
    <Panel title="Components">
      {rows.length === 0 ? (
        <Empty title="This cluster has no components">
          <code>flux-resourceset-cli assign --help</code> says how it gets some.
        </Empty>
      ) : (
        <Facts
          label="Components"
          head={['Component', 'Health', 'Since', 'Known from', 'Reason']}
          rows={rows.map(([id, { health, since, source, reason, message }]) => ({
            id,
            cells: [
              id,
              <StateBadge key="health" state={health} />,
              <Age key="since" at={since} />,
              source === null ? 'nothing' : SOURCES[source],
              [reason, message].filter(Boolean).join(': '),
            ],
          }))}
        />
      )}
    </Panel>
  )
}

// When the states of the cluster changed, newest first.
import type { ClusterStatus } from '../../../src/api/status-schema.ts'
import { Age } from '../../parts/age.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Empty, Panel } from '../../parts/page.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import type { State } from '../../parts/state-words.ts'

const SHOWN = 12

export function TransitionsPanel({ status: { transitions } }: { readonly status: ClusterStatus }) {
  return (
    <Panel title="Transitions">
      {transitions.length === 0 ? (
        <Empty title="Its states have not changed since they are kept" />
      ) : (
        <Facts
          label="Transitions"
          head={['When', 'What', 'From', 'To']}
          rows={transitions.slice(0, SHOWN).map(({ time, kind, from, to }) => ({
            id: `${time} ${kind} ${to}`,
            cells: [
              <Age key="when" at={time} />,
              kind,
              <StateBadge key="from" state={from as State} isQuiet />,
              <StateBadge key="to" state={to as State} />,
            ],
          }))}
        />
      )}
    </Panel>
  )
}

// All rollouts, the newest first: what each changes, how far it is, and what it waits for.
import { Button, Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ShownRollout } from '../../../src/api/rollout-schema.ts'
import { ROLLOUT_STATES, type RolloutState } from '../../../src/domain/rollouts/rollout.ts'
import { FREEZES } from '../../api/freeze-queries.ts'
import { queries, STATUS_REFRESH_MS } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Facts } from '../../parts/facts.tsx'
import { AsOf, Loaded } from '../../parts/loaded.tsx'
import { Empty, Page, Panel } from '../../parts/page.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Told } from '../../parts/told.tsx'
import { useHasDocuments, useMay } from '../../session/permissions.ts'
import { FreezesPanel } from './freezes-panel.tsx'
import { HoldsPanel } from './holds-panel.tsx'
import { WaveBar } from './wave-bar.tsx'

const SHOWN = 100
const route = getRouteApi('/rollouts')

export function RolloutsPage() {
  const { state } = route.useSearch()
  const navigate = route.useNavigate()
  const mayWrite = useMay('write')
  const types = useQuery(queries.settings()).data?.types ?? []
  const hasFreezes = useHasDocuments() && types.some(({ name }) => name === FREEZES)
  const query = useQuery(queries.rollouts(state, { offset: 0, limit: SHOWN }))
  return (
    <Page
      title="Rollouts"
      aside={<AsOf query={query} staleAfterMs={4 * STATUS_REFRESH_MS} />}
      actions={
        <>
          <Select
            aria-label="State"
            placeholder="any state"
            data={[...ROLLOUT_STATES]}
            value={state ?? null}
            onChange={(chosen) => void navigate({ search: chosen ? { state: chosen as RolloutState } : {} })}
            clearable
            size="xs"
            w={130}
          />
          <CopyAs call={{ method: 'GET', path: '/rollouts', query: { state } }} cli="rollout list" />
          {mayWrite && (
            <Button renderRoot={(props) => <Link to="/rollouts/new" {...props} />}>Start a rollout</Button>
          )}
        </>
      }
    >
      <Panel title={state ? `In the state ${state}` : 'All'}>
        <Loaded query={query} lines={8}>
          {({ body, total = body.length }) =>
            body.length === 0 ? (
              <Empty title="No rollouts">
                A rollout takes any change through the fleet wave by wave, and stops where clusters fail.
                Start one here, or give any write <code>--rollout default</code>.
              </Empty>
            ) : (
              <>
                <List rollouts={body} />
                {total > body.length && <Empty title={`and ${total - body.length} older ones`} />}
              </>
            )
          }
        </Loaded>
      </Panel>
      {hasFreezes && <FreezesPanel />}
      <HoldsPanel />
    </Page>
  )
}

function List({ rollouts }: { readonly rollouts: readonly ShownRollout[] }) {
  return (
    <Facts
      label="Rollouts"
      head={['Rollout', 'State', 'What', 'Waves', 'Waits for', 'Started']}
      rows={rollouts.map(({ id, state, message, operation, waves, waiting_for, started_by, started_at }) => ({
        id,
        cells: [
          <Link key="id" to="/rollouts/$rollout" params={{ rollout: id }}>
            {id}
          </Link>,
          <StateBadge key="state" state={state} />,
          message ?? operation,
          <WaveBar key="waves" waves={waves} />,
          <Told key="waits" sentence={waiting_for ?? ''} />,
          <span key="started">
            {started_by}, <Age at={started_at} />
          </span>,
        ],
      }))}
    />
  )
}

// The start: who needs somebody, how the fleet is, what runs, what changed last, and which versions are in use.
import { SimpleGrid } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { queries, STATUS_REFRESH_MS } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { AsOf, Loaded } from '../../parts/loaded.tsx'
import { Empty, Page, Panel } from '../../parts/page.tsx'
import { RevisionLink } from '../../parts/revision-link.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { StateBar } from '../../parts/state-bar.tsx'
import { Told } from '../../parts/told.tsx'
import { useHasDocuments } from '../../session/permissions.ts'
import { AttentionPanel } from './attention-panel.tsx'
import { ExpiryPanel } from './expiry-panel.tsx'
import classes from './home-page.module.css'
import { VersionsPanel } from './versions-panel.tsx'

const LATEST = 8

export function HomePage() {
  const hasDocuments = useHasDocuments()
  return (
    <Page
      title="Home"
      actions={<CopyAs call={{ method: 'GET', path: '/status/attention' }} cli="attention" />}
    >
      <div className={classes.columns}>
        <AttentionPanel />
        <div className={classes.side}>
          <FleetPanel />
          <RolloutsPanel />
          <ExpiryPanel />
        </div>
      </div>
      {hasDocuments && (
        <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
          <ChangesPanel />
          <VersionsPanel />
        </SimpleGrid>
      )}
    </Page>
  )
}

function FleetPanel() {
  const query = useQuery(queries.fleet({}, { offset: 0, limit: 1 }))
  return (
    <Panel title="Fleet" aside={<AsOf query={query} staleAfterMs={4 * STATUS_REFRESH_MS} />}>
      <Loaded query={query}>
        {({ total, counts }) =>
          total === 0 ? (
            <Empty title="No clusters yet">
              <code>flux-resourceset-cli cluster create --help</code> says what one needs.
            </Empty>
          ) : (
            (['contact', 'delivery', 'health'] as const).map((column) => (
              <StateBar
                key={column}
                column={column}
                counts={counts[column]}
                {...(column === 'delivery' && { past: counts.past })}
              />
            ))
          )
        }
      </Loaded>
    </Panel>
  )
}

function RolloutsPanel() {
  const query = useQuery(queries.activeRollouts())
  return (
    <Panel title="Rollouts under way" aside={<AsOf query={query} staleAfterMs={4 * STATUS_REFRESH_MS} />}>
      <Loaded query={query} lines={2}>
        {(rollouts) =>
          rollouts.length === 0 ? (
            <Empty title="None">
              Any write with <code>--rollout</code> reaches the fleet wave by wave.
            </Empty>
          ) : (
            <ul className={classes.list}>
              {rollouts.map(({ id, state, message, started_by, started_at, waiting_for }) => (
                <li key={id}>
                  <div className={classes.line}>
                    <Link to="/rollouts/$rollout" params={{ rollout: id }}>
                      {message ?? id}
                    </Link>
                    <StateBadge state={state} />
                  </div>
                  <div className={classes.detail}>
                    <Told sentence={waiting_for ?? id} /> · {started_by}, <Age at={started_at} />
                  </div>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  )
}

function ChangesPanel() {
  const query = useQuery(queries.revisions({}, LATEST))
  return (
    <Panel title="Last changes">
      <Loaded query={query} lines={LATEST}>
        {(revisions) =>
          revisions.length === 0 ? (
            <Empty title="Nothing was changed yet" />
          ) : (
            <ul className={classes.list}>
              {revisions.map(({ revision, operation, message, actor, time, change_count }) => (
                <li key={revision}>
                  <div className={classes.line}>
                    <span className={classes.text}>{message ?? operation}</span>
                    <span className={classes.number}>
                      <RevisionLink revision={revision} />
                    </span>
                  </div>
                  <div className={classes.detail}>
                    {message && `${operation} · `}
                    {change_count} {change_count === 1 ? 'document' : 'documents'} · {actor},{' '}
                    <Age at={time} />
                  </div>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  )
}

// One cluster: whether it speaks, what it was served and has applied, how its components fare, and what changed it.
import { Group, SimpleGrid } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import type { ClusterStatus } from '../../../src/api/status-schema.ts'
import { isHeard } from '../../../src/domain/status/status-words.ts'
import { filterOf, parseFleetSearch } from '../../api/fleet-search.ts'
import { queries, STATUS_REFRESH_MS } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { CopyAs, inShell } from '../../parts/copy-as.tsx'
import { DocumentPanel } from '../../parts/document-panel.tsx'
import { HistoryPanel } from '../../parts/history-panel.tsx'
import { AsOf, Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { useHasDocuments } from '../../session/permissions.ts'
import { ClusterActions } from './cluster-actions.tsx'
import classes from './cluster-page.module.css'
import { ClusterViews } from './cluster-views.tsx'
import { CompareView } from './compare-view.tsx'
import { ComponentsPanel } from './components-panel.tsx'
import { EndpointsPanel } from './endpoints-panel.tsx'
import { FluxUiLink } from './flux-ui-link.tsx'
import { HeldNote } from './hold-panel.tsx'
import { InputsView } from './inputs-view.tsx'
import { Neighbours } from './neighbours.tsx'
import { OwnValuesPanel } from './own-values-panel.tsx'
import { RestoreNotice } from './restore-notice.tsx'
import { SetupView } from './setup-view.tsx'
import { TransitionsPanel } from './transitions-panel.tsx'

const route = getRouteApi('/clusters/$cluster')

export function ClusterPage() {
  const { cluster } = route.useParams()
  const search = route.useSearch()
  const { view = 'status' } = search
  const settings = useQuery(queries.settings())
  const type = settings.data?.types.find((each) => each.cluster)?.name ?? ''
  const status = useQuery({ ...queries.clusterStatus(type, cluster), enabled: type !== '' })
  const hasDocuments = useHasDocuments()
  return (
    <Page
      title={cluster}
      aside={
        <Group gap="sm" fz="sm" c="dimmed">
          {status.data && (
            <span>
              {status.data.environment} · {status.data.dns}
            </span>
          )}
          <AsOf query={status} staleAfterMs={4 * STATUS_REFRESH_MS} />
        </Group>
      }
      actions={
        <>
          {search.at !== undefined && (
            <Neighbours filter={filterOf(parseFleetSearch({ ...search }))} at={search.at} />
          )}
          <CopyAs
            call={{ method: 'GET', path: `/${type}/${encodeURIComponent(cluster)}/status` }}
            cli={`cluster status ${inShell(cluster)}`}
          />
          {hasDocuments && type !== '' && <FluxUiLink type={type} cluster={cluster} />}
          {hasDocuments && type !== '' && <ClusterActions type={type} cluster={cluster} />}
        </>
      }
    >
      {hasDocuments && <ClusterViews />}
      {hasDocuments && view === 'inputs' && <InputsView type={type} cluster={cluster} />}
      {hasDocuments && view === 'values' && (
        <>
          <OwnValuesPanel type={type} cluster={cluster} />
          <DocumentPanel type={type} id={cluster} />
        </>
      )}
      {hasDocuments && view === 'compare' && <CompareView type={type} cluster={cluster} />}
      {hasDocuments && view === 'setup' && <SetupView type={type} cluster={cluster} />}
      {(view === 'status' || !hasDocuments) && (
        <Loaded query={status} lines={12}>
          {(found) => (
            <>
              {hasDocuments && found.contact.state === 'deleted' && (
                <RestoreNotice type={type} cluster={cluster} />
              )}
              <StatusView status={found} />
            </>
          )}
        </Loaded>
      )}
    </Page>
  )
}

function StatusView({ status }: { readonly status: ClusterStatus }) {
  const hasDocuments = useHasDocuments()
  const { data: hold } = useQuery(queries.hold(status.cluster))
  return (
    <>
      {hold && <HeldNote hold={hold.body} />}
      <Columns status={status} />
      <EndpointsPanel status={status} />
      <ComponentsPanel status={status} />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        <TransitionsPanel status={status} />
        {hasDocuments && <HistoryPanel filter={{ cluster: status.cluster }} />}
      </SimpleGrid>
    </>
  )
}

/** The three words that a cluster comes to, each with what it rests on. */
function Columns({ status }: { readonly status: ClusterStatus }) {
  const { contact, delivery, health, endpoints, components } = status
  const staleAfterMs = contact.expected_interval_s * 1500
  const every = Object.values(endpoints)
  const applied = every.filter((each) => each.delivery === 'applied').length
  const all = Object.values(components)
  const healthy = all.filter((each) => each.health === 'healthy').length
  return (
    <div className={classes.tiles}>
      <section className={classes.tile} aria-label="Contact">
        <h2>Contact</h2>
        <StateBadge state={contact.state} />
        <p>
          heard <Age at={contact.last_seen} staleAfterMs={staleAfterMs} never="never" />, expected every{' '}
          {contact.expected_interval_s} s ({contact.interval_source})
        </p>
        {contact.reason && <p className={classes.bad}>{contact.reason}</p>}
      </section>
      <section className={classes.tile} aria-label="Delivery">
        <h2>Delivery</h2>
        <StateBadge state={delivery} isPast={!isHeard(contact.state)} />
        <p>
          {applied} of {every.length} endpoints applied as they are now
        </p>
      </section>
      <section className={classes.tile} aria-label="Health">
        <h2>Health</h2>
        <StateBadge state={health} />
        <p>
          {healthy} of {all.length} components proven healthy
        </p>
        <p>operator {status.operator_version ?? 'of unknown version'}</p>
      </section>
    </div>
  )
}

// The process behind this page: whether it follows its store, what it counts, and which types it has loaded.
import { Anchor, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { scopeOf } from '../../../src/domain/access/grant.ts'
import { queries, STATUS_REFRESH_MS } from '../../api/queries.ts'
import type { Readiness } from '../../api/readiness.ts'
import { Age } from '../../parts/age.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Facts } from '../../parts/facts.tsx'
import { AsOf, Loaded } from '../../parts/loaded.tsx'
import { Empty, Page, Panel } from '../../parts/page.tsx'
import { useHasDocuments, useMay } from '../../session/permissions.ts'

const MEANINGS: Readonly<Record<Readiness['status'], string>> = {
  ready: 'It follows its store.',
  degraded: 'It cannot follow its store, and serves polls from what it has.',
  unavailable: 'It cannot be used now.',
}

export function SystemPage() {
  const isAdmin = useMay('admin')
  return (
    <Page
      title="System"
      actions={
        <>
          <Group gap="sm" fz="sm">
            <Anchor href="/docs" target="_blank" rel="noreferrer">
              API
            </Anchor>
            <Anchor href="/openapi.json" target="_blank" rel="noreferrer">
              OpenAPI
            </Anchor>
          </Group>
          <CopyAs call={{ method: 'GET', path: '/ready' }} cli="status" />
        </>
      }
    >
      <ProcessPanel />
      <ReplicasPanel />
      <MetricsPanel />
      {isAdmin && <MirrorsPanel />}
      <TypesPanel />
      <TemplatesPanel />
    </Page>
  )
}

function ProcessPanel() {
  const settings = useQuery(queries.settings())
  const query = useQuery(queries.ready())
  return (
    <Panel title="This process" aside={<AsOf query={query} staleAfterMs={4 * STATUS_REFRESH_MS} />}>
      <Loaded query={query}>
        {({ status, reason, revision, age_seconds }) => (
          <Facts
            label="This process"
            head={['What', 'Value']}
            rows={[
              { id: 'status', cells: ['Status', `${status}: ${reason ?? MEANINGS[status]}`] },
              { id: 'revision', cells: ['Revision', revision ?? 'unknown'] },
              {
                id: 'age',
                cells: ['Behind its store', age_seconds === undefined ? 'no' : `for ${age_seconds} s`],
              },
              { id: 'mode', cells: ['Mode', settings.data?.mode ?? 'unknown'] },
              { id: 'version', cells: ['Version', settings.data?.version ?? 'unknown'] },
            ]}
          />
        )}
      </Loaded>
    </Panel>
  )
}

/** A process says every 30 seconds that it is there. */
const REPLICA_STALE_MS = 90_000

function ReplicasPanel() {
  const query = useQuery(queries.service())
  const revision = useQuery(queries.ready()).data?.revision
  return (
    <Panel title="Replicas" aside={<AsOf query={query} staleAfterMs={4 * STATUS_REFRESH_MS} />}>
      <Loaded query={query}>
        {({ replicas }) =>
          replicas === null ? (
            <Empty title="Unknown: the store cannot be read now">
              Each process says there that it works, and which revision it serves.
            </Empty>
          ) : (
            <Facts
              label="Replicas"
              head={['Process', 'Mode', 'Version', 'Store', 'Revision', 'Started', 'Last heard of']}
              rows={replicas.map((each) => ({
                id: `${each.name} ${each.started_at}`,
                cells: [
                  each.self ? `${each.name} (this one)` : each.name,
                  each.mode,
                  each.version,
                  each.store,
                  each.self ? (revision ?? each.revision) : each.revision,
                  <Age key="started" at={each.started_at} />,
                  <Age key="seen" at={each.seen_at} staleAfterMs={REPLICA_STALE_MS} />,
                ],
              }))}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

type Unit = 'seconds' | 'bytes'

/** Names of metrics, and what they are to people. */
const FIGURES: readonly (readonly [name: string, what: string, unit?: Unit])[] = [
  ['flux_resourceset_polls_total', 'Polls since the start'],
  ['flux_resourceset_writes_total', 'Writes since the start'],
  ['flux_resourceset_connections', 'Open connections'],
  ['flux_resourceset_watchers', 'Streams of changes'],
  ['flux_resourceset_lag_revisions', 'Revisions that the store is ahead'],
  ['flux_resourceset_state_age_seconds', 'Age of the state', 'seconds'],
  ['flux_resourceset_shed_requests_total', 'Requests refused for load'],
  ['nodejs_eventloop_lag_p99_seconds', 'Delay of the event loop (p99)', 'seconds'],
  ['process_resident_memory_bytes', 'Memory', 'bytes'],
  ['process_cpu_seconds_total', 'CPU used', 'seconds'],
]

function MetricsPanel() {
  const query = useQuery(queries.metrics())
  return (
    <Panel
      title="Figures of this process"
      aside={<AsOf query={query} staleAfterMs={4 * STATUS_REFRESH_MS} />}
    >
      <Loaded query={query}>
        {(metrics) =>
          metrics === null ? (
            <Empty title="Metrics are on another port">
              <code>ADMIN_LISTEN_ADDR</code> moved them there, for Prometheus.
            </Empty>
          ) : (
            <Facts
              label="Figures of this process"
              head={['What', 'Value']}
              rows={FIGURES.flatMap(([name, what, unit]) => {
                const value = metrics.get(name)
                if (value === undefined) return []
                return [{ id: name, cells: [what, shown(value, unit)] }]
              })}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

function shown(value: number, unit: Unit | undefined): string {
  if (unit === 'bytes') return `${(value / 2 ** 20).toLocaleString('en', { maximumFractionDigits: 0 })} MiB`
  if (unit === 'seconds' && value < 1)
    return `${(value * 1000).toLocaleString('en', { maximumFractionDigits: 1 })} ms`
  const number = value.toLocaleString('en', { maximumFractionDigits: 1 })
  return unit === 'seconds' ? `${number} s` : number
}

/** A mirror is known by its token: when it was last used says whether it still follows. */
function MirrorsPanel() {
  const query = useQuery(queries.tokens())
  return (
    <Panel title="Mirrors">
      <Loaded query={query}>
        {(tokens) => {
          const mirrors = tokens.filter(({ role }) => role === 'mirror')
          if (mirrors.length === 0)
            return (
              <Empty title="No mirror follows this service">
                A mirror serves a part of the fleet elsewhere, also behind an air gap. It needs a token of the
                role mirror.
              </Empty>
            )
          return (
            <Facts
              label="Mirrors"
              head={['Token', 'Clusters', 'Last heard of', 'From', 'Expires']}
              rows={mirrors.map((token) => ({
                id: token.id,
                cells: [
                  token.name,
                  scopeOf(token) || 'all',
                  <Age key="used" at={token.last_used_at} never="never" />,
                  token.last_used_from ?? '',
                  <Age key="expires" at={token.expires_at} never="never" />,
                ],
              }))}
            />
          )
        }}
      </Loaded>
    </Panel>
  )
}

function TypesPanel() {
  const query = useQuery(queries.settings())
  const hasDocuments = useHasDocuments()
  return (
    <Panel title="Types">
      <Loaded query={query} lines={6}>
        {({ types }) => (
          <Facts
            label="Types"
            head={['Type', 'What it is', 'Endpoint', 'Assigned by']}
            rows={types.map(({ name, description, delivery, cluster, bookkeeping }) => ({
              id: name,
              cells: [
                hasDocuments && !cluster && !bookkeeping ? (
                  <Link key="name" to="/catalog" search={{ type: name }}>
                    {name}
                  </Link>
                ) : (
                  name
                ),
                description,
                delivery?.endpoint ?? 'not served to clusters',
                delivery?.assigned_by ?? '',
              ],
            }))}
          />
        )}
      </Loaded>
    </Panel>
  )
}

function TemplatesPanel() {
  const query = useQuery(queries.service())
  return (
    <Panel title="Templates">
      <Loaded query={query}>
        {({ templates }) =>
          templates.length === 0 ? (
            <Empty title="Bundles carry no template">They tell clusters what to do with their inputs.</Empty>
          ) : (
            <Facts
              label="Templates"
              head={['Template', 'Kind', 'Takes inputs from', 'Reports what it applied']}
              rows={templates.map(({ kind, name, endpoints, obstacle }) => ({
                id: `${kind} ${name}`,
                cells: [
                  name,
                  kind,
                  endpoints.join(', ') || 'nothing',
                  endpoints.length === 0 ? '' : obstacle ? `no: ${obstacle}` : 'yes',
                ],
              }))}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

// One change: who made it and why, what it changed in documents and for clusters, how far it has come, and the way back.
import { Button, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { RevisionWithImpact } from '../../../src/api/wire-types.ts'
import { pathOf } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { ChangedDocument } from '../../parts/changed-document.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Facts } from '../../parts/facts.tsx'
import { ImpactSummary } from '../../parts/impact-summary.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page, Panel } from '../../parts/page.tsx'
import { ChangeActions } from './change-actions.tsx'
import { PropagationPanel } from './propagation-panel.tsx'

const SHOWN = 50
const route = getRouteApi('/changes/$revision')

export function ChangePage() {
  const revision = Number(route.useParams().revision)
  const { offset = 0 } = route.useSearch()
  const query = useQuery(queries.revision(revision, { offset, limit: SHOWN }))
  const head = useQuery(queries.ready()).data?.revision
  return (
    <Page
      title={`Change #${route.useParams().revision}`}
      actions={
        <>
          <Neighbour revision={revision - 1} name="Previous" />
          <Neighbour revision={revision + 1} name="Next" head={head} />
          <CopyAs
            call={{ method: 'GET', path: pathOf('revisions', String(revision)) }}
            cli={`show ${revision}`}
          />
          {query.data && <ChangeActions revision={revision} />}
        </>
      }
    >
      <Loaded query={query} lines={8}>
        {(found) => (
          <>
            <About revision={found} />
            <ImpactPanel revision={found} />
            {found.impact.clusters > 0 && <PropagationPanel revision={revision} />}
            <DocumentsPanel revision={found} offset={offset} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

interface NeighbourProps {
  readonly revision: number
  readonly name: string
  /** The last revision, where it is known. */
  readonly head?: number | undefined
}

function Neighbour({ revision, name, head = Number.POSITIVE_INFINITY }: NeighbourProps) {
  if (!(revision >= 1 && revision <= head)) return null
  return (
    <Button
      variant="default"
      renderRoot={(props) => (
        <Link to="/changes/$revision" params={{ revision: String(revision) }} {...props} />
      )}
    >
      {name}
    </Button>
  )
}

function About({ revision: found }: { readonly revision: RevisionWithImpact }) {
  const { time, actor, message, operation, request_id, client_address, hash } = found
  const facts = {
    Why: message ?? 'no reason was given',
    What: operation,
    Who: `${actor}${client_address ? ` from ${client_address}` : ''}`,
    When: <Age at={time} />,
    'Request id': <code>{request_id}</code>,
    Hash: <code>{hash}</code>,
  }
  return (
    <Panel title="About">
      <Facts
        label="About"
        head={['Fact', 'Value']}
        rows={Object.entries(facts).map(([name, value]) => ({ id: name, cells: [name, value] }))}
      />
    </Panel>
  )
}

function ImpactPanel({ revision: { impact } }: { readonly revision: RevisionWithImpact }) {
  const { clusters, joining, leaving, losing } = impact
  const more = Object.entries({ joining, leaving, 'losing an input': losing }).filter(
    ([, count]) => count > 0,
  )
  return (
    <Panel title="What it meant for clusters">
      <Stack gap="sm" p="sm">
        <Text size="sm">
          {clusters === 0
            ? 'No cluster received anything differently.'
            : `${clusters.toLocaleString('en')} ${clusters === 1 ? 'cluster received' : 'clusters received'} something different`}
          {more.length > 0 && `: ${more.map(([what, count]) => `${count} ${what}`).join(', ')}`}
        </Text>
        <ImpactSummary impact={impact} />
      </Stack>
    </Panel>
  )
}

interface DocumentsPanelProps {
  readonly revision: RevisionWithImpact
  readonly offset: number
}

function DocumentsPanel({ revision: { changes, change_count }, offset }: DocumentsPanelProps) {
  const last = offset + changes.length
  return (
    <Panel
      title="Documents"
      aside={
        <Text size="xs" c="dimmed">
          {change_count === changes.length ? change_count : `${offset + 1} to ${last} of ${change_count}`}
        </Text>
      }
    >
      <Stack gap="xs" p="sm">
        {changes.map((change) => (
          <ChangedDocument key={`${change.type}/${change.id}`} change={change} />
        ))}
        <Group gap="xs">
          {offset > 0 && <PageButton offset={Math.max(0, offset - SHOWN)} name="Documents before" />}
          {last < change_count && <PageButton offset={last} name="Documents after" />}
        </Group>
      </Stack>
    </Panel>
  )
}

function PageButton({ offset, name }: { readonly offset: number; readonly name: string }) {
  const params = route.useParams()
  return (
    <Button
      variant="default"
      renderRoot={(props) => <Link to="/changes/$revision" params={params} search={{ offset }} {...props} />}
    >
      {name}
    </Button>
  )
}

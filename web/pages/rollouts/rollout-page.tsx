// One rollout: what it waits for, its waves side by side with their gates and clusters, who did what to it, and what one can do.
import { SimpleGrid, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import type { ShownRollout } from '../../../src/api/rollout-schema.ts'
import { pathOf } from '../../api/client.ts'
import { queries, STATUS_REFRESH_MS } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { ClusterLink } from '../../parts/cluster-link.tsx'
import { CopyAs, inShell } from '../../parts/copy-as.tsx'
import { Facts } from '../../parts/facts.tsx'
import { AsOf, Loaded } from '../../parts/loaded.tsx'
import { Empty, Page, Panel } from '../../parts/page.tsx'
import { RevisionLink } from '../../parts/revision-link.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Told } from '../../parts/told.tsx'
import { useMay } from '../../session/permissions.ts'
import { EditsPanel } from './edits-panel.tsx'
import { RolloutActions } from './rollout-actions.tsx'
import { hasEnded } from './rollout-words.ts'
import { SkipClusters } from './skip-clusters.tsx'
import { WavesPanel } from './waves-panel.tsx'

const route = getRouteApi('/rollouts/$rollout')

export function RolloutPage() {
  const { rollout: id } = route.useParams()
  const query = useQuery(queries.rollout(id))
  const mayWrite = useMay('write')
  return (
    <Page
      title={`Rollout ${id}`}
      aside={
        <>
          {query.data && <StateBadge state={query.data.state} />}
          <AsOf query={query} staleAfterMs={4 * STATUS_REFRESH_MS} />
        </>
      }
      actions={
        <>
          <CopyAs
            call={{ method: 'GET', path: pathOf('rollouts', id) }}
            cli={`rollout describe ${inShell(id)}`}
          />
          {query.data && <RolloutActions rollout={query.data} />}
        </>
      }
    >
      <Loaded query={query} lines={12}>
        {(rollout) => (
          <>
            <About rollout={rollout} />
            {rollout.edits && <EditsPanel edits={rollout.edits} />}
            <WavesPanel rollout={rollout} />
            <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
              <LogPanel rollout={rollout} />
              <AnswersPanel rollout={rollout} />
            </SimpleGrid>
            {mayWrite && !hasEnded(rollout) && <SkipClusters rollout={id} />}
            <LeftOut title="Left out" clusters={rollout.skipped} />
            <LeftOut title="Set aside, because they were absent" clusters={rollout.set_aside} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function About({ rollout }: { readonly rollout: ShownRollout }) {
  const { id, message, operation, strategy, started_by, started_at, ended_at, waiting_for } = rollout
  return (
    <Panel title={message ?? operation}>
      <Text size="sm" p="sm" fw={600}>
        {hasEnded(rollout) ? (
          `It ${rollout.state}.`
        ) : (
          <Told sentence={waiting_for ?? 'It goes on by itself.'} />
        )}
      </Text>
      <Facts
        label="About"
        head={['What', 'Strategy', 'Started', 'Ended', 'Change']}
        rows={[
          {
            id,
            cells: [
              operation,
              strategy ?? 'waves of its own',
              <span key="started">
                by {started_by}, <Age at={started_at} />
              </span>,
              <Age key="ended" at={ended_at} never="not yet" />,
              <RevisionLink key="change" revision={Number(id.slice(1))} />,
            ],
          },
        ]}
      />
      {rollout.bypass && (
        <Text size="sm" p="sm">
          It passes freezes; its reason says why.
        </Text>
      )}
    </Panel>
  )
}

function LogPanel({ rollout: { events } }: { readonly rollout: ShownRollout }) {
  return (
    <Panel title="Log">
      <Facts
        label="Log"
        head={['When', 'Who', 'What', 'Why']}
        rows={events.toReversed().map(({ at, by, what, remark }, place) => ({
          id: `${events.length - place}`,
          cells: [<Age key="when" at={at} />, by, what, remark ?? ''],
        }))}
      />
    </Panel>
  )
}

function AnswersPanel({ rollout: { approvals, checks, plan } }: { readonly rollout: ShownRollout }) {
  const rows = [
    ...approvals.map(({ wave, when, by, at, remark }) => ({
      id: `${wave} ${when} ${by}`,
      cells: [`approved ${when} ${wave}`, by, <Age key="when" at={at} />, remark ?? ''],
    })),
    ...checks.map((check) => ({
      id: `${check.wave} ${check.name}`,
      cells: [
        `check ${check.name} of ${check.wave}: ${check.ok ? 'yes' : 'no'}${check.plan === plan ? '' : ', about another plan'}`,
        check.by,
        <Age key="when" at={check.at} />,
        check.remark ?? '',
      ],
    })),
  ]
  return (
    <Panel title="Approvals and checks">
      {rows.length === 0 ? (
        <Empty title="None yet">A strategy says which waves wait for people, and for systems outside.</Empty>
      ) : (
        <Facts label="Approvals and checks" head={['What', 'Who', 'When', 'Why']} rows={rows} />
      )}
    </Panel>
  )
}

const SHOWN = 100

function LeftOut({ title, clusters }: { readonly title: string; readonly clusters: readonly string[] }) {
  if (clusters.length === 0) return null
  return (
    <Panel title={title}>
      <Text size="sm" p="sm">
        {clusters.slice(0, SHOWN).map((cluster) => (
          <span key={cluster}>
            <ClusterLink cluster={cluster} />{' '}
          </span>
        ))}
        {clusters.length > SHOWN && `and ${clusters.length - SHOWN} more`}
      </Text>
    </Panel>
  )
}

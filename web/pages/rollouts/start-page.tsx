// Starts a rollout: what changes, which strategy takes it through the fleet, and a dry run of all of it.
import { Button, Group, SegmentedControl, Select, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { RolloutStarted } from '../../../src/api/rollout-schema.ts'
import type { Json } from '../../../src/base/json.ts'
import { DEFAULT_STRATEGY_ID, STRATEGIES } from '../../../src/domain/rollouts/strategy.ts'
import { queries } from '../../api/queries.ts'
import { inShell } from '../../parts/copy-as.tsx'
import { Empty, Page, Panel } from '../../parts/page.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import { useMay } from '../../session/permissions.ts'
import { DocumentChange } from './document-change.tsx'
import { OperationsChange } from './operations-change.tsx'
import { ValuesChange } from './values-change.tsx'

const STRATEGIES_SHOWN = 500
const WAYS = {
  document: 'A document',
  values: 'Values of clusters',
  operations: 'Operations',
} as const
const route = getRouteApi('/rollouts/new')

/** What a form offers: the operations of a batch, or undefined while there is nothing to do yet. */
export type OnOperations = (operations: readonly Json[] | undefined) => void

export function StartPage() {
  const mayWrite = useMay('write')
  return (
    <Page title="Start a rollout">
      {mayWrite ? <Wizard /> : <Empty title="Your role may not start rollouts" />}
    </Page>
  )
}

function Wizard() {
  const search = route.useSearch()
  const navigate = useNavigate()
  const [way, setWay] = useState<keyof typeof WAYS>('document')
  const [operations, setOperations] = useState<readonly Json[]>()
  const [action, setAction] = useState<Action>()
  const strategy = search.strategy ?? DEFAULT_STRATEGY_ID
  const preview = () =>
    setAction({
      title: `Roll this out by the strategy ${strategy}`,
      verb: 'Start the rollout',
      call: { method: 'POST', path: '/batch', body: { operations, rollout: { strategy } } },
      cli: `apply -f operations.yaml --rollout ${inShell(strategy)}`,
    })
  return (
    <>
      <Panel title="1. What changes">
        <Stack gap="sm" p="sm">
          <SegmentedControl
            aria-label="What changes"
            value={way}
            onChange={(chosen) => {
              setWay(chosen as keyof typeof WAYS)
              setOperations(undefined)
            }}
            data={Object.entries(WAYS).map(([value, label]) => ({ value, label }))}
            size="xs"
            w="fit-content"
          />
          {way === 'document' && <DocumentChange onOperations={setOperations} />}
          {way === 'values' && <ValuesChange onOperations={setOperations} />}
          {way === 'operations' && <OperationsChange onOperations={setOperations} />}
        </Stack>
      </Panel>
      <Panel title="2. How it goes through the fleet">
        <StrategyChoice strategy={strategy} />
      </Panel>
      <Group justify="flex-end" gap="sm">
        <Text size="sm" c="dimmed">
          {operations ? 'Nothing is stored before you confirm.' : 'Nothing is changed yet.'}
        </Text>
        <Button onClick={preview} disabled={!operations}>
          Preview waves and duration…
        </Button>
      </Group>
      <PreviewDialog<RolloutStarted>
        action={action}
        onClose={() => setAction(undefined)}
        onDone={({ body }) =>
          void navigate({ to: '/rollouts/$rollout', params: { rollout: body.rollout.id } })
        }
      />
    </>
  )
}

function StrategyChoice({ strategy }: { readonly strategy: string }) {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const { data } = useQuery(queries.documents(STRATEGIES, { offset: 0, limit: STRATEGIES_SHOWN }))
  const found = data?.body ?? []
  const chosen = found.find(({ id }) => id === strategy)
  const names = new Set([DEFAULT_STRATEGY_ID, strategy, ...found.map(({ id }) => String(id))])
  return (
    <Stack gap="xs" p="sm">
      <Select
        label="Strategy"
        data={[...names]}
        value={strategy}
        onChange={(name) => void navigate({ search: { ...search, ...(name && { strategy: name }) } })}
        searchable
        size="sm"
        maw={360}
      />
      <Text size="sm" c="dimmed">
        {chosen
          ? String(chosen.description ?? 'It has no description.')
          : strategy === DEFAULT_STRATEGY_ID
            ? 'Built in: dev, qa and uat one after the other, then one cluster, 10 %, 50 % and the rest of what is left.'
            : 'It is not among the strategies of this service.'}
      </Text>
    </Stack>
  )
}

// Starts a rollout, or gives one another change: what changes, how it goes through the fleet, and a dry run of all of it.
import { Alert, Button, Checkbox, Group, SegmentedControl, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { RolloutStarted, ShownRollout } from '../../../src/api/rollout-schema.ts'
import type { Json, JsonObject } from '../../../src/base/json.ts'
import { DEFAULT_STRATEGY_ID } from '../../../src/domain/rollouts/strategy.ts'
import { pathOf } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import type { StartSearch } from '../../api/rollout-search.ts'
import { Loaded } from '../../parts/loaded.tsx'
import { Empty, Page, Panel } from '../../parts/page.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import { useMay } from '../../session/permissions.ts'
import { DocumentChange } from './document-change.tsx'
import { EditsPanel } from './edits-panel.tsx'
import { OperationsChange } from './operations-change.tsx'
import { type Course, fieldsOf, StrategyChoice } from './strategy-choice.tsx'
import { ValuesChange } from './values-change.tsx'

const WAYS = {
  document: 'A document',
  values: 'Values of clusters',
  operations: 'Operations',
} as const
type Way = keyof typeof WAYS
const route = getRouteApi('/rollouts/new')

/** What a form offers: the operations of a batch, or undefined while there is nothing to do yet. */
export type OnOperations = (operations: readonly Json[] | undefined) => void

export function StartPage() {
  const mayWrite = useMay('write')
  const { amends, supersedes } = route.useSearch()
  const earlier = amends ?? supersedes
  const query = useQuery({ ...queries.rollout(earlier ?? ''), enabled: earlier !== undefined })
  const title = amends ? `Amend rollout ${amends}` : 'Start a rollout'
  if (!mayWrite)
    return (
      <Page title={title}>
        <Empty title="Your role may not start rollouts" />
      </Page>
    )
  return (
    <Page title={title}>
      {earlier === undefined ? (
        <Wizard earlier={undefined} />
      ) : (
        <Loaded query={query} lines={8}>
          {(rollout) => <Wizard key={rollout.id} earlier={rollout} />}
        </Loaded>
      )}
    </Page>
  )
}

/** `earlier` is amended, or ends when this one starts. */
function Wizard({ earlier }: { readonly earlier: ShownRollout | undefined }) {
  const search = route.useSearch()
  const navigate = useNavigate()
  const { operations: sent } = earlier ?? {}
  const [way, setWay] = useState<Way>(sent ? 'operations' : 'document')
  const [operations, setOperations] = useState<readonly Json[]>()
  const [course, setCourse] = useState<Course>({ kind: search.amends ? 'kept' : 'strategy' })
  const [restarts, setRestarts] = useState(false)
  const [action, setAction] = useState<Action>()
  const strategy = search.strategy ?? DEFAULT_STRATEGY_ID
  const fields = fieldsOf(course, strategy)
  const change = operations && fields && { operations, fields, restarts }
  return (
    <>
      {earlier && <Earlier search={search} />}
      {earlier?.edits && <EditsPanel edits={earlier.edits} />}
      <Panel title="1. What changes">
        <Stack gap="sm" p="sm">
          <SegmentedControl
            aria-label="What changes"
            value={way}
            onChange={(chosen) => {
              setWay(chosen as Way)
              setOperations(undefined)
            }}
            data={Object.entries(WAYS).map(([value, label]) => ({ value, label }))}
            size="xs"
            w="fit-content"
          />
          {way === 'document' && <DocumentChange onOperations={setOperations} />}
          {way === 'values' && <ValuesChange onOperations={setOperations} />}
          {way === 'operations' && <OperationsChange initial={sent ?? []} onOperations={setOperations} />}
        </Stack>
      </Panel>
      <Panel title="2. How it goes through the fleet">
        <StrategyChoice
          course={course}
          strategy={strategy}
          mayKeep={search.amends !== undefined}
          onChange={setCourse}
        />
        {search.amends !== undefined && (
          <Checkbox
            p="sm"
            label="Begin with the first wave again: clusters of open waves return to what they had first"
            checked={restarts}
            onChange={({ currentTarget }) => setRestarts(currentTarget.checked)}
          />
        )}
      </Panel>
      <Group justify="flex-end" gap="sm">
        <Text size="sm" c="dimmed">
          {change ? 'Nothing is stored before you confirm.' : 'Nothing is changed yet.'}
        </Text>
        <Button onClick={() => change && setAction(actionOf(search, change))} disabled={!change}>
          Preview waves and duration…
        </Button>
      </Group>
      <PreviewDialog<RolloutStarted & ShownRollout>
        action={action}
        onClose={() => setAction(undefined)}
        onDone={({ body }) =>
          void navigate({
            to: '/rollouts/$rollout',
            params: { rollout: search.amends ?? body.rollout.id },
          })
        }
      />
    </>
  )
}

function Earlier({ search: { amends, supersedes = '' } }: { readonly search: StartSearch }) {
  const id = amends ?? supersedes
  const link = (
    <Link to="/rollouts/$rollout" params={{ rollout: id }}>
      {id}
    </Link>
  )
  return (
    <Alert color="orange" variant="outline" role="note">
      {amends ? (
        <>
          What you give here takes the place of everything that {link} changes. Clusters of open waves get it
          at once. Approvals and answers of checks are void.
        </>
      ) : (
        <>{link} is aborted in the same revision that starts the new rollout.</>
      )}
    </Alert>
  )
}

interface WantedChange {
  readonly operations: readonly Json[]
  /** How it goes through the fleet. */
  readonly fields: JsonObject
  readonly restarts: boolean
}

function actionOf(
  { amends, supersedes }: StartSearch,
  { operations, fields, restarts }: WantedChange,
): Action {
  const how =
    typeof fields.strategy === 'string'
      ? ` by the strategy ${fields.strategy}`
      : fields.waves
        ? ' by waves of its own'
        : ''
  if (amends !== undefined)
    return {
      title: `Amend rollout ${amends}${how}`,
      verb: 'Amend',
      call: {
        method: 'POST',
        path: pathOf('rollouts', amends, 'amend'),
        body: { operations, ...fields, ...(restarts && { restart: true }) },
      },
    }
  const rollout = { ...fields, ...(supersedes !== undefined && { supersedes }) }
  return {
    title: `Roll this out${how}`,
    verb: 'Start the rollout',
    call: { method: 'POST', path: '/batch', body: { operations, rollout } },
  }
}

// What keeps clusters as they are: freezes, each on or off, and the switch that stops every rollout at once.
import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { FreezeStatus } from '../../../src/api/freeze-schema.ts'
import { STOPPED_LINE } from '../../../src/domain/rollouts/freeze.ts'
import { pathOf } from '../../api/client.ts'
import { FREEZES, freezeQuery, type ShownFreeze } from '../../api/freeze-queries.ts'
import { STATUS_REFRESH_MS } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { inShell } from '../../parts/copy-as.tsx'
import { Facts } from '../../parts/facts.tsx'
import { AsOf, Loaded } from '../../parts/loaded.tsx'
import { Empty, Panel } from '../../parts/page.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import { ToneBadge } from '../../parts/state-badge.tsx'
import { useMay } from '../../session/permissions.ts'
import { NewFreeze } from './new-freeze.tsx'

type Asked = 'freeze' | 'line'

export function FreezesPanel() {
  const query = useQuery(freezeQuery())
  const mayWrite = useMay('write')
  const [asked, setAsked] = useState<Asked>()
  const [action, setAction] = useState<Action>()
  const isStopped = query.data?.some(({ freeze }) => freeze.id === STOPPED_LINE) ?? false
  const offer = mayWrite && asked === undefined && query.data !== undefined
  return (
    <Panel
      title="Freezes"
      aside={
        <Group gap="xs">
          <AsOf query={query} staleAfterMs={4 * STATUS_REFRESH_MS} />
          {offer && !isStopped && (
            <Button variant="default" onClick={() => setAsked('line')}>
              Stop the line…
            </Button>
          )}
          {offer && (
            <Button variant="default" onClick={() => setAsked('freeze')}>
              New freeze…
            </Button>
          )}
        </Group>
      }
    >
      {asked && <NewFreeze isLine={asked === 'line'} onClose={() => setAsked(undefined)} />}
      <Loaded query={query} lines={2}>
        {(freezes) =>
          freezes.length === 0 ? (
            <Empty title="Nothing is frozen">
              A freeze keeps clusters as they are for a while: writes are refused, and waves wait.
            </Empty>
          ) : (
            <Facts
              label="Freezes"
              head={['Freeze', 'Now', 'Clusters', 'Blocks', 'Why', ...(mayWrite ? [''] : [])]}
              rows={freezes.map((found) => ({
                id: found.freeze.id,
                cells: [
                  ...cellsOf(found),
                  ...(mayWrite ? [<End key="end" found={found} onAction={setAction} />] : []),
                ],
              }))}
            />
          )
        }
      </Loaded>
      <PreviewDialog action={action} onClose={() => setAction(undefined)} />
    </Panel>
  )
}

function cellsOf({ freeze, status }: ShownFreeze) {
  const { id, selector, blocks = 'changes', reason } = freeze
  return [
    <Link key="id" to="/catalog/$type/$id" params={{ type: FREEZES, id }}>
      {id}
    </Link>,
    <Phase key="phase" status={status} />,
    <span key="clusters">
      {status.clusters.toLocaleString('en')}
      {selector !== undefined && (
        <>
          {': '}
          <Link to="/fleet" search={{ selector }}>
            {selector}
          </Link>
        </>
      )}
    </span>,
    blocks === 'rollouts' ? 'waves of rollouts' : 'writes and waves',
    reason,
  ]
}

function Phase({ status: { open, next_open, next_freeze } }: { readonly status: FreezeStatus }) {
  const next = open ? next_freeze : next_open
  return (
    <>
      <ToneBadge tone={open ? 'none' : 'warn'}>{open ? 'off' : 'on'}</ToneBadge>{' '}
      {next ? (
        <>
          {open ? 'begins' : 'ends'} <Age at={next} />
        </>
      ) : open ? (
        'for good'
      ) : (
        'until somebody ends it'
      )}
    </>
  )
}

interface EndProps {
  readonly found: ShownFreeze
  readonly onAction: (action: Action) => void
}

function End({ found: { freeze }, onAction }: EndProps) {
  const isLine = freeze.id === STOPPED_LINE
  const verb = isLine ? 'Start the line' : 'Delete'
  return (
    <Button
      size="compact-xs"
      variant="default"
      aria-label={isLine ? 'Start the line again' : `Delete the freeze ${freeze.id}`}
      onClick={() =>
        onAction({
          title: isLine ? 'Let rollouts go on' : `Delete the freeze ${freeze.id}`,
          verb,
          call: { method: 'DELETE', path: pathOf(FREEZES, freeze.id) },
          cli: isLine ? 'rollout start-line' : `freeze delete ${inShell(freeze.id)}`,
        })
      }
    >
      {verb}…
    </Button>
  )
}

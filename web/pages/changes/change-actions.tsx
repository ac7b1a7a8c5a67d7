// The ways back from a change, each previewed: take back what it did, or make the whole fleet as it was then.
import { ActionIcon, Menu } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { FleetWritten } from '../../../src/api/wire-types.ts'
import { pathOf } from '../../api/client.ts'
import { Icon } from '../../parts/icon.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import { useMay } from '../../session/permissions.ts'

export function ChangeActions({ revision }: { readonly revision: number }) {
  const mayWrite = useMay('write')
  const navigate = useNavigate()
  const [action, setAction] = useState<Action>()
  if (!mayWrite) return null
  const revert: Action = {
    title: `Take back change #${revision}`,
    verb: 'Revert',
    call: { method: 'POST', path: pathOf('revisions', String(revision), 'revert'), body: {} },
    cli: `revert ${revision}`,
  }
  const rollBack: Action = {
    title: `Make the fleet as it was at #${revision}`,
    verb: 'Roll back',
    call: { method: 'POST', path: '/rollback', body: { to_revision: revision } },
    cli: `rollback --to ${revision}`,
    isDestructive: true,
  }
  return (
    <>
      <Menu position="bottom-end" withArrow>
        <Menu.Target>
          <ActionIcon variant="default" aria-label={`Actions on change ${revision}`}>
            <Icon name="more" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => setAction(revert)}>Revert…</Menu.Item>
          <Menu.Item onClick={() => setAction(rollBack)} color="red.8">
            Roll the fleet back to here…
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <PreviewDialog<FleetWritten>
        action={action}
        onClose={() => setAction(undefined)}
        onDone={({ body }) =>
          void navigate({ to: '/changes/$revision', params: { revision: String(body.revision) } })
        }
      />
    </>
  )
}

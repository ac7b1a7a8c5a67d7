// What one can do to a cluster, each previewed: protect it, delete it.
import { ActionIcon, Menu } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { pathOf } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { inShell } from '../../parts/copy-as.tsx'
import { Icon } from '../../parts/icon.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import { useMay } from '../../session/permissions.ts'

/** The field of a cluster that refuses its deletion. */
const PROTECTION = 'deletion_protection'

export function ClusterActions({ type, cluster }: { readonly type: string; readonly cluster: string }) {
  const mayWrite = useMay('write')
  const document = useQuery({ ...queries.document(type, cluster), enabled: mayWrite })
  const [action, setAction] = useState<Action>()
  if (!mayWrite || !document.data) return null
  const { body, etag } = document.data
  const isProtected = body[PROTECTION] === true
  const path = pathOf(type, cluster)
  const protect: Action = {
    title: `${isProtected ? 'Allow deletion of' : 'Protect'} ${cluster}`,
    verb: isProtected ? 'Allow deletion' : 'Protect',
    call: { method: 'PATCH', path, body: { [PROTECTION]: !isProtected }, ifMatch: etag },
    edited: { type, id: cluster, base: body, mine: { ...body, [PROTECTION]: !isProtected } },
    cli: `cluster patch ${inShell(cluster)} --deletion-protection=${!isProtected}`,
  }
  const remove: Action = {
    title: `Delete ${cluster}`,
    verb: 'Delete',
    call: { method: 'DELETE', path, ifMatch: etag },
    edited: { type, id: cluster, base: body, mine: undefined },
    cli: `cluster delete ${inShell(cluster)}`,
    isDestructive: true,
  }
  return (
    <>
      <Menu position="bottom-end" withArrow>
        <Menu.Target>
          <ActionIcon variant="default" aria-label={`Actions on ${cluster}`}>
            <Icon name="more" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => setAction(protect)}>{protect.verb}…</Menu.Item>
          <Menu.Item onClick={() => setAction(remove)} color="red.8" disabled={isProtected}>
            Delete…
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <PreviewDialog action={action} onClose={() => setAction(undefined)} />
    </>
  )
}

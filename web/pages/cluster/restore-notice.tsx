// A cluster whose document was deleted: what that means, and the way back.
import { Alert, Button, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { pathOf } from '../../api/client.ts'
import { inShell } from '../../parts/copy-as.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import { useMay } from '../../session/permissions.ts'

export function RestoreNotice({ type, cluster }: { readonly type: string; readonly cluster: string }) {
  const mayWrite = useMay('write')
  const [action, setAction] = useState<Action>()
  return (
    <Alert color="orange" variant="outline" title="This cluster is deleted">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          Its polls get empty lists, and Flux removes there everything that it had rendered. It can be brought
          back as it was, with its definitions as they are now.
        </Text>
        {mayWrite && (
          <Button
            onClick={() =>
              setAction({
                title: `Restore ${cluster}`,
                verb: 'Restore',
                call: { method: 'POST', path: pathOf(type, cluster, 'restore') },
                cli: `cluster restore ${inShell(cluster)}`,
              })
            }
          >
            Restore…
          </Button>
        )}
        <PreviewDialog action={action} onClose={() => setAction(undefined)} />
      </Stack>
    </Alert>
  )
}

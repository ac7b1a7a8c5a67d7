// Leaves clusters out of a rollout: they return to what they had, until the finish.
import { Button, Group, TextInput } from '@mantine/core'
import { useState } from 'react'
import { pathOf } from '../../api/client.ts'
import { inShell } from '../../parts/copy-as.tsx'
import { Panel } from '../../parts/page.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'

export function SkipClusters({ rollout }: { readonly rollout: string }) {
  const [typed, setTyped] = useState('')
  const [action, setAction] = useState<Action>()
  const clusters = typed.split(/[\s,]+/).filter((id) => id !== '')
  return (
    <Panel title="Leave clusters out">
      <Group gap="sm" align="flex-end" p="sm">
        <TextInput
          label="Clusters"
          placeholder="ids, joined by commas"
          value={typed}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
        />
        <Button
          variant="default"
          disabled={clusters.length === 0}
          onClick={() =>
            setAction({
              title: `Leave ${clusters.length} ${clusters.length === 1 ? 'cluster' : 'clusters'} out`,
              verb: 'Leave out',
              call: {
                method: 'POST',
                path: pathOf('rollouts', rollout, 'skip'),
                body: { clusters: [...new Set(clusters)] },
              },
              cli: `rollout skip ${inShell(rollout)} --cluster ${inShell(clusters.join(','))}`,
            })
          }
        >
          Leave out…
        </Button>
      </Group>
      <PreviewDialog action={action} onClose={() => setAction(undefined)} onDone={() => setTyped('')} />
    </Panel>
  )
}

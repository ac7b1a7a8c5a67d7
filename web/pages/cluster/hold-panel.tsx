// A cluster that is held keeps what it is served, whatever is written: hold it, say for how long and why, and release it.
import { Button, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { ShownHold } from '../../../src/api/rollout-schema.ts'
import { pathOf } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { inShell } from '../../parts/copy-as.tsx'
import { HoldFields, NEW_HOLD } from '../../parts/hold-fields.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Panel } from '../../parts/page.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import { hoursFlag, untilOf } from '../../parts/spans.ts'
import { useMay } from '../../session/permissions.ts'

export function HoldPanel({ cluster }: { readonly cluster: string }) {
  const query = useQuery(queries.hold(cluster))
  const mayWrite = useMay('write')
  const [action, setAction] = useState<Action>()
  return (
    <Panel title="Hold">
      <Stack gap="sm" p="sm">
        <Loaded query={query} lines={2}>
          {(held) => (
            <>
              {held ? (
                <HeldNote hold={held.body} />
              ) : (
                <Text size="sm">It is not held: it gets what is written.</Text>
              )}
              {mayWrite && held && (
                <Button
                  variant="default"
                  w="fit-content"
                  onClick={() =>
                    setAction({
                      title: `Release ${cluster}`,
                      verb: 'Release',
                      call: { method: 'DELETE', path: pathOf('holds', cluster), ifMatch: held.etag },
                      cli: `hold release ${inShell(cluster)}`,
                    })
                  }
                >
                  Release…
                </Button>
              )}
              {mayWrite && !held && <HoldForm cluster={cluster} onAction={setAction} />}
            </>
          )}
        </Loaded>
        <PreviewDialog action={action} onClose={() => setAction(undefined)} />
      </Stack>
    </Panel>
  )
}

export function HeldNote({ hold }: { readonly hold: ShownHold }) {
  const { held_by, since, until, reason } = hold
  return (
    <Text size="sm">
      Held by {held_by} <Age at={since} />
      {until ? (
        <>
          {', and released '}
          <Age at={until} />
        </>
      ) : (
        ', until it is released'
      )}
      : {reason}
    </Text>
  )
}

interface HoldFormProps {
  readonly cluster: string
  readonly onAction: (action: Action) => void
}

function HoldForm({ cluster, onAction }: HoldFormProps) {
  const [input, setInput] = useState(NEW_HOLD)
  const { reason, hours } = input
  const ask = () => {
    const until = untilOf(hours)
    onAction({
      title: `Hold ${cluster}`,
      verb: 'Hold',
      call: {
        method: 'PUT',
        path: pathOf('holds', cluster),
        body: { reason: reason.trim(), ...(until !== undefined && { until }) },
      },
      cli: `hold create ${inShell(cluster)}${hoursFlag(hours)} --reason ${inShell(reason.trim())}`,
    })
  }
  return (
    <Group gap="sm" align="flex-end">
      <HoldFields input={input} onChange={(next) => setInput({ ...input, ...next })} />
      <Button onClick={ask} disabled={reason.trim() === ''}>
        Hold…
      </Button>
    </Group>
  )
}

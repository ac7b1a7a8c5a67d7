// What one can do to a rollout in its state, each previewed, with the reason in its log.
import { Button, Menu } from '@mantine/core'
import { useState } from 'react'
import type { ROLLOUT_ACTIONS, ShownRollout } from '../../../src/api/rollout-schema.ts'
import { pathOf } from '../../api/client.ts'
import { inShell } from '../../parts/copy-as.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import { useMay } from '../../session/permissions.ts'
import { hasEnded } from './rollout-words.ts'

type Kind = Exclude<keyof typeof ROLLOUT_ACTIONS, 'check'>

const VERBS: Readonly<Record<Kind, string>> = {
  approve: 'Approve',
  pause: 'Pause',
  resume: 'Resume',
  retry: 'Retry',
  skip: 'Skip',
  finish: 'Finish now',
  abort: 'Abort',
}

export function RolloutActions({ rollout }: { readonly rollout: ShownRollout }) {
  const mayWrite = useMay('write')
  const [action, setAction] = useState<Action>()
  if (!mayWrite || hasEnded(rollout)) return null
  const { id, state, waves, plan } = rollout
  const act = (kind: Kind, body: object = {}, cli = '', what = 'the rollout') =>
    setAction({
      title: `${VERBS[kind]}: ${what === 'the rollout' ? `rollout ${id}` : what}`,
      verb: VERBS[kind],
      call: { method: 'POST', path: pathOf('rollouts', id, kind), body },
      cli: `rollout ${kind} ${inShell(id)}${cli}`,
      hasRemark: ['pause', 'abort', 'finish', 'approve'].includes(kind),
      isDestructive: kind === 'abort',
    })
  const left = waves.filter((wave) => wave.state === 'waiting' || wave.state === 'open')
  return (
    <>
      {state === 'paused' ? (
        <Button onClick={() => act('resume')}>Resume…</Button>
      ) : (
        <Button variant="default" onClick={() => act('pause')}>
          Pause…
        </Button>
      )}
      <Button variant="default" onClick={() => act('approve', { plan }, ` --of ${plan}`)}>
        Approve…
      </Button>
      <Menu position="bottom-end" withArrow>
        <Menu.Target>
          <Button variant="default">More…</Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => act('retry')}>Look at failures anew…</Menu.Item>
          {left.map(({ name }) => (
            <Menu.Item
              key={name}
              onClick={() => act('skip', { wave: name }, ` --wave ${inShell(name)}`, `wave ${name}`)}
            >
              Skip wave {name}…
            </Menu.Item>
          ))}
          <Menu.Item onClick={() => act('finish')}>Finish now…</Menu.Item>
          <Menu.Item onClick={() => act('abort')} color="red.8">
            Abort…
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <PreviewDialog action={action} onClose={() => setAction(undefined)} />
    </>
  )
}

// What one can do to a rollout in its state, each previewed, with the reason in its log.
import { Button, Menu } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { MissingApproval, ROLLOUT_ACTIONS, ShownRollout } from '../../../src/api/rollout-schema.ts'
import { pathOf } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { inShell } from '../../parts/copy-as.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import { useMay } from '../../session/permissions.ts'
import { hasEnded } from './rollout-words.ts'

type Kind = Exclude<keyof typeof ROLLOUT_ACTIONS, 'check' | 'approve'>

const VERBS: Readonly<Record<Kind, string>> = {
  pause: 'Pause',
  resume: 'Resume',
  retry: 'Retry',
  skip: 'Skip',
  finish: 'Finish now',
  abort: 'Abort',
}

export function RolloutActions({ rollout }: { readonly rollout: ShownRollout }) {
  const mayWrite = useMay('write')
  const mayApprove = useMayApprove()
  const [action, setAction] = useState<Action>()
  if (!mayWrite || hasEnded(rollout)) return null
  const { id, state, waves } = rollout
  const act = (kind: Kind, body: object = {}, cli = '', what = 'the rollout') =>
    setAction({
      title: `${VERBS[kind]}: ${what === 'the rollout' ? `rollout ${id}` : what}`,
      verb: VERBS[kind],
      call: { method: 'POST', path: pathOf('rollouts', id, kind), body },
      cli: `rollout ${kind} ${inShell(id)}${cli}`,
      hasRemark: ['pause', 'abort', 'finish'].includes(kind),
      isDestructive: kind === 'abort',
    })
  const lacking = waves.find(({ missing_approvals = [] }) => missing_approvals.some(mayApprove))
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
      {lacking && (
        <Button variant="default" onClick={() => setAction(approvalOf(rollout, lacking.name))}>
          Approve wave {lacking.name}…
        </Button>
      )}
      <Menu position="bottom-end" withArrow>
        <Menu.Target>
          <Button variant="default">More…</Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => act('retry')}>Look at failures anew…</Menu.Item>
          <Menu.Item renderRoot={(props) => <Link to="/rollouts/new" search={{ amends: id }} {...props} />}>
            Amend: roll out something else instead…
          </Menu.Item>
          <Menu.Item
            renderRoot={(props) => <Link to="/rollouts/new" search={{ supersedes: id }} {...props} />}
          >
            Supersede: end it with the start of another…
          </Menu.Item>
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

/** Whether the credential of this tab may give an approval that is missing. */
export function useMayApprove(): (missing: MissingApproval) => boolean {
  const mayWrite = useMay('write')
  const identity = useQuery(queries.whoami()).data
  return ({ not_by = [], role }) =>
    mayWrite && identity !== undefined && !not_by.includes(identity.name) && (!role || identity.role === role)
}

/** Of the plan that is looked at: where the rollout is another one by then, nothing is approved. */
export function approvalOf(
  { id, plan }: Pick<ShownRollout, 'id' | 'plan'>,
  wave: string,
  when?: MissingApproval['when'],
): Action {
  return {
    title: `Approve wave ${wave} of rollout ${id}`,
    verb: 'Approve',
    call: {
      method: 'POST',
      path: pathOf('rollouts', id, 'approve'),
      body: { wave, ...(when && { when }), plan },
    },
    cli: `rollout approve ${inShell(id)} --wave ${inShell(wave)}${when ? ` --${when}` : ''} --of ${plan}`,
    hasRemark: true,
  }
}

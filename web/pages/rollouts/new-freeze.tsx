// A freeze from now on, or the stop of the line; one with a schedule is made in the catalog, where all of its fields are.
import { Button, Group, Select, Stack, Text, TextInput } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { STOPPED_LINE } from '../../../src/domain/rollouts/freeze.ts'
import { FREEZES } from '../../api/freeze-queries.ts'
import { inShell } from '../../parts/copy-as.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import { SelectorBox } from '../../parts/selector-box.tsx'
import { FOR_EVER, hoursFlag, SPANS, untilOf } from '../../parts/spans.ts'

interface NewFreezeProps {
  /** Whether it stops rollouts alone, under the name of the line. */
  readonly isLine: boolean
  readonly onClose: () => void
}

interface Given {
  readonly id: string
  readonly reason: string
  readonly selector: string
  readonly hours: string
}

export function NewFreeze({ isLine, onClose }: NewFreezeProps) {
  const [given, setGiven] = useState<Given>({
    id: isLine ? STOPPED_LINE : '',
    reason: '',
    selector: '',
    hours: isLine ? FOR_EVER : '2',
  })
  const [action, setAction] = useState<Action>()
  const set = (next: Partial<Given>) => setGiven({ ...given, ...next })
  const isWhole = given.id.trim() !== '' && given.reason.trim() !== ''
  return (
    <Stack gap="sm" p="sm">
      <Text size="sm">
        {isLine ? (
          'No rollout opens anything more. Clusters that have a change keep it, ordinary writes go on, and abort is always possible.'
        ) : (
          <>
            From now on, writes and waves that would change these clusters are refused or wait. One with dates
            or a schedule is made{' '}
            <Link to="/catalog" search={{ type: FREEZES }}>
              in the catalog
            </Link>
            .
          </>
        )}
      </Text>
      <Group gap="sm" align="flex-start">
        {!isLine && (
          <TextInput
            label="Name"
            value={given.id}
            onChange={({ currentTarget }) => set({ id: currentTarget.value })}
            spellCheck={false}
          />
        )}
        <TextInput
          label="Why"
          description={
            isLine ? 'Whoever waits for a rollout reads it.' : 'Everybody who is refused reads it.'
          }
          inputWrapperOrder={['label', 'input', 'description']}
          value={given.reason}
          onChange={({ currentTarget }) => set({ reason: currentTarget.value })}
          maxLength={1000}
          flex="1 1 16rem"
        />
        <Select
          label="For how long"
          data={SPANS}
          value={given.hours}
          onChange={(hours) => set({ hours: hours ?? FOR_EVER })}
          allowDeselect={false}
          size="sm"
        />
      </Group>
      <SelectorBox
        value={given.selector}
        error={undefined}
        placeholder="the whole fleet, or a selector such as environment=prod"
        onChange={(selector) => set({ selector })}
      />
      <Group gap="xs">
        <Button disabled={!isWhole} onClick={() => setAction(actionOf(given, isLine))}>
          Preview…
        </Button>
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
      </Group>
      <PreviewDialog action={action} onClose={() => setAction(undefined)} onDone={onClose} />
    </Stack>
  )
}

function actionOf({ id, reason, selector, hours }: Given, isLine: boolean): Action {
  const name = id.trim()
  const why = reason.trim()
  const whom = selector === '' ? '' : ` -l ${inShell(selector)}`
  const until = untilOf(hours)
  return {
    title: isLine ? 'Stop the line' : `Freeze ${selector === '' ? 'the whole fleet' : selector}`,
    verb: isLine ? 'Stop the line' : 'Freeze',
    call: {
      method: 'POST',
      path: `/${FREEZES}`,
      body: {
        id: name,
        reason: why,
        ...(selector !== '' && { selector }),
        ...(until !== undefined && { until }),
        ...(isLine && { blocks: 'rollouts' }),
      },
    },
    ...(!isLine && {
      cli: `freeze create ${inShell(name)}${whom}${hoursFlag(hours)} --reason ${inShell(why)}`,
    }),
    ...(isLine && hours === FOR_EVER && { cli: `rollout stop-line${whom} -m ${inShell(why)}` }),
  }
}

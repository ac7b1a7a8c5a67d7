// A state as a word with a shape and a colour: neither stands alone.
import { Tooltip } from '@mantine/core'
import classes from './state-badge.module.css'
import { STATES, type State, type Tone } from './state-words.ts'

const SHAPES: Readonly<Record<Tone, string>> = { good: '●', busy: '◐', warn: '▲', bad: '◆', none: '○' }

interface StateBadgeProps {
  readonly state: State
  /** Of a list of so many badges that only those that matter should have a background. */
  readonly isQuiet?: boolean
}

export function StateBadge({ state, isQuiet = false }: StateBadgeProps) {
  const { tone, meaning } = STATES[state]
  return (
    <Tooltip label={meaning} multiline maw={280}>
      <span className={classes.badge} data-tone={tone} data-quiet={isQuiet || undefined}>
        <span aria-hidden="true" className={classes.shape}>
          {SHAPES[tone]}
        </span>
        {state}
      </span>
    </Tooltip>
  )
}

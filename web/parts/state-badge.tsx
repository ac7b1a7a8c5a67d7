// A state as a word with a shape and a colour: neither stands alone.
import { Tooltip } from '@mantine/core'
import classes from './state-badge.module.css'
import { lastKnown, STATES, type State, type Tone } from './state-words.ts'

const SHAPES: Readonly<Record<Tone, string>> = { good: '●', busy: '◐', warn: '▲', bad: '◆', none: '○' }

interface StateBadgeProps {
  readonly state: State
  /** Of a list of so many badges that only those that matter should have a background. */
  readonly isQuiet?: boolean
  /** Of a cluster that is silent now: what was good then is not known to be so still. */
  readonly isPast?: boolean
}

export function StateBadge({ state, isQuiet = false, isPast = false }: StateBadgeProps) {
  const { tone, meaning } = isPast ? lastKnown(STATES[state]) : STATES[state]
  return (
    <ToneBadge tone={tone} meaning={meaning} isQuiet={isQuiet}>
      {state}
    </ToneBadge>
  )
}

interface ToneBadgeProps {
  readonly tone: Tone
  readonly meaning?: string
  readonly isQuiet?: boolean
  readonly children: string
}

/** Of a word that is no state of a cluster or of a rollout. */
export function ToneBadge({ tone, meaning, isQuiet = false, children }: ToneBadgeProps) {
  const badge = (
    <span className={classes.badge} data-tone={tone} data-quiet={isQuiet || undefined}>
      <span aria-hidden="true" className={classes.shape}>
        {SHAPES[tone]}
      </span>
      {children}
    </span>
  )
  if (meaning === undefined) return badge
  return (
    <Tooltip label={meaning} multiline maw={280}>
      {badge}
    </Tooltip>
  )
}

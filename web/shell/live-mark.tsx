// Whether what is on the screen follows the service at once, or is asked for in turns.
import { Tooltip } from '@mantine/core'
import { type LiveState, useLiveState } from '../api/live.ts'
import classes from './live-mark.module.css'

const WORDS: Readonly<Record<LiveState, { readonly name: string; readonly meaning: string }>> = {
  connecting: { name: 'connecting', meaning: 'The stream of changes is being opened.' },
  live: { name: 'live', meaning: 'Changes arrive as they happen.' },
  polling: {
    name: 'not live',
    meaning: 'The stream of changes is down: everything is read again every 20 seconds until it is back.',
  },
}

export function LiveMark() {
  const state = useLiveState()
  const { name, meaning } = WORDS[state]
  return (
    <Tooltip label={meaning} multiline maw={260}>
      <output className={classes.mark} data-state={state}>
        {name}
      </output>
    </Tooltip>
  )
}

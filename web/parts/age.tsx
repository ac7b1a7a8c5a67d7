// How long ago something was, counting on; what is older than it should be is marked as stale.
import { howLong } from '../../src/base/relative-time.ts'
import { TICK_MS, useServerNow } from '../api/server-clock.ts'
import classes from './age.module.css'

interface AgeProps {
  /** RFC 3339; null when it is not known, or never was. */
  readonly at: string | null | undefined
  /** From this age on it is stale. */
  readonly staleAfterMs?: number | undefined
  /** Instead of an age, where there is no time. */
  readonly never?: string
}

export function Age({ at, staleAfterMs, never = 'unknown' }: AgeProps) {
  const now = useServerNow()
  if (!at) return <span className={classes.none}>{never}</span>
  const ms = now - Date.parse(at)
  const isStale = staleAfterMs !== undefined && ms > staleAfterMs
  // The clock ticks every second: what was read since then is of now.
  const text = ms > -TICK_MS ? `${howLong(Math.max(0, ms))} ago` : `in ${howLong(-ms)}`
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()} className={classes.age}>
      {text}
      {isStale && <span className={classes.stale}>stale</span>}
    </time>
  )
}

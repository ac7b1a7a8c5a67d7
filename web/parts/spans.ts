// How long something lasts that somebody begins now: a hold, a freeze.
import { atServer } from '../api/server-clock.ts'

const HOUR_MS = 3_600_000
/** For how many hours. */
export const FOR_EVER = '0'
export const SPANS = [
  { value: '2', label: '2 hours' },
  { value: '24', label: 'a day' },
  { value: '72', label: '3 days' },
  { value: '168', label: 'a week' },
  { value: FOR_EVER, label: 'until somebody ends it' },
]

/** When it ends, by the clock of the service. */
export function untilOf(hours: string): string | undefined {
  if (hours === FOR_EVER) return undefined
  return atServer(Math.round(Date.now() / 1000) * 1000 + Number(hours) * HOUR_MS)
}

/** The same as a flag of the command line. */
export function hoursFlag(hours: string): string {
  return hours === FOR_EVER ? '' : ` --for ${hours}h`
}

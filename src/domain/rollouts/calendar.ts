// When recurring windows are open: cron expressions in time zones. Times are milliseconds since the epoch.
import { Cron } from 'croner'
import { getOrSet } from '../../base/get-or-set.ts'
import type { Detail } from '../../base/problem.ts'
import type { Window } from './rollout.ts'

/** Whether a window is open at a moment, and until when it stays so; `until` is undefined where no end is in sight. */
export interface Phase {
  readonly isOpen: boolean
  readonly until: number | undefined
}

/** A schedule that names no time after this one names none at all. */
const EARLIEST = Date.UTC(2000, 0, 1)
const FIELDS = 5
/** Openings that follow each other without a gap, at most: beyond these no end is in sight. */
const MAX_CHAIN = 500
/** Windows that are kept with their schedule and last phase. */
const MAX_KEPT = 1000

/** Everything wrong with a window's schedule; paths are those of its fields. */
export function checkWindow({ cron, zone }: Pick<Window, 'cron' | 'zone'>): Detail[] {
  if (zone !== undefined && !isZone(zone))
    return [
      {
        path: '/zone',
        message: `must be an IANA time zone, such as Europe/Berlin or UTC, not ${JSON.stringify(zone)}`,
      },
    ]
  const parsed = parseCron(cron, zone)
  if (typeof parsed === 'string')
    return [
      {
        path: '/cron',
        message: `must be a cron expression of five fields, such as "0 8 * * 1-5": ${parsed}`,
      },
    ]
  return parsed.nextRun(new Date(EARLIEST)) === null
    ? [{ path: '/cron', message: `names a time that never comes: "${cron}"` }]
    : []
}

/** Each opening lasts its seconds exactly, also where clocks are put forward or back meanwhile. */
export function phaseAt(window: Window, now: number): Phase {
  const known = keptOf(window)
  if (!known.phase || now < known.from || now >= known.until)
    Object.assign(known, phaseOf(known.schedule, window.duration_s * 1000, now), { from: now })
  return known.phase as Phase
}

/** The first opening that begins after a moment; undefined where there is none. */
export function nextOpening(window: Window, after: number): number | undefined {
  return next(keptOf(window).schedule, after)
}

/** The first moment from `from` on at which a window is open. */
export function firstOpen(window: Window, from: number): number | undefined {
  return phaseAt(window, from).isOpen ? from : nextOpening(window, from)
}

/** A phase, and until when it is known to last. */
function phaseOf(
  schedule: Cron | undefined,
  durationMs: number,
  now: number,
): Pick<Kept, 'until'> & { readonly phase: Phase } {
  // Only an opening that began later than this is still open.
  const begun = next(schedule, now - durationMs)
  if (begun === undefined || begun > now)
    return { phase: { isOpen: false, until: begun }, until: begun ?? Number.POSITIVE_INFINITY }
  let last = begun
  for (let i = 0; i < MAX_CHAIN; i++) {
    const until = last + durationMs
    const following = next(schedule, last)
    if (following === undefined || following > until) return { phase: { isOpen: true, until }, until }
    last = following
  }
  return { phase: { isOpen: true, until: undefined }, until: last + durationMs }
}

function next(schedule: Cron | undefined, after: number): number | undefined {
  return schedule?.nextRun(new Date(after))?.getTime()
}

/** A window's schedule with its last phase, and when that is known to last from and until. */
interface Kept {
  readonly schedule: Cron | undefined
  phase?: Phase
  from: number
  until: number
}

const kept = new Map<string, Kept>()

function keptOf({ cron, zone = 'UTC', duration_s }: Window): Kept {
  if (kept.size >= MAX_KEPT) kept.clear()
  return getOrSet(kept, `${cron}\n${zone}\n${duration_s}`, () => {
    const parsed = isZone(zone) ? parseCron(cron, zone) : ''
    return { schedule: typeof parsed === 'string' ? undefined : parsed, from: 0, until: 0 }
  })
}

/** Returns what is wrong with an expression that cannot be read. */
function parseCron(cron: string, zone = 'UTC'): Cron | string {
  const fields = cron.match(/\S+/g) ?? []
  if (fields.length !== FIELDS && !cron.startsWith('@')) return `it has ${fields.length}`
  // A text with a colon would be read as a date.
  if (cron.includes(':')) return 'it holds a colon'
  try {
    return new Cron(cron, { timezone: zone, mode: '5-part', paused: true })
  } catch (error) {
    return (error as Error).message.replace(/^CronPattern: /, '')
  }
}

function isZone(zone: string): boolean {
  // Offsets such as +01:00 know no daylight saving.
  if (!/^[A-Za-z]/.test(zone)) return false
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: zone })
    return true
  } catch {
    return false
  }
}

// Moments on the command line: revisions, times, and durations before or after now.
import { parseTime } from '../../base/time.ts'
import { usage } from '../failure.ts'

const UNITS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** RFC 3339 has four digits for the year. */
const YEAR_10000 = Date.UTC(10_000, 0)

export function parseRevision(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

/** Parses a required revision. */
export function needRevision(text: string): number {
  const revision = parseRevision(text)
  if (revision === undefined) throw usage(`a revision is a whole number, not "${text}"`)
  return revision
}

/** Parses a moment of the past: `2h` is two hours ago, a date its first moment in UTC. */
export function parseMoment(text: string, flag: string, now: Date): string {
  const time = shifted(text, now, -1) ?? parseDay(text)
  if (time === undefined) {
    const revision = flag === '--since' || flag === '--until' ? '' : 'a revision, or '
    throw usage(`${flag} must be ${revision}like 2h, 3d, 2026-01-31 or 2026-01-31T12:00:00Z, not "${text}"`)
  }
  return time
}

/** Parses a moment to come: `90d` is in ninety days, a date its first moment in UTC. */
export function parseExpiry(text: string, flag: string, now: Date): string {
  const time = shifted(text, now, 1) ?? parseDay(text)
  if (time === undefined)
    throw usage(`${flag} must be like 12h, 90d, 2027-01-31 or 2027-01-31T12:00:00Z, not "${text}"`)
  return time
}

function shifted(text: string, now: Date, direction: 1 | -1): string | undefined {
  const [, number = '', unit = ''] = /^(\d+)([smhdw])$/.exec(text) ?? []
  const time = now.getTime() + direction * Number(number) * (UNITS[unit] ?? 0)
  return unit !== '' && time >= 0 && time < YEAR_10000 ? new Date(time).toISOString() : undefined
}

function parseDay(text: string): string | undefined {
  return parseTime(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text)
}

/** Parses --at: a revision or a moment, as the API takes it. */
export function parseAt(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  return parseRevision(text) === undefined ? parseMoment(text, '--at', new Date()) : text
}

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

const LIKE = '2026-01-31, "2026-01-31 12:00" or 2026-01-31T12:00:00+02:00 (UTC without a zone)'

/** Parses a moment of the past: `1h30m` is so long ago, a day its first moment. What names no zone is in UTC. */
export function parseMoment(text: string, flag: string, now: Date): string {
  const time = shifted(text, now, -1) ?? namedDay(text, now) ?? parseDay(text)
  if (time === undefined) {
    const revision = flag === '--since' || flag === '--until' ? '' : 'a revision, or '
    throw usage(`${flag} must be ${revision}like 2h, 1h30m, 3d, yesterday, ${LIKE}, not "${text}"`)
  }
  return time
}

/** Parses a moment to come: `90d` is in ninety days, a day its first moment. What names no zone is in UTC. */
export function parseExpiry(text: string, flag: string, now: Date): string {
  const time = shifted(text, now, 1) ?? parseDay(text)
  if (time === undefined) throw usage(`${flag} must be like 12h, 90d, ${LIKE}, not "${text}"`)
  return time
}

/** The largest unit first, each once. */
const DURATION = /^(?=\d)(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/

function shifted(text: string, now: Date, direction: 1 | -1): string | undefined {
  const found = DURATION.exec(text)
  if (!found) return undefined
  const units = [UNITS.w, UNITS.d, UNITS.h, UNITS.m, UNITS.s]
  const ms = units.reduce((sum: number, unit = 0, i) => sum + Number(found[i + 1] ?? 0) * unit, 0)
  const time = now.getTime() + direction * ms
  return time >= 0 && time < YEAR_10000 ? new Date(time).toISOString() : undefined
}

function namedDay(text: string, now: Date): string | undefined {
  const daysAgo = ['today', 'yesterday'].indexOf(text)
  if (daysAgo < 0) return undefined
  const day = new Date(now.getTime() - daysAgo * (UNITS.d ?? 0)).toISOString()
  return `${day.slice(0, 10)}T00:00:00.000Z`
}

const DAY = /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?)?([Zz]|[+-]\d\d:\d\d)?$/

/** A day, or a time of it, in UTC unless it says where. */
function parseDay(text: string): string | undefined {
  const [, day, minute = '00:00', second = ':00', zone = 'Z'] = DAY.exec(text) ?? []
  return day === undefined ? undefined : parseTime(`${day}T${minute}${second}${zone}`)
}

/** Parses --at, or a flag like it: a revision or a moment, as the API takes it. */
export function parseAt(text: string | undefined, flag = '--at'): string | undefined {
  if (text === undefined) return undefined
  return parseRevision(text) === undefined ? parseMoment(text, flag, new Date()) : text
}

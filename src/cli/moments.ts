// Moments on the command line: revisions, times, and how long ago.
import { parseTime } from '../domain/time.ts'
import { usage } from './failure.ts'

const UNITS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

export function parseRevision(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

/** `2h` is two hours ago, a date its first moment in UTC. */
export function parseMoment(text: string, flag: string, now: Date): string {
  const [, number = '', unit = ''] = /^(\d+)([smhdw])$/.exec(text) ?? []
  const ago = now.getTime() - Number(number) * (UNITS[unit] ?? 0)
  if (unit !== '' && ago >= 0) return new Date(ago).toISOString()
  const time = parseTime(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text)
  if (time === undefined) {
    const revision = flag === '--since' || flag === '--until' ? '' : 'a revision, or '
    throw usage(`${flag} must be ${revision}like 2h, 3d, 2026-01-31 or 2026-01-31T12:00:00Z, not "${text}"`)
  }
  return time
}

/** A revision or a moment, as the API takes it. */
export function parseAt(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  return parseRevision(text) === undefined ? parseMoment(text, '--at', new Date()) : text
}

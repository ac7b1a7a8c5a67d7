// Times relative to now, for people: on a terminal and in the console.

/** A time relative to now in one unit: `3m ago`, `in 90d`. */
export function fromNow(time: string, now: Date): string {
  const ms = Date.parse(time) - now.getTime()
  const long = howLong(Math.abs(ms))
  return ms > 0 ? `in ${long}` : `${long} ago`
}

/** How long ago a time was, in one unit: `3m`; empty without a time. Clocks may differ: it is never negative. */
export function ageOf(time: string | null, now: Date): string {
  return time === null ? '' : howLong(Math.max(0, now.getTime() - Date.parse(time)))
}

/** A duration in one unit: `90s` is `2m`. */
export function howLong(ms: number): string {
  const seconds = Math.round(ms / 1000)
  const minutes = Math.round(seconds / 60)
  const hours = Math.round(minutes / 60)
  if (seconds < 60) return `${seconds}s`
  if (minutes < 60) return `${minutes}m`
  return hours < 48 ? `${hours}h` : `${Math.round(hours / 24)}d`
}

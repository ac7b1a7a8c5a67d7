// Times as the log has them: RFC 3339 in UTC, with milliseconds, comparable as text.

const TIME = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|[+-]([01]\d|2[0-3]):([0-5]\d))$/

/** Parses a time of RFC 3339; returns undefined when the text is not one, or not on the calendar. */
export function parseTime(text: string): string | undefined {
  const [, ...parts] = TIME.exec(text) ?? []
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.map(Number)
  if (!isDay(year, month, day) || hour > 23 || minute > 59 || second > 59) return undefined
  const time = new Date(text.toUpperCase()).toISOString()
  return time.length === 24 ? time : undefined
}

/** The message for a time that has to come and has not; undefined where it is still to come. */
export function overProblem(time: string, now: string): string | undefined {
  return time <= now ? `is ${time}, which is over already` : undefined
}

function isDay(year: number, month: number, day: number): boolean {
  const date = new Date(Date.UTC(year, month - 1, day))
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day && day > 0
}

// Times for people: relative on a terminal, local where there is room, and as the API has them everywhere else.

import { fromNow } from '../../base/relative-time.ts'
import type { Look } from './print.ts'

/** In a table: `3m ago` on a terminal, local with -o wide, in UTC in a pipe. */
export function shortTime({ width, isTerminal, wide }: Look, time: string, now = new Date()): string {
  if (!isTerminal) return time.replace(/\.\d+Z$/, 'Z')
  return wide || width === undefined ? localTime(time) : fromNow(time, now)
}

/** Where there is a line for it: local and relative on a terminal. */
export function longTime({ isTerminal }: Look, time: string, now = new Date()): string {
  return isTerminal ? `${localTime(time)} (${fromNow(time, now)})` : time
}

/** `2026-01-31 13:00:00 +01:00`, in the zone of the terminal. */
function localTime(time: string): string {
  const date = new Date(time)
  const ahead = -date.getTimezoneOffset()
  const local = new Date(date.getTime() + ahead * 60_000).toISOString()
  const two = (number: number): string => String(number).padStart(2, '0')
  const zone = `${ahead < 0 ? '-' : '+'}${two(Math.floor(Math.abs(ahead) / 60))}:${two(Math.abs(ahead) % 60)}`
  return `${local.slice(0, 10)} ${local.slice(11, 19)} ${zone}`
}

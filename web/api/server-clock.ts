// What time it is at the service: ages are of its clock, and that of a laptop may be wrong.
import { useSyncExternalStore } from 'react'

export const TICK_MS = 1000
let aheadMs = 0
let now = Date.now()
const listeners = new Set<() => void>()
let timer: number | undefined

/** The header has whole seconds, so a small difference is none. */
export function noteServerTime(headers: Headers): void {
  const time = Date.parse(headers.get('Date') ?? '')
  if (Number.isNaN(time)) return
  const difference = time - Date.now()
  aheadMs = Math.abs(difference) < 2 * TICK_MS ? 0 : difference
}

/** A moment of this machine's clock, by that of the service. */
export function atServer(ms: number): string {
  return new Date(ms + aheadMs).toISOString()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  if (timer === undefined) {
    now = Date.now()
    timer = window.setInterval(() => {
      now = Date.now()
      for (const each of listeners) each()
    }, TICK_MS)
  }
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    window.clearInterval(timer)
    timer = undefined
  }
}

/** Milliseconds since the epoch at the service, anew every second. */
export function useServerNow(): number {
  return useSyncExternalStore(subscribe, () => now) + aheadMs
}

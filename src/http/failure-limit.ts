// How often somebody may fail to say who they are. Whoever succeeds is never held up.
import { isIPv6 } from 'node:net'

const WINDOW_MS = 60_000
/** Those who fail are remembered up to here; the oldest is forgotten first. */
const MAX_KEYS = 20_000

export interface FailureLimit {
  /** Counts a failure; answers the seconds to wait when there were too many, and whether this was the first of those. */
  count(...keys: readonly string[]): { readonly wait: number; readonly isFirst: boolean } | undefined
  /** Whether the next failure would be one too many. */
  isReached(...keys: readonly string[]): boolean
}

export function createFailureLimit(perMinute: number, now: () => Date): FailureLimit {
  const windows = new Map<string, { readonly end: number; failures: number }>()

  function count(key: string, time: number): { wait: number; isFirst: boolean } | undefined {
    let window = windows.get(key)
    if (!window || window.end <= time) {
      window = { end: time + WINDOW_MS, failures: 0 }
      windows.delete(key)
      windows.set(key, window)
      if (windows.size > MAX_KEYS) windows.delete(windows.keys().next().value as string)
    }
    window.failures++
    if (window.failures <= perMinute) return undefined
    return { wait: Math.ceil((window.end - time) / 1000), isFirst: window.failures === perMinute + 1 }
  }

  return {
    count(...keys) {
      const time = now().getTime()
      const over = keys.flatMap((key) => count(key, time) ?? [])
      return over.length === 0
        ? undefined
        : { wait: Math.max(...over.map(({ wait }) => wait)), isFirst: over.some(({ isFirst }) => isFirst) }
    },
    isReached(...keys) {
      const time = now().getTime()
      return keys.some((key) => {
        const window = windows.get(key)
        return window !== undefined && window.end > time && window.failures >= perMinute
      })
    },
  }
}

/** One customer of IPv6 has a network of 2^64 addresses. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  // In the one form that everybody writes it in.
  const usual = new URL(`http://[${address.split('%')[0]}]`).hostname.slice(1, -1)
  const [head = '', tail = ''] = usual.split('::')
  const left = head.split(':').filter(Boolean)
  const right = tail.split(':').filter(Boolean)
  const groups = [...left, ...Array<string>(Math.max(8 - left.length - right.length, 0)).fill('0'), ...right]
  return `${groups.slice(0, 4).join(':')}::/64`
}

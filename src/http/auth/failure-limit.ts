// How often somebody may fail to say who they are. Whoever succeeds is never held up.
import { isIPv6 } from 'node:net'

const WINDOW_MS = 60_000
/** So many of each kind are remembered; the oldest is forgotten first. */
const MAX_KEYS = 20_000

/** Who failed: where from, and by its digest what with, where something was given that has one. */
interface Failure {
  readonly network: string
  readonly credential?: string | undefined
}

export interface FailureLimit {
  /** Counts a failure; answers the seconds to wait when there were too many, and whether this was the first of those. */
  count(failure: Failure): { readonly wait: number; readonly isFirst: boolean } | undefined
  /** Whether the next failure would be one too many. */
  isReached(failure: Failure): boolean
}

export function createFailureLimit(perMinute: number, now: () => Date): FailureLimit {
  // Apart: whoever makes up any number of credentials must not make their own address forgotten.
  const networks = new Windows(perMinute)
  const credentials = new Windows(perMinute)
  return {
    count({ network, credential }) {
      const time = now().getTime()
      const over = [
        networks.count(network, time),
        credential === undefined ? undefined : credentials.count(credential, time),
      ].filter((each) => each !== undefined)
      return over.length === 0
        ? undefined
        : { wait: Math.max(...over.map(({ wait }) => wait)), isFirst: over.some(({ isFirst }) => isFirst) }
    },
    isReached({ network, credential }) {
      const time = now().getTime()
      return (
        networks.isReached(network, time) ||
        (credential !== undefined && credentials.isReached(credential, time))
      )
    },
  }
}

class Windows {
  readonly #windows = new Map<string, { readonly end: number; failures: number }>()
  readonly #perMinute: number

  constructor(perMinute: number) {
    this.#perMinute = perMinute
  }

  count(key: string, time: number): { wait: number; isFirst: boolean } | undefined {
    const windows = this.#windows
    let window = windows.get(key)
    if (!window || window.end <= time) {
      window = { end: time + WINDOW_MS, failures: 0 }
      windows.delete(key)
      windows.set(key, window)
      if (windows.size > MAX_KEYS) windows.delete(windows.keys().next().value as string)
    }
    window.failures++
    if (window.failures <= this.#perMinute) return undefined
    return { wait: Math.ceil((window.end - time) / 1000), isFirst: window.failures === this.#perMinute + 1 }
  }

  isReached(key: string, time: number): boolean {
    const window = this.#windows.get(key)
    return window !== undefined && window.end > time && window.failures >= this.#perMinute
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

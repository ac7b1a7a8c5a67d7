// Rate limit of failed authentication. Requests with valid credentials are never limited.
import { isIPv6 } from 'node:net'

const WINDOW_MS = 60_000
/** Most networks, and most credentials, to count; the oldest window is dropped first. */
const MAX_KEYS = 20_000

/** The network that a failure came from, and the digest of the credential, where there is one. */
interface Failure {
  readonly network: string
  readonly credential?: string | undefined
}

export interface FailureLimit {
  /** Counts a failure. Beyond the limit, returns the seconds to wait and whether this failure was the first beyond it. */
  count(failure: Failure): { readonly wait: number; readonly isFirst: boolean } | undefined
  /** Whether the next failure would be beyond the limit. */
  isReached(failure: Failure): boolean
}

export function createFailureLimit(perMinute: number, now: () => Date): FailureLimit {
  // Counted apart: a client that invents many credentials must not push its own network out of the map.
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

/** An IPv6 address counts as its /64: one customer has that many addresses. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  // `URL` writes the address in its canonical form.
  const usual = new URL(`http://[${address.split('%')[0]}]`).hostname.slice(1, -1)
  const [head = '', tail = ''] = usual.split('::')
  const left = head.split(':').filter(Boolean)
  const right = tail.split(':').filter(Boolean)
  const groups = [...left, ...Array<string>(Math.max(8 - left.length - right.length, 0)).fill('0'), ...right]
  return `${groups.slice(0, 4).join(':')}::/64`
}

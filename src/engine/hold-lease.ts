// Work that one process at a time may do: it runs here while this process has the lease.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Lease, type Store, StoreError } from '../store/store.ts'

export interface LeaseOptions {
  readonly name: string
  /** This process, by a name that no other one has. */
  readonly holder: string
  /** How long the others wait for a holder that is silent. */
  readonly ttlMs?: number
}

const TTL_MS = 15_000
/** How many times a lease is renewed before it would be over. */
const RENEWALS = 3

/**
 * Runs the work whenever this process has the lease, and tells it to stop when the lease may be lost; what it commits
 * with the lease is refused from the moment that another process has it. Answers how to stop, which gives it back.
 */
export function holdLease(
  store: Pick<Store, 'acquire' | 'release'>,
  { name, holder, ttlMs = TTL_MS }: LeaseOptions,
  work: (lease: Lease, lost: AbortSignal) => Promise<void>,
): () => Promise<void> {
  const stopped = new AbortController()
  let held:
    | { readonly lease: Lease; readonly lost: AbortController; readonly done: Promise<void> }
    | undefined
  let renewedAt = 0

  function begin(lease: Lease): void {
    const lost = new AbortController()
    held = { lease, lost, done: work(lease, lost.signal) }
    // A lease whose work has ended is kept: the work is done, here.
    held.done.catch(() => {})
  }

  async function end(): Promise<void> {
    held?.lost.abort()
    await held?.done.catch(() => {})
    held = undefined
  }

  async function renew(): Promise<void> {
    const asked = performance.now()
    // Whoever cannot be sure to have it does not, and a store that is stalled may take longer to say so.
    const unsure = setTimeout(
      () => held?.lost.abort(),
      Math.max(0, renewedAt + ttlMs * (1 - 1 / RENEWALS) - asked),
    )
    try {
      const lease = await store.acquire(name, holder, ttlMs)
      if (lease.holder === holder) renewedAt = asked
      const isLost = lease.holder !== holder || lease.term !== held?.lease.term || held.lost.signal.aborted
      if (isLost) await end()
      if (!held && lease.holder === holder) begin(lease)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      if (performance.now() - renewedAt >= ttlMs * (1 - 1 / RENEWALS)) await end()
    } finally {
      clearTimeout(unsure)
    }
  }

  async function run(): Promise<void> {
    const { signal } = stopped
    while (!signal.aborted) {
      await renew()
      const pause = (ttlMs / RENEWALS) * (0.75 + Math.random() / 4)
      await sleep(pause, undefined, { signal, ref: false }).catch(() => {})
    }
    const lease = held?.lease
    await end()
    if (lease) await store.release(lease).catch(() => {})
  }

  const running = run()
  return async () => {
    stopped.abort()
    await running
  }
}

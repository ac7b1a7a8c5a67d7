// Which process takes the steps of rollouts: the holder of a lease, which is taken and renewed only when there is a step.
import { randomUUID } from 'node:crypto'
import type { Lease, Leases } from '../../store/leases.ts'

const LEASE = 'rollouts'
const LEASE_MS = 15_000
/** A lease that is younger is not renewed. */
const FRESH_MS = 5000

export class Leadership {
  readonly #leases: Leases
  /** Begins with the id of the process, for people who look into the store. */
  readonly #holder = `${process.pid}-${randomUUID()}`
  #lease: Lease | undefined
  #renewedAt = Number.NEGATIVE_INFINITY

  constructor(leases: Leases) {
    this.#leases = leases
  }

  /** Whether this process may act. Two that both think so for a moment do no harm: each step expects a revision. */
  async take(): Promise<boolean> {
    const begun = performance.now()
    if (this.#lease && begun < this.#renewedAt + FRESH_MS) return true
    const lease = await this.#leases.acquire(LEASE, this.#holder, LEASE_MS)
    this.#lease = lease.holder === this.#holder ? lease : undefined
    this.#renewedAt = begun
    return this.#lease !== undefined
  }

  /** Lets another process act at once, not only when the lease has run out. */
  async resign(): Promise<void> {
    const lease = this.#lease
    this.#lease = undefined
    if (lease) await this.#leases.release(lease)
  }
}

// Leases: the right to do what one process at a time may do.

export interface Lease {
  readonly name: string
  readonly holder: string
  /** Grows whenever the lease changes hands: what was begun under an earlier one is known by it. */
  readonly term: number
}

/** Every method throws StoreError when the store cannot do its part. */
export interface Leases {
  /** Takes a lease that nobody has, or renews one's own, for a time by the store's clock; returns who has it now. */
  acquire(name: string, holder: string, ms: number): Promise<Lease>

  /** Gives a lease back, unless another holder has it already. */
  release(lease: Lease): Promise<void>
}

// Leases: the right to do what one process at a time may do.

export interface Lease {
  readonly name: string
  readonly holder: string
  /** A fencing token: it grows whenever the lease changes hands, so that work under an earlier lease is recognised. */
  readonly term: number
}

/** Every method throws StoreError when the store cannot do its part. */
export interface Leases {
  /** Takes a lease that is free, or renews the holder's own, for `ms` by the store's clock; returns the current lease. */
  acquire(name: string, holder: string, ms: number): Promise<Lease>

  /** Gives a lease back, unless another holder has it already. */
  release(lease: Lease): Promise<void>
}

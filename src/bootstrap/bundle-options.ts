// What a bootstrap bundle can be asked for.

/** What a cluster reports: each component that is ready, only whole answers that are applied, or nothing. */
export const ACK_LEVELS = ['components', 'types', 'off'] as const

export interface BundleOptions {
  /**
   * `concrete` has the cluster's own URLs. `identity` is the same for every cluster, which learns its name from a
   * ConfigMap.
   */
  readonly flavor: 'concrete' | 'identity'
  /** Where clusters reach the service. */
  readonly apiUrl: string
  /** How often each provider polls, as Flux writes durations. */
  readonly interval: string
  /** The existing Secret that holds the token; without it the bundle has a Secret of its own, still empty. */
  readonly tokenSecret: string | undefined
  /** The Secret with a client certificate, or with the CA that signed the server's certificate. */
  readonly certSecret: string | undefined
  /** False where Flux is installed already. */
  readonly fluxInstance: boolean
  readonly ack: (typeof ACK_LEVELS)[number]
  /** Whether Flux's events are sent to the service. */
  readonly events: boolean
}

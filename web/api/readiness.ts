// What the readiness probe says.

export interface Readiness {
  readonly status: 'ready' | 'degraded' | 'unavailable'
  readonly mode?: 'read-only' | 'crud'
  readonly revision?: number
  /** How long ago the store was last followed. */
  readonly age_seconds?: number
  readonly reason?: string
}

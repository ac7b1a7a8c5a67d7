// When a cluster counts as late and as offline, and for how long its changes of state are kept.

export interface StatusLimits {
  /** A cluster is late, and then offline, after this many of its intervals. */
  readonly late: number
  readonly offline: number
  /** How long transitions are kept. */
  readonly retentionMs: number
}

export const DEFAULT_STATUS_LIMITS: StatusLimits = { late: 1.5, offline: 3, retentionMs: 30 * 86_400_000 }

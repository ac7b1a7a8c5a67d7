// How many clusters may lose something in one write without confirmation.

/** Shares of clusters, in percent. */
export interface BrakePercents {
  /** The share of all clusters. */
  readonly percent: number
  /** The share of the clusters of one environment, and of those that have one input. */
  readonly groupPercent: number
}

export const DEFAULT_BRAKE: BrakePercents = { percent: 10, groupPercent: 25 }

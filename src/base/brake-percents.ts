// How many clusters may lose something in one write without confirmation.

/** Shares of clusters. */
export interface BrakePercents {
  /** Of all clusters. */
  readonly percent: number
  /** Of the clusters of one environment, and of those that have one input. */
  readonly groupPercent: number
}

export const DEFAULT_BRAKE: BrakePercents = { percent: 10, groupPercent: 25 }

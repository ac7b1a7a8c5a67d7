// How far a copy of a log is behind what it follows.

/** Compares the state in memory with its store, or a mirror's copy with its upstream. */
export interface ReplicationStatus {
  /** The newest revision that the source is known to have. */
  readonly storeRevision: number
  /** Time since the source last confirmed that nothing is missing here; 0 while it can be followed. */
  readonly stalenessMs: number
  /** Why the source cannot be followed now; undefined while it can. */
  readonly problem: string | undefined
}

/** Where a transfer has come to, of where it ends. */
export type Progress = (revision: number, until: number) => void

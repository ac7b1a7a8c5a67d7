// How much the service takes at once, as the process sets it.

export interface Limits {
  /** Requests other than polls that may be under way at once; half as many writes. */
  readonly requests: number
  /** Open connections, and how many of them may come from one address; half of them by default. */
  readonly connections: number
  readonly connectionsPerAddress?: number
  /** Whether an address is a trusted proxy, whose connections carry many clients. */
  readonly trusts?: (address: string) => boolean
  /** How long the headers of a request may take, and the whole of it. */
  readonly headersMs?: number
  readonly requestMs?: number
  /** How long a connection may go without a byte while a request is under way. */
  readonly stalledMs?: number
  /** Streams of revisions that may be open at once. */
  readonly watchers?: number
  readonly watchersPerCaller?: number
  /** How often a heartbeat is written to a stream. */
  readonly heartbeatMs?: number
  /** How much of a stream may wait for its reader, and for how long. */
  readonly unsentBytes?: number
  readonly stuckMs?: number
}

/** How long a connection without a request stays open. */
export const KEEP_ALIVE_MS = 72_000

// Idempotency records: the answers to writes that may be sent again.

/** The answer to a write with an idempotency key. */
export interface IdempotencyRecord {
  readonly key: string
  /** Tells a repetition from another request with the same key. */
  readonly fingerprint: string
  /** RFC 3339, UTC. */
  readonly time: string
  readonly answer: string
}

/** A record is valid for a day. Every method throws StoreError when the store cannot do its part. */
export interface IdempotencyRecords {
  /** The record under a key that is valid at this time (RFC 3339, UTC). */
  find(key: string, now: string): Promise<IdempotencyRecord | undefined>

  /** Keeps the record of a write that changed nothing, unless a valid one is there under its key. */
  save(record: IdempotencyRecord): Promise<void>

  /** Every record that is valid at this time. */
  list(now: string): AsyncIterable<IdempotencyRecord>
}

const VALID_MS = 24 * 60 * 60 * 1000

/** Records from before this time have expired. */
export function expiredBefore(now: string): string {
  return new Date(Date.parse(now) - VALID_MS).toISOString()
}

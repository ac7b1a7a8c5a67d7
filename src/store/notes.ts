// Notes: rows beside the log, by kind and key. The newest one under a key stays, and no revision is made.

/** A row under a key, and the time that decides which of two stays. */
export interface Note {
  readonly key: string
  /** RFC 3339, UTC, as `Date.toISOString` writes it. */
  readonly time: string
  /** Text, often JSON; null where the time says it all. At most MAX_NOTE_LENGTH characters. */
  readonly value: string | null
}

/** Longer values belong in documents. */
export const MAX_NOTE_LENGTH = 16_384

/**
 * Every method throws StoreError when the store cannot do its part. A process that only reads may record and remove notes
 * too, where the database lets it; where it does not, they are left as they are without an error.
 */
export interface Notes {
  /**
   * Merges notes into those of a kind, in batches of one transaction each: of two notes under one key the newer one
   * stays, and of two with one time the one with the greater value. So the order of calls does not matter, nor does
   * repeating one, also after a failure that has left some batches written. Throws RangeError for a value that is too
   * long, before anything is written.
   */
  record(kind: string, notes: readonly Note[]): Promise<void>

  /** The notes of a kind, a page at a time and in any order: all of them, or those under the given keys. */
  read(kind: string, keys?: readonly string[]): AsyncIterable<Note>

  /**
   * The notes of a kind from a time on, that time included, a page at a time and in any order. A note that is replaced
   * meanwhile is not missed, and may come a second time as it is then.
   */
  readSince(kind: string, since: string): AsyncIterable<Note>

  /**
   * Whether another process may have written to the store since the last call; true at the first one. A store that cannot
   * tell has no such method.
   */
  othersWrote?(): Promise<boolean>

  /**
   * Removes the notes of a kind under the given keys, in batches of one transaction each. Keys without a note are ignored.
   * A note that is recorded afterwards is new, however old its time.
   */
  remove(kind: string, keys: readonly string[]): Promise<void>
}

/** Notes on when tokens were last used: the value is the client's address. */
export const TOKEN_USES = 'token_uses'

/** When a token was last used, and from where. */
export interface TokenUse {
  readonly id: string
  /** RFC 3339, UTC. */
  readonly time: string
  readonly address: string | null
}

export function noteOfUse({ id, time, address }: TokenUse): Note {
  return { key: id, time, value: address }
}

export function useOfNote({ key, time, value }: Note): TokenUse {
  return { id: key, time, address: value }
}

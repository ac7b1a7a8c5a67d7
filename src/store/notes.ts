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
export const MAX_NOTE_LENGTH = 4096

/**
 * Every method throws StoreError when the store cannot do its part. A process that only reads may record notes too, where
 * the database lets it; where it does not, they are dropped without an error.
 */
export interface Notes {
  /**
   * Merges notes into those of a kind, in batches of one transaction each: of two notes under one key the newer one
   * stays, and of two with one time the one with the greater value. So the order of calls does not matter, nor does
   * repeating one, also after a failure that has left some batches written.
   */
  record(kind: string, notes: readonly Note[]): Promise<void>

  /** The notes of a kind, a page at a time and in any order: all of them, or those under the given keys. */
  read(kind: string, keys?: readonly string[]): AsyncIterable<Note>
}

/** Throws RangeError for a value that is too long. */
export function checkNotes(notes: readonly Note[]): void {
  for (const { key, value } of notes)
    if (value !== null && value.length > MAX_NOTE_LENGTH)
      throw new RangeError(
        `the note under "${key}" has ${value.length} characters, more than ${MAX_NOTE_LENGTH}`,
      )
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

// When tokens were last used, to the minute: collected in memory, flushed to the store every minute.
import { noteOfUse, TOKEN_USES, type TokenUse, useOfNote } from '../store/notes.ts'
import type { Store, StoreError } from '../store/store.ts'
import { NoteBuffer } from './note-buffer.ts'

export interface TokenUses {
  /** Notes a use of a token; cheap enough for every poll. */
  note(id: string, address: () => string | undefined): void
  of(ids: readonly string[]): Promise<ReadonlyMap<string, TokenUse>>
  /** Flushes what is not in the store yet. */
  stop(): Promise<void>
}

export const MINUTE_MS = 60_000

/** Reports the first failed flush only, until one succeeds again. */
export function followUses(
  store: Pick<Store, 'notes'>,
  now: () => Date,
  failed: (error: StoreError) => void,
): TokenUses {
  /** All uses that this process has seen. */
  const seen = new Map<string, TokenUse>()
  let current = { minute: 0, time: '' }
  const buffer = new NoteBuffer({
    store,
    kind: TOKEN_USES,
    noteOf(id) {
      const use = seen.get(id)
      return use && noteOfUse(use)
    },
    flushMs: MINUTE_MS,
    failed,
  })

  return {
    note(id, address) {
      const minute = Math.floor(now().getTime() / MINUTE_MS)
      if (minute !== current.minute) current = { minute, time: new Date(minute * MINUTE_MS).toISOString() }
      const { time } = current
      if (seen.get(id)?.time === time) return
      seen.set(id, { id, time, address: address() ?? null })
      buffer.touch(id)
    },
    async of(ids) {
      const known = new Map<string, TokenUse>()
      for await (const note of store.notes.read(TOKEN_USES, ids)) known.set(note.key, useOfNote(note))
      for (const id of ids) {
        const use = seen.get(id)
        if (use && use.time >= (known.get(id)?.time ?? '')) known.set(id, use)
      }
      return known
    },
    stop: () => buffer.stop(),
  }
}

// Keys of notes that changed in memory, whose notes are flushed to the store in the background.
import { ReportOnce } from '../runtime/report-once.ts'
import { TimeSlice } from '../runtime/time-slice.ts'
import type { Note, Notes } from '../store/notes.ts'
import { StoreError } from '../store/store.ts'

export interface NoteBufferParts {
  /** Asked for its notes at every flush: a mirror has none before its first copy, and others after the next. */
  readonly store: { readonly notes: Pick<Notes, 'record'> }
  readonly kind: string
  /** The note under a key as it is now; undefined when there is none any more, and then nothing is written. */
  readonly noteOf: (key: string) => Note | undefined
  readonly flushMs: number
  /** Called with the first failure, and not again until a flush succeeds. */
  readonly failed: (error: StoreError) => void
}

/** Notes to record at once: as many keys are tried again after a failure. */
const NOTES_AT_ONCE = 1000

/** Flushes every `flushMs` until it is stopped. Keys whose flush failed are tried again at the next one. */
export class NoteBuffer {
  readonly #parts: NoteBufferParts
  readonly #reports: ReportOnce<StoreError>
  readonly #timer: NodeJS.Timeout
  readonly #touched = new Set<string>()
  /** Keys whose notes are being recorded, without those touched again. */
  readonly #recording = new Set<string>()
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined

  constructor(parts: NoteBufferParts) {
    this.#parts = parts
    this.#reports = new ReportOnce({ failed: parts.failed })
    this.#timer = setInterval(() => this.#running ?? this.flush(), parts.flushMs)
    this.#timer.unref()
  }

  /** Distinct keys whose notes are not in the store yet. */
  get pending(): number {
    return this.#touched.size + this.#recording.size
  }

  /** Cheap enough for every poll. */
  touch(key: string): void {
    this.#touched.add(key)
    this.#recording.delete(key)
  }

  /**
   * Resolves when everything touched before the call is in the store, or the store has failed, which is reported. One
   * flush at a time: calls during one share the next.
   */
  flush(): Promise<void> {
    if (!this.#running) {
      this.#running = this.#flushAll().finally(() => {
        this.#running = undefined
      })
      return this.#running
    }
    const again = (): Promise<void> => {
      this.#next = undefined
      return this.flush()
    }
    this.#next ??= this.#running.then(again, again)
    return this.#next
  }

  /** Flushes what is left. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }

  async #flushAll(): Promise<void> {
    const timeSlice = new TimeSlice()
    let left = this.#touched.size
    if (left === 0) return
    let notes: Note[] = []
    let recorded = 0
    try {
      // Keys touched meanwhile come last, and are left to the next flush.
      for (const key of this.#touched) {
        if (timeSlice.expired) await timeSlice.yield()
        const note = this.#take(key)
        if (note) notes.push(note)
        if (--left > 0 && notes.length < NOTES_AT_ONCE) continue
        recorded += await this.#record(notes)
        notes = []
        if (left === 0) break
      }
      if (recorded > 0) this.#reports.succeed()
    } catch (error) {
      for (const key of this.#recording) this.#touched.add(key)
      this.#recording.clear()
      if (!(error instanceof StoreError)) throw error
      this.#reports.fail(error)
    }
  }

  #take(key: string): Note | undefined {
    this.#touched.delete(key)
    const note = this.#parts.noteOf(key)
    if (note) this.#recording.add(key)
    return note
  }

  /** Returns how many. */
  async #record(notes: readonly Note[]): Promise<number> {
    const { store, kind } = this.#parts
    if (notes.length > 0) await store.notes.record(kind, notes)
    this.#recording.clear()
    return notes.length
  }
}

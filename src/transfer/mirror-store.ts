// The store of a mirror: the copy that it serves, unavailable until everything was copied once.
import type { IdempotencyRecords } from '../store/idempotency.ts'
import type { Leases } from '../store/leases.ts'
import type { Notes } from '../store/notes.ts'
import type { Store } from '../store/store.ts'

interface Mirrored {
  /** The copy; throws StoreError while there is none. */
  readonly copy: () => Store
  /** Resolves when the copy of an earlier process is open, or there is none. */
  readonly opened: Promise<unknown>
}

/** Not private: the engine follows what the mirror copies. `close` leaves the copy open; the mirror closes it. */
export class MirrorStore implements Store {
  readonly #copy: () => Store
  readonly #opened: Promise<unknown>
  readonly #watchers = new Set<() => void>()

  constructor({ copy, opened }: Mirrored) {
    this.#copy = copy
    this.#opened = opened
  }

  /** Reports to the watchers that the copy may have new revisions. */
  notifyWatchers(): void {
    for (const moved of this.#watchers) moved()
  }

  get notes(): Notes {
    return this.#copy().notes
  }

  get idempotency(): IdempotencyRecords {
    return this.#copy().idempotency
  }

  get leases(): Leases {
    return this.#copy().leases
  }

  async head(): ReturnType<Store['head']> {
    await this.#opened
    return this.#copy().head()
  }

  watch(moved: () => void): () => void {
    this.#watchers.add(moved)
    return () => this.#watchers.delete(moved)
  }

  async close(): Promise<void> {}

  load(...given: Parameters<Store['load']>): ReturnType<Store['load']> {
    return this.#copy().load(...given)
  }

  hashOf(...given: Parameters<Store['hashOf']>): ReturnType<Store['hashOf']> {
    return this.#copy().hashOf(...given)
  }

  changesSince(...given: Parameters<Store['changesSince']>): ReturnType<Store['changesSince']> {
    return this.#copy().changesSince(...given)
  }

  commit(...given: Parameters<Store['commit']>): ReturnType<Store['commit']> {
    return this.#copy().commit(...given)
  }

  withWriteLock<T>(run: () => Promise<T>): Promise<T> {
    return this.#copy().withWriteLock(run)
  }

  documents(): ReturnType<Store['documents']> {
    return this.#copy().documents()
  }

  log(...given: Parameters<Store['log']>): ReturnType<Store['log']> {
    return this.#copy().log(...given)
  }

  history(...given: Parameters<Store['history']>): ReturnType<Store['history']> {
    return this.#copy().history(...given)
  }

  changedAfter(...given: Parameters<Store['changedAfter']>): ReturnType<Store['changedAfter']> {
    return this.#copy().changedAfter(...given)
  }

  revisionAt(...given: Parameters<Store['revisionAt']>): ReturnType<Store['revisionAt']> {
    return this.#copy().revisionAt(...given)
  }

  anchor(): ReturnType<Store['anchor']> {
    return this.#copy().anchor()
  }

  initFromSnapshot(...given: Parameters<Store['initFromSnapshot']>): ReturnType<Store['initFromSnapshot']> {
    return this.#copy().initFromSnapshot(...given)
  }

  prune(...given: Parameters<Store['prune']>): ReturnType<Store['prune']> {
    return this.#copy().prune(...given)
  }

  setImportInProgress(inProgress: boolean): Promise<void> {
    return this.#copy().setImportInProgress(inProgress)
  }
}

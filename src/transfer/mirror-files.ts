// The files of a mirror: its copy, the first copy while it is being made, and when the copy was last up to date.
import { closeSync, existsSync, openSync, rmSync, statSync, utimesSync } from 'node:fs'
import { moveIntoPlace } from '../runtime/replace-file.ts'
import { openSqliteStore } from '../store/sqlite/sqlite.ts'
import { type Store, StoreError } from '../store/store.ts'

export class MirrorFiles {
  readonly path: string
  readonly #draft: string
  /** The file whose mtime is when the copy was last up to date; the database's mtime changes for other reasons. */
  readonly #seen: string

  constructor(path: string) {
    this.path = path
    this.#draft = `${path}.copy`
    this.#seen = `${path}.seen`
  }

  /** Opens the copy of an earlier process; undefined when there is none. */
  openFound(): Store | undefined {
    return existsSync(this.path) ? openSqliteStore({ path: this.path, write: true }) : undefined
  }

  openDraft(): Store {
    return openSqliteStore({ path: this.#draft, write: true })
  }

  removeDraft(): void {
    removeLogs(this.#draft)
    rmSync(this.#draft, { force: true })
  }

  /** Renames the draft, which must be closed, to the copy, and opens the copy. */
  async useDraft(): Promise<Store> {
    // Revisions in the write-ahead log would be lost, and the copy would be cut short.
    if ((statSync(`${this.#draft}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0)
      throw new StoreError(`${this.#draft}-wal: could not be brought into the file beside it`)
    removeLogs(this.#draft)
    removeLogs(this.path)
    await moveIntoPlace(this.#draft, this.path)
    return openSqliteStore({ path: this.path, write: true })
  }

  /** When the copy was last up to date, in milliseconds of the wall clock. */
  get upToDateAt(): number | undefined {
    return timeOf(this.#seen) ?? timeOf(this.path)
  }

  /** A failure is ignored: the next process only takes the copy for older than it is. */
  writeUpToDateAt(time: Date): void {
    try {
      closeSync(openSync(this.#seen, 'a'))
      utimesSync(this.#seen, time, time)
    } catch {
      // The disk is full, or the folder is read-only.
    }
  }
}

function timeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs
}

function removeLogs(database: string): void {
  for (const end of ['-wal', '-shm']) rmSync(`${database}${end}`, { force: true })
}

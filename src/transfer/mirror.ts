// Mirror mode: another service's log, copied into a file of its own and followed over HTTPS.
import { setTimeout as sleep } from 'node:timers/promises'
import type { EvidenceReport } from '../domain/status/evidence-report.ts'
import { backoff } from '../runtime/backoff.ts'
import { ReportOnce } from '../runtime/report-once.ts'
import { type Store, StoreError } from '../store/store.ts'
import { importLog } from './import-log.ts'
import { MirrorFiles } from './mirror-files.ts'
import { MirrorStore } from './mirror-store.ts'
import type { ReplicationStatus } from './replication-status.ts'
import { StreamError } from './transfer-items.ts'
import { Upstream } from './upstream.ts'

export interface MirrorOptions {
  /** The URL of the service to follow. */
  readonly url: string
  readonly token: () => string
  /** Copies only the clusters that this label selector matches; undefined for all. */
  readonly selector: string | undefined
  /** The file of the copy; the mirror's other files are beside it. */
  readonly path: string
  /** Called on the first failure after a success; `onBack` on the first success after a failure. */
  readonly onProblem: (error: Error) => void
  readonly onBack: () => void
}

export interface Mirror {
  /** Unavailable until everything was copied once: a partial copy would take clusters back to an older state. */
  readonly store: Store
  /** How far the mirror is behind its upstream. */
  status(): ReplicationStatus
  /** Tells the upstream what clusters reported here; throws StoreError where it did not take it. */
  report(reports: readonly EvidenceReport[]): Promise<void>
  stop(): Promise<void>
}

/** How often to pull without a notification: a proxy may hold back the stream of changes. */
const PULL_MS = 5_000
const FIRST_RETRY_MS = 500
const MAX_RETRY_MS = 30_000
/** A copy that was not confirmed for so long may be stale: the upstream is asked more often. */
const CONFIRMED_MS = 15_000
const NOTE_MS = 5_000

export function startMirror(options: MirrorOptions): Mirror {
  const mirror = new RunningMirror(options)
  return {
    store: mirror.store,
    status: () => mirror.status,
    report: (reports) => mirror.report(reports),
    stop: () => mirror.stop(),
  }
}

class RunningMirror {
  readonly store: MirrorStore
  readonly #selector: string | undefined
  readonly #files: MirrorFiles
  readonly #upstream: Upstream
  readonly #reports: ReportOnce<Error>
  readonly #stopped = new AbortController()
  readonly #running: Promise<unknown>
  #copy: Store | undefined
  /** The last revision that was copied, and the last one that the upstream is known to have. */
  #copied = 0
  #newest = 0
  #confirmedAt: number
  #notedAt = Number.NEGATIVE_INFINITY
  #wakeUp = Promise.withResolvers<void>()

  constructor({ url, token, selector, path, onProblem, onBack }: MirrorOptions) {
    this.#selector = selector
    this.#files = new MirrorFiles(path)
    this.#upstream = new Upstream({ url, token, signal: this.#stopped.signal })
    this.#reports = new ReportOnce({
      failed: onProblem,
      restored: onBack,
      isNews: (error, last) => !isTransient(error) && error.message !== last.message,
    })
    this.#confirmedAt = monotonic(this.#files.upToDateAt ?? Date.now())
    const opened = this.#openFound(this.#files.openFound())
    this.store = new MirrorStore({ copy: () => this.#current(), opened })
    this.#running = Promise.all([this.#follow(opened), this.#watch()]).catch((error) => this.#fail(error))
  }

  get status(): ReplicationStatus {
    const stalenessMs = Math.max(0, performance.now() - this.#confirmedAt)
    const why =
      this.#reports.failure?.message ??
      (stalenessMs > CONFIRMED_MS ? 'it has not said for a while that nothing is missing here' : undefined)
    if (why === undefined) return { storeRevision: this.#newest, stalenessMs: 0, problem: undefined }
    return { storeRevision: this.#newest, stalenessMs, problem: `the upstream cannot be followed: ${why}` }
  }

  report(reports: readonly EvidenceReport[]): Promise<void> {
    return this.#upstream.report(reports)
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    this.#wakeUp.resolve()
    await this.#running
    await this.#copy?.close()
  }

  #current(): Store {
    if (this.#copy) return this.#copy
    const { failure } = this.#reports
    const why = failure === undefined ? '' : `: ${failure.message}`
    throw new StoreError(`the mirror has not copied everything from its upstream yet${why}`, {
      isTransient: true,
    })
  }

  /** A copy without a revision is not served: its import may have only begun. */
  async #openFound(found: Store | undefined): Promise<void> {
    if (!found) return
    const { revision } = await found.head()
    if (revision === 0) return found.close()
    this.#copied = revision
    this.#newest = revision
    this.#use(found)
  }

  #use(copy: Store): void {
    this.#copy = copy
    this.store.notifyWatchers()
  }

  async #follow(opened: Promise<void>): Promise<void> {
    await opened
    if (!this.#copy) await this.#retry(() => this.#copyAll())
    const copy = this.#copy
    while (copy && !this.#isStopped) {
      await this.#retry(() => this.#pullInto(copy))
      await this.#sleepUntilWoken(PULL_MS)
    }
  }

  /** The stream of changes is only a notification: revisions are always pulled, and checked. */
  async #watch(): Promise<void> {
    const delays = backoff({ first: PULL_MS, max: PULL_MS })
    while (!this.#isStopped) {
      try {
        const revisions = await this.#upstream.watch()
        this.#wakeUp.resolve()
        for await (const revision of revisions) this.#take(revision)
      } catch {
        // The pull reports the failure.
      }
      this.#wakeUp.resolve()
      await this.#sleep(delays.next())
    }
  }

  #take(revision: number): void {
    this.#newest = Math.max(this.#newest, revision)
    // While pulls fail, only their back-off decides when to try again.
    if (this.#newest > this.#copied && this.#reports.failure === undefined) this.#wakeUp.resolve()
  }

  /** Imports all new revisions of the upstream. */
  async #pull(into: Store): Promise<void> {
    const { revision } = await into.head()
    const { lines, stalenessMs } = await this.#upstream.log(revision, this.#selector)
    const { head } = await importLog(into, lines)
    this.#copied = head.revision
    this.#newest = head.revision
    this.#confirm(stalenessMs)
  }

  async #pullInto(copy: Store): Promise<void> {
    try {
      await this.#pull(copy)
    } catch (error) {
      if (!isUnfit(error)) throw error
      const way = `what is here is served on as it is. To follow this upstream from now on all the same, stop this mirror, delete ${this.#files.path} and start it again`
      throw new StoreError(`it ${error.message}; ${way}`, { cause: error })
    } finally {
      // Revisions that were imported before a failure are served too.
      this.store.notifyWatchers()
    }
  }

  async #copyAll(): Promise<void> {
    const draft = this.#files.openDraft()
    const failure = await this.#pull(draft).catch((error: Error) => error)
    await draft.close()
    if (!failure) return this.#use(await this.#files.useDraft())
    if (!isUnfit(failure)) throw failure
    // The draft is of another source. It was never served, so it can be deleted.
    this.#files.removeDraft()
    throw new StoreError(`it ${failure.message}; the copy is begun anew`, { cause: failure })
  }

  /** Notes that the copy was up to date `stalenessMs` ago: the upstream itself may be stale. */
  #confirm(stalenessMs: number): void {
    const now = performance.now()
    this.#confirmedAt = now - stalenessMs
    this.#reports.succeed()
    if (now - this.#notedAt < NOTE_MS) return
    this.#notedAt = now
    this.#files.writeUpToDateAt(new Date(Date.now() - stalenessMs))
  }

  #fail(error: Error): void {
    if (!this.#isStopped) this.#reports.fail(error)
  }

  get #isStopped(): boolean {
    return this.#stopped.signal.aborted
  }

  /** Runs something again and again, until it succeeds. */
  async #retry(run: () => Promise<void>): Promise<void> {
    const delays = backoff({ first: FIRST_RETRY_MS, max: MAX_RETRY_MS })
    while (!this.#isStopped) {
      try {
        return await run()
      } catch (error) {
        this.#fail(error as Error)
      }
      await this.#sleepUntilWoken(delays.next())
    }
  }

  async #sleepUntilWoken(ms: number): Promise<void> {
    await Promise.race([this.#sleep(ms), this.#wakeUp.promise])
    this.#wakeUp = Promise.withResolvers<void>()
  }

  #sleep(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: this.#stopped.signal, ref: false }).catch(() => {})
  }
}

/** Whether the lines are sound but do not continue this copy. */
function isUnfit(error: unknown): error is StreamError {
  return error instanceof StreamError && !error.isDamaged
}

/** Whether the failure is likely to be over soon; the messages of such failures vary. */
function isTransient(error: Error): boolean {
  return error instanceof StreamError ? error.isDamaged : error instanceof StoreError && error.isTransient
}

/** Converts a time of the wall clock to one of `performance.now()`. */
function monotonic(time: number): number {
  return performance.now() - Math.max(0, Date.now() - time)
}

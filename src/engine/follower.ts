// Follows the store: the state in memory, its place in the log, and how stale it may be.
import { State } from '../domain/documents/state.ts'
import type { Types } from '../domain/types/resource-type.ts'
import { runTimeSliced } from '../runtime/run-time-sliced.ts'
import { NO_HASH } from '../store/hash-chain.ts'
import { type Head, importInProgressError, type Store, StoreError } from '../store/store.ts'
import type { ReplicationStatus } from '../transfer/replication-status.ts'
import type { Snapshots } from './snapshot.ts'

/** What the store was used for when it failed. */
export type StoreUse = 'commit' | 'read' | 'follow' | 'uses' | 'status' | 'replicas' | 'snapshot'

export interface FollowerParts {
  readonly store: Store
  readonly types: Types
  readonly now: () => Date
  readonly onStoreError: (error: StoreError, doing: StoreUse) => void
  readonly onStoreBack: () => void
  /** Called every few seconds of a long load, with the number of documents that were read so far. */
  readonly onLoading: ((documents: number) => void) | undefined
  /** Only of a mirror: how far its copy is behind the upstream. */
  readonly upstream: (() => ReplicationStatus) | undefined
}

/** Of a load that takes long. */
const TELL_MS = 2000

interface Loaded {
  readonly state: State
  readonly head: Head
}

export class Follower {
  readonly state: State
  /** Resolves once there is a state to serve from. */
  readonly loaded: Promise<void>
  /** Why the store cannot be followed now; undefined while it can. */
  failure: StoreError | undefined
  readonly #parts: FollowerParts
  readonly #setLoaded: () => void
  readonly #subscribers = new Set<() => void>()
  #isLoaded = false
  /** The hash of the state's revision; a store with a diverged history has another hash for it. */
  #hash = NO_HASH
  #storeRevision = 0
  #confirmedAt = performance.now()
  #following: Promise<void> | undefined
  #committing: Promise<unknown> | undefined

  constructor(parts: FollowerParts) {
    this.#parts = parts
    this.state = new State(parts.types)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.loaded = promise
    this.#setLoaded = resolve
  }

  get isLoaded(): boolean {
    return this.#isLoaded
  }

  get head(): Head {
    return { revision: this.state.revision, hash: this.#hash }
  }

  get stalenessMs(): number {
    return this.failure ? performance.now() - this.#confirmedAt : 0
  }

  get status(): ReplicationStatus {
    const { upstream } = this.#parts
    if (!this.failure && upstream) return upstream()
    const { stalenessMs } = this
    return { storeRevision: this.#storeRevision, stalenessMs, problem: this.failure?.message }
  }

  /** The commit of this process that is under way; the writer publishes its changes, they are not read back. */
  get committing(): Promise<unknown> | undefined {
    return this.#committing
  }

  /** Loads from the store, or else from a snapshot. Without either, throws unless the failure of the store is transient. */
  async start(snapshots: Snapshots | undefined): Promise<void> {
    try {
      await this.checkHead()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      const { types, now, onStoreError } = this.#parts
      const saved = await snapshots?.read(types).catch((problem: StoreError) => {
        onStoreError(problem, 'snapshot')
        return undefined
      })
      if (saved) {
        this.#confirmedAt = performance.now() - Math.max(0, now().getTime() - Date.parse(saved.time))
        this.#take(saved)
      } else if (!error.isTransient) {
        throw error
      }
    }
  }

  /** Compares the store's head with the state, and applies new revisions. */
  async checkHead(): Promise<void> {
    const { store, onStoreError, onStoreBack } = this.#parts
    try {
      const before = this.state.revision
      const begun = performance.now()
      const head = await store.head()
      if (head.importInProgress) throw importInProgressError()
      this.#storeRevision = head.revision
      if (head.revision < before)
        throw new StoreError(
          `the store is at revision ${head.revision}, and this process at ${before} already: it was set back; restart this process to serve what the store holds now`,
        )
      // A head without a hash in the log is damage, not a diverged history.
      if (head.hash !== NO_HASH) this.#refuseDiverged(head.revision, head.hash)
      if (head.revision !== this.state.revision || !this.#isLoaded) await this.#followShared()
      this.#confirmedAt = begun
      if (this.failure) onStoreBack()
      this.failure = undefined
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      // A store that stays unavailable is reported once; one that is back with a diverged history is news.
      if (this.failure?.isTransient !== error.isTransient) onStoreError(error, 'follow')
      this.failure = error
      throw error
    }
  }

  /** Notes a commit of this process until it has ended. */
  holdWhile(commit: Promise<unknown>): void {
    this.#committing = commit
      .catch(() => {})
      .finally(() => {
        this.#committing = undefined
      })
  }

  /** Makes a commit of this process visible, unless it was read back from the log already. */
  publishCommit(base: number, hash: string, prepared: Parameters<State['publish']>[1]): void {
    const revision = base + 1
    this.#storeRevision = Math.max(this.#storeRevision, revision)
    if (this.state.revision !== base) return
    this.#publish({ revision, hash }, () => this.state.publish(revision, prepared))
  }

  /** Calls back after every publication; returns a function that stops it. */
  subscribe(published: () => void): () => void {
    this.#subscribers.add(published)
    return () => this.#subscribers.delete(published)
  }

  /** Waits until the state is at a revision, for `ms` at most; returns whether it is. */
  async reach(revision: number, ms: number): Promise<boolean> {
    if (this.state.revision >= revision) return true
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timeout = setTimeout(resolve, ms, false)
    const unsubscribe = this.subscribe(() => {
      if (this.state.revision >= revision) resolve(true)
    })
    try {
      return await promise
    } finally {
      clearTimeout(timeout)
      unsubscribe()
    }
  }

  /** Resolves when nothing is being read from the log. */
  async settled(): Promise<void> {
    await this.#following?.catch(() => {})
  }

  /** Callers that come during a read share the next read, which sees everything committed before their call. */
  async #followShared(): Promise<void> {
    await this.#following
    this.#following ??= this.#follow().finally(() => {
      this.#following = undefined
    })
    await this.#following
  }

  async #follow(): Promise<void> {
    if (!this.#isLoaded) return this.#load()
    const { store } = this.#parts
    const { state } = this
    // A commit of this process publishes what it made: to read a change of the whole fleet back would take as much memory again.
    await this.#committing
    if (state.revision >= this.#storeRevision) return
    const base = state.revision
    const known = await store.hashOf(base)
    if (known === undefined || base === 0) {
      // The log does not reach back to where this process is: the documents themselves are read again.
      const anchor = await store.anchor()
      if (anchor && anchor.revision > state.revision) return this.#load()
    }
    this.#refuseDiverged(base, known)
    for await (const { revision, hash, changes } of store.changesSince(state.revision)) {
      const prepared = await runTimeSliced(state.prepare(revision, changes))
      // A commit of this process publishes what it made, once its impact is known.
      await this.#committing
      if (revision <= state.revision) continue
      if (revision > state.revision + 1)
        throw new StoreError(`revision ${state.revision + 1} is missing from the log`)
      this.#publish({ revision, hash }, () => state.publish(revision, prepared))
    }
  }

  /** Refuses a store whose history diverged from what is served: following it would take clusters back to an older state. */
  #refuseDiverged(revision: number, known: string | undefined): void {
    if (revision !== this.state.revision || known === this.#hash) return
    throw new StoreError(
      `the store has another revision ${revision} than this process: it was set back or replaced; restart this process to serve what the store holds now`,
    )
  }

  async #load(): Promise<void> {
    const { store, types, onLoading } = this.#parts
    const state = new State(types)
    let documents = 0
    let tellAt = performance.now() + TELL_MS
    const head = await store.load((revision, document) => {
      state.put(revision, document)
      if (++documents % 1000 > 0 || performance.now() < tellAt) return
      onLoading?.(documents)
      tellAt = performance.now() + TELL_MS
    })
    state.revision = head.revision
    state.settle()
    this.#storeRevision = head.revision
    this.#take({ state, head })
  }

  #take({ state, head }: Loaded): void {
    this.#publish(head, () => this.state.become(state))
    this.#isLoaded = true
    this.#setLoaded()
  }

  #publish({ hash }: Head, show: () => void): void {
    show()
    this.#hash = hash
    for (const published of this.#subscribers) published()
  }
}

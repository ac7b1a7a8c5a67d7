// Keeps what is known of the fleet: in the store, up to date with other replicas, and derived again as time passes.

import { DEFAULT_STATUS_LIMITS, type StatusLimits } from '../../base/status-limits.ts'
import type { StatusReader } from '../../domain/access/selector-subjects.ts'
import { findVersion } from '../../domain/documents/find-document.ts'
import type { State } from '../../domain/documents/state.ts'
import type { Entry } from '../../domain/documents/view.ts'
import type { Document, Types } from '../../domain/types/resource-type.ts'
import { ReportOnce } from '../../runtime/report-once.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import { TimeSlice } from '../../runtime/time-slice.ts'
import type { Note } from '../../store/notes.ts'
import { type Store, StoreError } from '../../store/store.ts'
import { NoteBuffer } from '../note-buffer.ts'
import { type EvidenceKind, NOTE_KINDS, type NoteKind, partsOf } from './evidence-notes.ts'
import { Fleet } from './fleet.ts'
import { forgetPurged, removeUnknown } from './forget-purged.ts'
import { type FleetSummary, summariseFleet } from './summarise-fleet.ts'
import { type KeptTransition, TRANSITIONS, TransitionLog } from './transition-log.ts'
import { OBSERVING, UnobservedTime } from './unobserved-time.ts'

export interface StatusSettings extends StatusLimits {
  /** Whether a cluster polls somewhere that tells nothing, such as behind an air gap. */
  isUnobserved(cluster: Document): boolean
}

export const DEFAULT_STATUS: StatusSettings = { ...DEFAULT_STATUS_LIMITS, isUnobserved: () => false }

export interface FollowedFleet {
  readonly fleet: Fleet
  /** For selectors. */
  readonly status: StatusReader
  /** Resolves when what was noted before this process is known, or the store is unavailable: it is then read later. */
  readonly loaded: Promise<void>
  /** When a cluster changed its state, newest first. */
  transitionsOf(cluster: string): Promise<KeptTransition[]>
  /** Whether the cluster of a note's key exists, deleted ones included. */
  isKnown(key: string): boolean
  /** Takes in what a mirror forwards: it is kept, and forwarded further. Ignores what is of no known cluster, or no news. */
  take(kind: EvidenceKind, note: Note): void
  /** Calls back with every note that is to be written, for those who forward them. */
  onTouched(touched: (kind: NoteKind, key: string) => void): void
  /** Writes what is not in the store yet, and reads what other processes wrote; happens by itself every 10 seconds. */
  sync(): Promise<void>
  /** The fleet as it was some seconds ago; undefined shortly after the start. */
  readonly summary: FleetSummary | undefined
  /** Notes that are not in the store yet. */
  readonly pendingNotes: number
  /** Derives all states again; happens by itself every 5 seconds. */
  refresh(): Promise<void>
  /** Compares the store with what is known; happens by itself every hour. */
  tidy(): Promise<void>
  stop(): Promise<void>
}

export interface FleetFollowerParts {
  readonly store: Store
  readonly types: Types
  readonly state: State
  readonly now: () => Date
  readonly settings: StatusSettings
  readonly failed: (error: StoreError) => void
}

/** How often notes are written and those of other replicas are read. */
const SYNC_MS = 10_000
/** Clocks of replicas may differ by so much, and notes are written so late. */
const OVERLAP_MS = 20_000
/** After a failure of the store other replicas may take so long to write what they could not. */
const RECOVERY_MS = 60_000
/** How often states are derived again. */
const REFRESH_MS = 5000
/** Times as long as the last one took: so it takes at most a twentieth of the processor. */
const REFRESH_PAUSE = 20
const LONGEST_REFRESH_MS = 60_000
/** How often clusters that are no more are forgotten. */
const TIDY_MS = 3_600_000
/** The interval of a bundle that says nothing else. */
const DEFAULT_INTERVAL_MS = 300_000

export function followFleet(parts: FleetFollowerParts, stateLoaded: Promise<void>): FollowedFleet {
  const follower = new FleetFollower(parts)
  const loaded = stateLoaded.then(() => follower.start())
  return {
    fleet: follower.fleet,
    status: follower.status,
    loaded,
    transitionsOf: (cluster) => follower.transitions.of(cluster),
    isKnown: (key) => follower.isKnown(partsOf(key)[0]),
    take: (kind, note) => follower.take(kind, note),
    onTouched: (touched) => follower.forwards.push(touched),
    sync: () => follower.syncNow(),
    get summary() {
      return follower.summary
    },
    get pendingNotes() {
      return follower.pendingNotes
    },
    refresh: () => follower.refresh(),
    tidy: () => follower.tidy(),
    stop: () => follower.stop(),
  }
}

class FleetFollower {
  readonly fleet: Fleet
  summary: FleetSummary | undefined
  readonly transitions: TransitionLog
  readonly forwards: ((kind: NoteKind, key: string) => void)[] = []
  readonly status: StatusReader = {
    rowOf: (id) => {
      const cluster = this.#find(id)
      return cluster && this.fleet.rowOf(cluster)
    },
    operatorVersion: (id) => this.fleet.operatorVersion(id),
  }
  readonly #parts: FleetFollowerParts
  readonly #buffers: ReadonlyMap<NoteKind, NoteBuffer>
  readonly #reports: ReportOnce<StoreError>
  readonly #timers: NodeJS.Timeout[] = []
  readonly #unobserved = new UnobservedTime()
  /** Whether what was noted before this process is known. */
  #isLoaded = false
  #startedAt = 0
  #readUntil = 0
  /** Whether other processes may have written what was not read yet. */
  #mayHaveNews = true
  #restoredAt = 0
  /** The revision of the clusters at which those that were purged have been forgotten. */
  #forgottenAt = -1
  #running: Promise<void> = Promise.resolve()
  #refreshFrom = 0
  #isStopped = false

  constructor(parts: FleetFollowerParts) {
    this.#parts = parts
    const { types, state, settings, store } = parts
    const now = (): number => parts.now().getTime()
    const restored = () => {
      this.#restoredAt = now()
    }
    this.#reports = new ReportOnce({ failed: parts.failed, restored })
    this.fleet = new Fleet({
      types,
      state,
      now,
      rules: {
        ...settings,
        defaultIntervalMs: DEFAULT_INTERVAL_MS,
        unobservedAfter: (moment) => this.#unobserved.after(moment),
      },
      touched: (kind, key) => this.#touch(kind, key),
    })
    this.transitions = new TransitionLog(store, settings.retentionMs, now)
    this.fleet.subscribe((transition) => this.transitions.add(transition))
    this.#buffers = new Map(NOTE_KINDS.map((kind) => [kind, this.#bufferOf(kind)]))
  }

  async start(): Promise<void> {
    this.#startedAt = this.#parts.now().getTime()
    await this.#attempt(() => this.#load())
    if (this.#isStopped) return
    this.#every(SYNC_MS, () => this.#attempt(() => this.#sync()))
    this.#every(REFRESH_MS, () => this.#refreshInTurn())
    this.#every(TIDY_MS, () => this.#attempt(() => this.tidy()))
  }

  /** A store that is unavailable at the start is read when it is back, before anything is noted about this process. */
  async #load(): Promise<void> {
    const { store, now } = this.#parts
    const begun = now().getTime()
    for await (const note of store.notes.read(OBSERVING, [OBSERVING]))
      this.#unobserved.learn(note, this.#startedAt)
    for (const kind of NOTE_KINDS) await this.#merge(kind, store.notes.read(kind))
    this.#readUntil = begun
    this.#isLoaded = true
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    for (const timer of this.#timers) clearInterval(timer)
    await this.#running
    for (const buffer of this.#buffers.values()) await buffer.stop()
    await this.#attempt(() => this.#keep())
  }

  get pendingNotes(): number {
    let pending = 0
    for (const buffer of this.#buffers.values()) pending += buffer.pending
    return pending
  }

  async syncNow(): Promise<void> {
    for (const buffer of this.#buffers.values()) await buffer.flush()
    await this.#attempt(() => this.#sync())
  }

  take(kind: EvidenceKind, note: Note): void {
    if (this.isKnown(partsOf(note.key)[0]) && this.fleet.merge(kind, note)) this.#touch(kind, note.key)
  }

  /** One after the other, and none that is still waiting twice. */
  #every(ms: number, run: () => Promise<void>): void {
    let isWaiting = false
    const timer = setInterval(() => {
      if (isWaiting) return
      isWaiting = true
      this.#running = this.#running.then(async () => {
        isWaiting = false
        if (!this.#isStopped) await run()
      })
    }, ms)
    this.#timers.push(timer.unref())
  }

  /** A store that fails is reported once, until it works again. */
  async #attempt(run: () => Promise<void>): Promise<void> {
    try {
      await run()
      this.#reports.succeed()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      this.#reports.fail(error)
    }
  }

  #bufferOf(kind: NoteKind): NoteBuffer {
    const { store } = this.#parts
    return new NoteBuffer({
      store,
      kind,
      noteOf: (key) => this.fleet.noteOf(kind, key),
      flushMs: SYNC_MS,
      failed: (error) => this.#reports.fail(error),
    })
  }

  #touch(kind: NoteKind, key: string): void {
    this.#buffers.get(kind)?.touch(key)
    for (const forward of this.forwards) forward(kind, key)
  }

  async #sync(): Promise<void> {
    const { store, now } = this.#parts
    if (!this.#isLoaded) await this.#load()
    await this.#keep()
    await this.#forgetPurged()
    if (store.isPrivate) return
    const since = new Date(this.#readUntil - OVERLAP_MS).toISOString()
    const begun = now().getTime()
    this.#mayHaveNews ||= (await store.notes.othersWrote?.()) ?? true
    if (this.#mayHaveNews)
      for (const kind of NOTE_KINDS) await this.#merge(kind, store.notes.readSince(kind, since))
    this.#mayHaveNews = false
    // Notes are read by their own times, and those of an outage are written after it.
    if (!this.#reports.failure && begun > this.#restoredAt + RECOVERY_MS) this.#readUntil = begun
  }

  async #keep(): Promise<void> {
    const { store, now } = this.#parts
    await this.transitions.flush()
    if (this.#isLoaded) await store.notes.record(OBSERVING, [this.#unobserved.note(now().getTime())])
  }

  async #forgetPurged(): Promise<void> {
    const { store, types, state } = this.#parts
    const changedAt = state.changedAt(types.cluster.type.name)
    if (changedAt === this.#forgottenAt) return
    await forgetPurged(this.fleet, this.transitions, store.notes, (cluster) => this.isKnown(cluster))
    this.#forgottenAt = changedAt
  }

  async #merge(kind: NoteKind, notes: ReturnType<Store['notes']['read']>): Promise<void> {
    const timeSlice = new TimeSlice()
    for await (const note of notes) {
      if (this.isKnown(partsOf(note.key)[0])) this.fleet.merge(kind, note)
      if (timeSlice.expired) await timeSlice.yield()
    }
  }

  isKnown(cluster: string): boolean {
    return this.#find(cluster) !== undefined
  }

  /** Finds deleted ones too. */
  #find(cluster: string): Entry | undefined {
    const { types, state } = this.#parts
    return findVersion(state, types.cluster.type.name, cluster)
  }

  async refresh(): Promise<void> {
    const { types, state } = this.#parts
    const view = state.freeze()
    try {
      this.summary = await runTimeSliced(summariseFleet(this.fleet, types.cluster, view, state))
    } finally {
      view.release()
    }
  }

  /** Refreshes, and then leaves it for a while that grows with the fleet: all clusters are looked at. */
  async #refreshInTurn(): Promise<void> {
    const begun = performance.now()
    if (begun < this.#refreshFrom) return
    await this.refresh()
    const took = performance.now() - begun
    this.#refreshFrom = begun + Math.min(took * REFRESH_PAUSE, LONGEST_REFRESH_MS)
  }

  /** Removes what other processes noted of clusters that were purged, and takes in what they wrote too late for a sync. */
  async tidy(): Promise<void> {
    const { notes } = this.#parts.store
    this.#forgottenAt = -1
    for (const kind of NOTE_KINDS) await this.#merge(kind, notes.read(kind))
    for (const kind of [...NOTE_KINDS, TRANSITIONS])
      await removeUnknown(notes, kind, (cluster) => this.isKnown(cluster))
  }
}

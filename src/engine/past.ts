// The fleet as it was: views of earlier revisions, made from the state and the log.

import { equalJson } from '../base/json.ts'
import { fail, invalid, type Result, succeed } from '../base/problem.ts'
import type { Steps } from '../base/steps.ts'
import type { At } from '../domain/commands/command.ts'
import { Comparison } from '../domain/delivery/compare-served.ts'
import { type Impact, impactOf } from '../domain/delivery/impact.ts'
import { servedTo } from '../domain/delivery/served-view.ts'
import type { BeforeAndAfter } from '../domain/documents/describe-change.ts'
import { findVersion } from '../domain/documents/find-document.ts'
import { Overlay } from '../domain/documents/overlay.ts'
import type { State } from '../domain/documents/state.ts'
import type { Entry, PolledView, View } from '../domain/documents/view.ts'
import { HOLDS } from '../domain/rollouts/hold.ts'
import { ROLLOUT_PLANS, ROLLOUTS } from '../domain/rollouts/rollout.ts'
import { type DeliveredType, referencesOf, type Types } from '../domain/types/resource-type.ts'
import { runTimeSliced } from '../runtime/run-time-sliced.ts'
import { TimeSlice } from '../runtime/time-slice.ts'
import type {
  HistoryQuery,
  LoggedChange,
  LogSlice,
  PastDocument,
  RecordedRevision,
  Store,
} from '../store/store.ts'
import { type ExportOptions, exportLog } from '../transfer/export-log.ts'
import { type Verification, verifyLog } from '../transfer/verify-log.ts'

export type { DocumentSpan, HistoryQuery, RecordedRevision } from '../store/store.ts'

export interface Past {
  /** The newest revision at that moment, or the problem with it; `name` is the parameter that the problem names. */
  resolve(at: At, name: string): Promise<Result<number>>
  /** Reads from the fleet as it was at a revision; only documents of one type where that is enough. */
  read<T>(revision: number, type: string | undefined, read: (view: View) => Steps<T>): Promise<T>
  /** One document, or its tombstone. */
  entry(revision: number, type: string, id: string): Promise<Entry | undefined>
  /** A cluster and everything that it was assigned of a type. */
  cluster(revision: number, id: string, type: DeliveredType): Promise<View>
  /** What a revision changed for clusters. */
  impactOf(revision: number, limit: number): Promise<Impact>
  /** Looks at what a revision changed for each cluster. */
  compare<T>(revision: number, run: (comparison: Comparison) => Steps<T>): Promise<T>
  /** Looks at what differs for each cluster between two revisions; the first one may be the later. */
  between<T>(from: number, to: number, run: (comparison: Comparison) => Steps<T>): Promise<T>
  /** What a revision changed, a part at a time. */
  changesOf(revision: number): AsyncIterable<LogSlice>
  /** Every document that is not as it was at a revision. */
  changedAfter(revision: number): AsyncIterable<PastDocument>
  /** A document's own revisions before another one, newest first, each with its change. */
  historyOf(type: string, id: string, before?: number): AsyncIterable<DocumentRevision>
  history(query: HistoryQuery): Promise<RecordedRevision[]>
  /** Whether the log is whole and the documents are what it says. */
  verify(): Promise<Verification>
  /** The log as lines that another store can take in. */
  export(options: ExportOptions): AsyncGenerator<string>
}

export type DocumentRevision = Omit<RecordedRevision, 'changes'> & { readonly change: BeforeAndAfter }

const PAGE = 100

export function openPast(
  store: Store,
  types: Types,
  state: PolledView & Pick<State, 'freeze'>,
  now: () => Date,
): Past {
  return new LoggedPast(store, types, state, now)
}

class LoggedPast implements Past {
  readonly #store: Store
  readonly #types: Types
  readonly #state: PolledView & Pick<State, 'freeze'>
  readonly #now: () => Date

  constructor(store: Store, types: Types, state: PolledView & Pick<State, 'freeze'>, now: () => Date) {
    this.#store = store
    this.#types = types
    this.#state = state
    this.#now = now
  }

  async resolve(at: At, name: string): Promise<Result<number>> {
    const anchor = await this.#store.anchor()
    const pruned = (what: string) =>
      fail({
        code: 'gone',
        reason: 'history_pruned',
        message: `${name} is ${what}, and history is kept from revision ${anchor?.revision} (${anchor?.time}) on`,
      })
    if ('revision' in at) {
      if (at.revision > this.#state.revision) {
        const message = `is revision ${at.revision}, which is still to come: the newest is ${this.#state.revision}`
        return invalid([{ path: name, message }], 'revision_in_future')
      }
      return anchor && at.revision < anchor.revision
        ? pruned(`revision ${at.revision}`)
        : succeed(at.revision)
    }
    if (at.time > this.#now().toISOString()) {
      return invalid([{ path: name, message: `is ${at.time}, which is in the future` }])
    }
    const revision = await this.#store.revisionAt(at.time)
    if (revision !== undefined) return succeed(Math.min(revision, this.#state.revision))
    if (!anchor) return succeed(0)
    return at.time < anchor.time ? pruned(at.time) : succeed(anchor.revision)
  }

  async read<T>(revision: number, type: string | undefined, run: (view: View) => Steps<T>): Promise<T> {
    const present = this.#state.freeze()
    try {
      const view = await this.#asOf(present, revision, type)
      return await runTimeSliced(run(view))
    } finally {
      present.release()
    }
  }

  /** The current entry is read before the log, so that the log holds every change made to the entry since. */
  async entry(revision: number, type: string, id: string): Promise<Entry | undefined> {
    const current = findVersion(this.#state, type, id)
    for await (const { was } of this.#store.changedAfter(revision, { type, id }))
      return was && toEntry(id, was)
    return current
  }

  async cluster(revision: number, id: string, type: DeliveredType): Promise<View> {
    const clusters = this.#types.cluster.type.name
    const view = new Overlay(this.#state, this.#types.cluster, revision)
    view.lay(clusters, id, await this.entry(revision, clusters, id))
    view.lay(HOLDS, id, await this.entry(revision, HOLDS, id))
    for (const staged of [ROLLOUTS, ROLLOUT_PLANS])
      for await (const past of this.#store.changedAfter(revision, { type: staged }))
        view.lay(staged, past.id, past.was && toEntry(past.id, past.was))
    const timeSlice = new TimeSlice()
    const cluster = servedTo(this.#types, view, id).get(clusters, id)
    for (const { id: assigned } of cluster ? referencesOf(cluster.document, type.delivery) : []) {
      view.lay(type.name, assigned, await this.entry(revision, type.name, assigned))
      if (timeSlice.expired) await timeSlice.yield()
    }
    return view
  }

  impactOf(revision: number, limit: number): Promise<Impact> {
    return this.compare(revision, (comparison) => impactOf(comparison, limit))
  }

  async compare<T>(revision: number, run: (comparison: Comparison) => Steps<T>): Promise<T> {
    const types = this.#types
    const logged: LoggedChange[] = []
    for await (const { changes } of this.#store.log(revision - 1, revision)) logged.push(...changes)
    return this.read(revision - 1, undefined, function* (before) {
      const after = new Overlay(before, types.cluster, revision)
      for (const { type, id, after: json, after_deleted: deleted } of logged) {
        yield
        const document = json === null ? undefined : JSON.parse(json)
        after.lay(type, id, document && { id, document, deleted, size: json?.length ?? 0, revision })
      }
      return yield* run(new Comparison(types, before, after))
    })
  }

  async between<T>(from: number, to: number, run: (comparison: Comparison) => Steps<T>): Promise<T> {
    const types = this.#types
    const present = this.#state.freeze()
    try {
      const before = await this.#asOf(present, from)
      const then = await this.#asOf(present, to)
      const after = new Overlay(before, types.cluster, to)
      const timeSlice = new TimeSlice()
      for (const type of new Set([...before.laidTypes(), ...then.laidTypes()]))
        for (const id of new Set([...before.laid(type).keys(), ...then.laid(type).keys()])) {
          if (timeSlice.expired) await timeSlice.yield()
          const entry = findVersion(then, type, id)
          if (!isSame(findVersion(before, type, id), entry)) after.lay(type, id, entry)
        }
      return await runTimeSliced(run(new Comparison(types, before, after)))
    } finally {
      present.release()
    }
  }

  /** The log is read after the present, so that it holds every change made to the present since. */
  async #asOf(present: View, revision: number, only?: string): Promise<Overlay> {
    const view = new Overlay(present, this.#types.cluster, revision)
    const changed = this.#store.changedAfter(revision, only ? { type: only } : undefined)
    for await (const { type, id, was } of changed) view.lay(type, id, was && toEntry(id, was))
    return view
  }

  /** A document's own history, newest first. */
  async *historyOf(
    type: string,
    id: string,
    from = Number.MAX_SAFE_INTEGER,
  ): AsyncGenerator<DocumentRevision> {
    for (let before = from; ; ) {
      const page = await this.#store.history({
        documents: [{ type, id }],
        before,
        limit: PAGE,
        changeLimit: 1,
      })
      for (const { changes, ...meta } of page) {
        const [change] = changes
        if (change) yield { ...meta, change }
      }
      const last = page.at(-1)
      if (!last || page.length < PAGE) return
      before = last.revision
    }
  }

  changesOf(revision: number): AsyncIterable<LogSlice> {
    return this.#store.log(revision - 1, revision)
  }

  changedAfter(revision: number): AsyncIterable<PastDocument> {
    return this.#store.changedAfter(revision)
  }

  history(query: HistoryQuery): Promise<RecordedRevision[]> {
    return this.#store.history(query)
  }

  verify(): Promise<Verification> {
    return verifyLog(this.#store)
  }

  export(options: ExportOptions): AsyncGenerator<string> {
    return exportLog(this.#store, options)
  }
}

function isSame(one: Entry | undefined, other: Entry | undefined): boolean {
  if (one?.revision === other?.revision) return true
  return one?.deleted === other?.deleted && equalJson(one?.document ?? null, other?.document ?? null)
}

function toEntry(id: string, { document, deleted, size, revision }: NonNullable<PastDocument['was']>): Entry {
  return { id, document, deleted, size, revision }
}

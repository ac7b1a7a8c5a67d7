// Decide, then commit, then publish: the only way anything changes, and the state that everything is read from.
import { setTimeout as sleep } from 'node:timers/promises'
import { fail, type Problem, type Result, succeed } from '../base/problem.ts'
import type { Steps } from '../base/steps.ts'
import { type Grant, refuseBeyond } from '../domain/access/grant.ts'
import { type Command, type Outcome, summarise } from '../domain/commands/command.ts'
import { type Decision, decide } from '../domain/commands/decide.ts'
import { Comparison, IMPACT_LIMIT, type Impact, impactOf } from '../domain/delivery/impact.ts'
import { type Applied, State } from '../domain/documents/state.ts'
import type { Change, PolledView, Slot, View } from '../domain/documents/view.ts'
import { findRemovals } from '../domain/guards/brake.ts'
import { refuseMethods } from '../domain/guards/refuse-methods.ts'
import type { Types } from '../domain/types/resource-type.ts'
import { Interrupted, runTimeSliced } from '../runtime/run-time-sliced.ts'
import { NO_HASH } from '../store/hash-chain.ts'
import type { IdempotencyRecord } from '../store/idempotency.ts'
import {
  type Head,
  importInProgressError,
  type RevisionMeta,
  type Store,
  StoreError,
} from '../store/store.ts'
import type { ReplicationStatus } from '../transfer/replication-status.ts'
import { warnOfDefinitions } from './definition-warnings.ts'
import { openPast, type Past } from './past.ts'
import { planOf, refusePlan } from './plan.ts'
import { keepSnapshots, type Snapshots } from './snapshot.ts'
import { followUses, type TokenUses } from './token-uses.ts'
import { type Turn, WriteQueue } from './write-queue.ts'

export type { HistoryQuery, RecordedRevision } from '../store/store.ts'

export type Author = Pick<RevisionMeta, 'actor' | 'message' | 'request_id' | 'client_address'>

/** Commands, or what finds them out on top of whatever revision the write is decided on. */
export type Work =
  | readonly Command[]
  | {
      readonly operation: string
      readonly load: (view: View) => Promise<Result<readonly Command[]>>
      /** What the caller should know of what was asked for. */
      readonly notice?: (view: View) => Steps<readonly string[]>
    }

export interface WriteOptions {
  /** Only what this allows; a dry run tells of the rest. */
  readonly grant?: Grant
  /** Only on top of this very revision. */
  readonly onlyAt?: number
  /** Stores nothing. */
  readonly dryRun?: boolean
  /** Only when it does exactly what this plan says. */
  readonly plan?: string
  /** Lets removals pass the brake. */
  readonly confirmRemovals?: boolean
  /** Works out the impact and the plan, with the details of so many clusters' endpoints. */
  readonly impactLimit?: number
  /** Does it once for this key, and answers the same ever after. */
  readonly once?: Once
  /** Who sends it, for whose turn it is; the author where nobody says. */
  readonly caller?: string
  /** Ends it before anything is committed; its reason is an `Interrupted`. */
  readonly signal?: AbortSignal
}

export interface Once {
  readonly key: string
  /** Tells a repetition from another request with the same key. */
  readonly fingerprint: string
  /** The answer to keep. */
  answer(written: Written): string
}

export interface Written {
  /** The revision that the write made; the current one when nothing changed or nothing was to be stored. */
  readonly revision: number
  readonly changes: readonly Change[]
  /** One per command, in their order. */
  readonly outcomes: readonly Outcome[]
  /** What the write left, whatever has been published since. */
  readonly after: View
  readonly warnings: readonly string[]
  /** Why it has to be confirmed; told of a dry run. */
  readonly removals: readonly string[]
  readonly impact?: Impact
  readonly plan?: string
  /** The answer to the first write with the same key: nothing was done now. */
  readonly replayed?: string
  /** The answer as it was kept, where the state may have moved on since. */
  readonly answer?: string
}

export interface Engine {
  /** False until there is a state to serve from: nothing may be answered from this one before. */
  readonly isLoaded: boolean
  /** Resolves once it is. */
  readonly loaded: Promise<void>
  /** True once a stop has begun. */
  readonly draining: boolean
  /** Everything as of the last published revision; changes under the reader's feet only between ticks. */
  readonly state: PolledView & Pick<State, 'typeNames' | 'freeze'>
  /** Does all of the work as one revision, or nothing. A dry run waits for no write, and no write for it. */
  write(work: Work, author: Author, options?: WriteOptions): Promise<Result<Written>>
  /** Reads from the log; a store that is away makes it a problem. */
  inspect<T>(read: (past: Past) => Promise<Result<T>>): Promise<Result<T>>
  /** The same for work that finds its commands in the log. */
  readonly past: Past
  /** When tokens were last used. */
  readonly uses: TokenUses
  /** Takes in what other processes have committed. */
  catchUp(): Promise<void>
  readonly condition: ReplicationStatus
  /** Looks at the store first, for a moment at most. */
  check(): Promise<ReplicationStatus>
  /** Waits until this process is at a revision, for so long at most; answers whether it is. */
  reach(revision: number, ms: number): Promise<boolean>
  /** Calls back after every change of what is served; answers how to stop that. */
  subscribe(published: () => void): () => void
  /** Says that it is stopping; what was begun before, and polls, go on. */
  drain(): void
  /** Finishes the writes under way, then lets go of the store. */
  stop(): Promise<void>
}

export interface EngineParts {
  readonly store: Store
  readonly types: Types
  readonly now: () => Date
  /** The share of clusters that may lose inputs without confirmation. */
  readonly brakePercent?: number
  /** Told of every failure of the store. */
  readonly onStoreError?: (
    error: StoreError,
    doing: 'commit' | 'read' | 'follow' | 'uses' | 'snapshot',
  ) => void
  /** Told when the store can be followed again after a failure. */
  readonly onStoreBack?: () => void
  /** What to start from while the store is away. */
  readonly snapshots?: Snapshots
  /** Of a mirror: how its store stands to what it is a copy of. */
  readonly upstream?: () => ReplicationStatus
}

interface Decided {
  readonly decision: Decision
  readonly removals: readonly string[]
  readonly comparison: Comparison
  /** Why the caller may not do it; of a dry run only. */
  readonly beyond: Problem | undefined
}

/** Writers elsewhere can win every race for a while, but not for ever. */
const MAX_ATTEMPTS = 100
/** How long to expect other writers after one of them was faster. */
const CONTESTED_MS = 1000
const DEFAULT_BRAKE_PERCENT = 10
/** Whoever sends them may be gone already; administrators may have as many more. */
const MAX_WAITING = 1000
/** How often to look whether the store has moved; it may tell sooner. */
const LOOK_INTERVAL_MS = 250
/** While it is away, ever more seldom, but not more so than this. */
const MAX_LOOK_INTERVAL_MS = 4000
/** How long somebody who asks how things are may be kept waiting. */
const CHECK_MS = 500

/** Loads the state and follows the store until stopped. */
export async function startEngine({
  store,
  types,
  now,
  brakePercent = DEFAULT_BRAKE_PERCENT,
  onStoreError = () => {},
  onStoreBack = () => {},
  snapshots,
  upstream,
}: EngineParts): Promise<Engine> {
  const state = new State(types)
  /** The hash of the state's revision, by which a store with another history is known. */
  let hash = NO_HASH
  let isLoaded = false
  const { promise: loaded, resolve: setLoaded } = Promise.withResolvers<void>()
  const past = openPast(store, types, state, now)
  const uses = followUses(store, now, (error) => onStoreError(error, 'uses'))

  let draining = false
  let stopped = false
  const writes = new WriteQueue()
  let committing: Promise<unknown> | undefined
  let following: Promise<void> | undefined

  let contestedUntil = 0
  let storeRevision = 0
  let confirmedAt = performance.now()
  let failure: StoreError | undefined
  const subscribers = new Set<() => void>()

  function publish(head: Head, show: () => void): void {
    show()
    hash = head.hash
    for (const published of subscribers) published()
  }

  async function load(): Promise<void> {
    const fresh = await loadState(store, types)
    storeRevision = fresh.head.revision
    take(fresh)
  }

  function take({ state: fresh, head }: Loaded): void {
    publish(head, () => state.become(fresh))
    isLoaded = true
    setLoaded()
  }

  /** Goes no further on a store that has another history than what is served: clusters would be taken back. */
  function refuseOther(revision: number, known: string | undefined): void {
    if (revision !== state.revision || known === hash) return
    throw new StoreError(
      `the store has another revision ${revision} than this process: it was set back or replaced; restart this process to serve what the store holds now`,
    )
  }

  async function follow(): Promise<void> {
    if (!isLoaded) return load()
    const base = state.revision
    const known = await store.hashOf(base)
    if (known === undefined || base === 0) {
      // The log does not reach back to where this process is: the documents themselves are read again.
      const anchor = await store.anchor()
      if (anchor && anchor.revision > state.revision) return load()
    }
    refuseOther(base, known)
    for await (const { revision, hash, changes } of store.changesSince(state.revision)) {
      const prepared = await runTimeSliced(state.prepare(revision, changes))
      // A commit of our own publishes what it made, once it has seen what that means.
      await committing
      if (revision <= state.revision) continue
      if (revision > state.revision + 1)
        throw new StoreError(`revision ${state.revision + 1} is missing from the log`)
      publish({ revision, hash }, () => state.publish(revision, prepared))
    }
  }

  /** Callers that come while one is reading share the next reading, which sees all they could have seen. */
  async function catchUp(): Promise<void> {
    await following
    following ??= follow().finally(() => {
      following = undefined
    })
    await following
  }

  /** Looks where the store is, and takes in what is new. */
  async function look(): Promise<void> {
    try {
      const before = state.revision
      const begun = performance.now()
      const head = await store.head()
      if (head.importInProgress) throw importInProgressError()
      storeRevision = head.revision
      if (head.revision < before)
        throw new StoreError(
          `the store is at revision ${head.revision}, and this process at ${before} already: it was set back; restart this process to serve what the store holds now`,
        )
      // A head that the log does not know is damage, and not another history.
      if (head.hash !== NO_HASH) refuseOther(head.revision, head.hash)
      if (head.revision !== state.revision || !isLoaded) await catchUp()
      confirmedAt = begun
      if (failure) onStoreBack()
      failure = undefined
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      // A store that stays away is looked at many times a minute, and told of once; one that is back and another is news.
      if (failure?.isTransient !== error.isTransient) onStoreError(error, 'follow')
      failure = error
      throw error
    }
  }

  async function attempt(
    work: Work,
    author: Author,
    options: WriteOptions,
    turn: Turn,
  ): Promise<Result<Written>> {
    for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
      const run = (): Promise<Result<Written> | undefined> => attemptOnce(work, author, options, turn)
      // Where others have just been faster, waiting for one's turn takes less than trying in vain.
      const done = await (performance.now() < contestedUntil ? store.withWriteLock(run) : run())
      if (done) return done
      contestedUntil = performance.now() + CONTESTED_MS
    }
    return fail({ code: 'unavailable', message: 'other writers were faster every time: try again' })
  }

  /** Nothing when the state has moved on meanwhile. */
  async function attemptOnce(
    work: Work,
    author: Author,
    options: WriteOptions,
    turn: Turn,
  ): Promise<Result<Written> | undefined> {
    await look()
    const { onlyAt, once } = options
    const repeated = once && (await recall(once))
    if (repeated) return repeated
    const base = state.revision
    if (onlyAt !== undefined && base !== onlyAt) {
      return fail({ code: 'conflict', message: `the store is at revision ${base}, not ${onlyAt}` })
    }
    const decided = await decideOn(work, author, options, state, turn.signal)
    // What was decided while another process's commit was taken in may be half of each.
    if (state.revision !== base) return undefined
    if (!decided.ok) return decided
    const { decision, removals, comparison } = decided.value
    const revision = base + Number(decision.changes.length > 0)
    const written = { ...decision, removals, revision }
    if (!once && revision > base) {
      turn.hold()
      // What it means for clusters is worked out while the store is writing.
      const done = await commit(base, work, author, decision, undefined, () =>
        assess(decision, comparison, options),
      )
      return done?.ok ? succeed({ ...written, ...done.value }) : done
    }
    const assessed = { ...written, ...(await assess(decision, comparison, options, turn.signal)) }
    if (state.revision !== base) return undefined
    turn.hold()
    const record = once && recordOf(once, assessed)
    if (revision === base) {
      if (!once || !record) return succeed(assessed)
      await store.idempotency.save(record)
      // Another process may have been asked the same, and been faster: there is one answer.
      const kept = await recall(once)
      const isOurs = !kept || (kept.ok && kept.value.replayed === record.answer)
      return isOurs ? succeed({ ...assessed, answer: record.answer }) : kept
    }
    return commit(base, work, author, decision, record, async () => assessed)
  }

  /** What a write would do to the fleet as it stands now, whatever is written meanwhile. */
  async function preview(work: Work, author: Author, options: WriteOptions): Promise<Result<Written>> {
    await look()
    const view = state.freeze()
    try {
      const decided = await decideOn(work, author, options, view, options.signal)
      if (!decided.ok) return decided
      const { decision, removals, comparison, beyond } = decided.value
      const warnings = [...(beyond ? [`you may not do this: ${beyond.message}`] : []), ...decision.warnings]
      const assessed = await assess(decision, comparison, options, options.signal)
      return succeed({ ...decision, warnings, removals, revision: view.revision, ...assessed })
    } finally {
      view.release()
    }
  }

  /** Decides, and refuses what is not as planned or removes too much. */
  async function decideOn(
    work: Work,
    { actor }: Author,
    { dryRun, grant, plan, confirmRemovals, impactLimit = IMPACT_LIMIT }: WriteOptions,
    view: View,
    signal: AbortSignal | undefined,
  ): Promise<Result<Decided>> {
    const commands = 'load' in work ? await work.load(view) : succeed(work)
    if (!commands.ok) return commands
    const decided = await runTimeSliced(decide(types, view, commands.value), signal)
    if (!decided.ok) return decided
    const decision = decided.value
    // A seed file, which nobody is granted, fills what cannot be changed later.
    const impossible = grant && refuseMethods(types, decision.changes)
    if (impossible) return fail(impossible)
    const comparison = new Comparison(types, view, decision.after)
    const beyond = grant && (await runTimeSliced(refuseBeyond(grant, comparison, decision.changes), signal))
    if (beyond && !dryRun) return fail(beyond)
    if (plan !== undefined && (await runTimeSliced(planOf(decision.changes), signal)) !== plan) {
      return refusePlan(decision.changes)
    }
    const removals = await runTimeSliced(findRemovals(comparison, decision.changes, brakePercent), signal)
    if (removals.length === 0 || confirmRemovals || dryRun) {
      const isWayBack = 'load' in work
      const noticed = await warnOfDefinitions(types, past, view, { decision, actor, isWayBack })
      const asked = 'load' in work && work.notice ? await runTimeSliced(work.notice(view), signal) : []
      const warnings = [...asked, ...decision.warnings, ...noticed]
      return succeed({ decision: { ...decision, warnings }, removals, comparison, beyond })
    }
    return fail({
      code: 'destructive_change',
      message: `this removes a lot: ${removals.join('; ')}. If that is meant, confirm it: confirm=removals`,
      impact: await runTimeSliced(impactOf(comparison, impactLimit), signal),
    })
  }

  /** What the caller wants to know of a decision. */
  async function assess(
    { changes }: Decision,
    comparison: Comparison,
    { plan, impactLimit }: WriteOptions,
    signal?: AbortSignal,
  ): Promise<Pick<Written, 'impact' | 'plan'>> {
    if (impactLimit === undefined) return plan === undefined ? {} : { plan }
    return {
      impact: await runTimeSliced(impactOf(comparison, impactLimit), signal),
      plan: plan ?? (await runTimeSliced(planOf(changes), signal)),
    }
  }

  function recordOf(once: Once, written: Written): IdempotencyRecord {
    const { key, fingerprint } = once
    return { key, fingerprint, time: now().toISOString(), answer: once.answer(written) }
  }

  /** Commits, does something else meanwhile, and publishes; nothing when another writer was faster. */
  async function commit<T>(
    base: number,
    work: Work,
    author: Author,
    { changes }: Decision,
    idempotency: IdempotencyRecord | undefined,
    meanwhile: () => Promise<T>,
  ): Promise<Result<T> | undefined> {
    const committed = store.commit(base, {
      time: idempotency?.time ?? now().toISOString(),
      ...author,
      operation: 'load' in work ? work.operation : summarise(work),
      changes: changes.map(({ type, id, after }) => ({ type, id, after: after && toStored(after) })),
      ...(idempotency && { idempotency }),
    })
    const preparing = runTimeSliced(state.prepare(base + 1, toApplied(changes)))
    const all = Promise.all([committed, preparing, meanwhile()])
    committing = all
      .catch(() => {})
      .finally(() => {
        committing = undefined
      })
    const [result, prepared, value] = await all
    if (!result.ok) return undefined
    storeRevision = Math.max(storeRevision, base + 1)
    if (state.revision === base)
      publish({ revision: base + 1, hash: result.hash }, () => state.publish(base + 1, prepared))
    return succeed(value)
  }

  async function recall({ key, fingerprint }: Once): Promise<Result<Written> | undefined> {
    const known = await store.idempotency.find(key, now().toISOString())
    if (!known) return undefined
    // Whoever is told of a revision finds it here afterwards.
    await look()
    if (known.fingerprint !== fingerprint) {
      return fail({
        code: 'idempotency_mismatch',
        message: 'this Idempotency-Key was used for another request: take a new key for every write',
      })
    }
    const nothing = { changes: [], outcomes: [], warnings: [], removals: [] }
    return succeed({ ...nothing, revision: state.revision, after: state, replayed: known.answer })
  }

  async function guarded<T>(doing: 'commit' | 'read', run: () => Promise<Result<T>>): Promise<Result<T>> {
    // Whoever waits for a store that is known to be away waits in vain.
    if (failure?.isTransient) return unavailable(failure)
    try {
      return await run()
    } catch (error) {
      if (error instanceof Interrupted) return fail(error.problem)
      if (!(error instanceof StoreError)) throw error
      if (error !== failure) onStoreError(error, doing)
      return unavailable(error)
    }
  }

  function unavailable({ message }: StoreError) {
    return fail({ code: 'unavailable', message: `the store cannot be used now: ${message}` })
  }

  /** Looks once more, unless a look is under way. */
  let looking: Promise<void> | undefined
  async function lookAgain(): Promise<void> {
    // Nothing of our own needs to be read back, unless the store is what it waits for.
    if (committing) await Promise.race([committing, sleep(CHECK_MS, undefined, { ref: false })])
    looking ??= look()
      .catch(ignoreStoreError)
      .finally(() => {
        looking = undefined
      })
    await looking
  }

  /** Those who ask while a look is under way share the next one, which sees all that they could have seen. */
  let checking: Promise<void> = Promise.resolve()
  let nextCheck: Promise<void> | undefined
  function lookFresh(): Promise<void> {
    nextCheck ??= checking.then(() => {
      nextCheck = undefined
      checking = look().catch(ignoreStoreError)
      return checking
    })
    return nextCheck
  }

  // Spread in time, so that many processes do not all come back to the store at once.
  let interval = LOOK_INTERVAL_MS
  let timer: NodeJS.Timeout | undefined
  async function lookOn(): Promise<void> {
    await lookAgain()
    if (draining) return
    interval = failure ? Math.min(interval * 2, MAX_LOOK_INTERVAL_MS) : LOOK_INTERVAL_MS
    timer = setTimeout(lookOn, interval * (0.5 + Math.random() / 2)).unref()
  }

  await start()
  const unwatch = store.watch(() => void lookAgain())
  if (!store.isPrivate) timer = setTimeout(lookOn, interval).unref()
  const keeper =
    snapshots &&
    keepSnapshots(snapshots, {
      // Also while the store is away: whoever starts from it is not to go back behind what was served.
      current: () =>
        isLoaded ? { state, head: { revision: state.revision, hash }, stalenessMs: age() } : undefined,
      failed: (error) => onStoreError(error, 'snapshot'),
    })

  /** From the store, or from what was saved of it while it is away; or from nothing yet, until it is back. */
  async function start(): Promise<void> {
    try {
      await look()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      const saved = await snapshots?.read(types).catch((problem: StoreError) => {
        onStoreError(problem, 'snapshot')
        return undefined
      })
      if (saved) {
        confirmedAt = performance.now() - Math.max(0, now().getTime() - Date.parse(saved.time))
        take(saved)
      } else if (!error.isTransient) {
        throw error
      }
    }
  }

  function age(): number {
    return failure ? performance.now() - confirmedAt : 0
  }

  function condition(): ReplicationStatus {
    if (!failure && upstream) return upstream()
    return { storeRevision, stalenessMs: age(), problem: failure?.message }
  }

  return {
    get isLoaded() {
      return isLoaded
    },
    loaded,
    get draining() {
      return draining
    },
    get condition() {
      return condition()
    },
    state,
    past,
    uses,
    catchUp: look,
    write(work, author, options = {}) {
      if (stopped) return Promise.resolve(fail({ code: 'unavailable', message: 'the service is stopping' }))
      if (options.dryRun) return guarded('read', () => preview(work, author, options))
      const isUrgent = options.grant === undefined || options.grant.role === 'admin'
      if (writes.size >= (isUrgent ? 2 : 1) * MAX_WAITING)
        return Promise.resolve(
          fail({ code: 'unavailable', message: 'too many writes are waiting: try again' }),
        )
      const sender = { caller: options.caller ?? author.actor, isUrgent, signal: options.signal }
      // Asked again when its turn comes: the store may be known to be away by then.
      const run = (turn: Turn): Promise<Result<Written>> =>
        guarded('commit', () => attempt(work, author, options, turn))
      return guarded('commit', () => writes.run(sender, run))
    },
    inspect: (read) =>
      guarded('read', async () => {
        await look()
        return read(past)
      }),
    async check() {
      await Promise.race([lookFresh(), sleep(CHECK_MS, undefined, { ref: false })])
      return condition()
    },
    async reach(revision, ms) {
      if (state.revision >= revision) return true
      void lookAgain()
      const { promise, resolve } = Promise.withResolvers<boolean>()
      const check = (): void => {
        if (state.revision >= revision) resolve(true)
      }
      const tooLong = setTimeout(resolve, ms, false)
      subscribers.add(check)
      try {
        return await promise
      } finally {
        clearTimeout(tooLong)
        subscribers.delete(check)
      }
    },
    subscribe(published) {
      subscribers.add(published)
      return () => subscribers.delete(published)
    },
    drain() {
      draining = true
    },
    async stop() {
      draining = true
      stopped = true
      unwatch()
      clearTimeout(timer)
      await writes.drained()
      await looking
      await following?.catch(() => {})
      await keeper?.stop()
      await uses.stop()
      await store.close()
    },
  }
}

/** Whoever looks has told of it. */
function ignoreStoreError(error: unknown): void {
  if (!(error instanceof StoreError)) throw error
}

interface Loaded {
  readonly state: State
  readonly head: Head
}

async function loadState(store: Store, types: Types): Promise<Loaded> {
  const state = new State(types)
  const head = await store.load((revision, document) => state.put(revision, document))
  state.revision = head.revision
  state.settle()
  return { state, head }
}

function toStored({ json, deleted }: Slot) {
  return { json, deleted }
}

function* toApplied(changes: readonly Change[]): Generator<Applied> {
  for (const { type, id, after } of changes) {
    const applied = after && { document: after.document, deleted: after.deleted, size: after.json.length }
    yield { type, id, after: applied }
  }
}

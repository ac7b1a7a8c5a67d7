// Decide, then commit, then publish: the only way anything changes, and the state that everything is read from.
import { findRemovals } from '../domain/brake.ts'
import { type Command, type Outcome, summarise } from '../domain/command.ts'
import { type Decision, decide } from '../domain/decide.ts'
import { type Grant, refuseBeyond } from '../domain/grant.ts'
import { Comparison, IMPACT_LIMIT, type Impact, impactOf } from '../domain/impact.ts'
import { fail, type Problem, type Result, succeed } from '../domain/problem.ts'
import type { Types } from '../domain/resource-type.ts'
import { type Applied, State } from '../domain/state.ts'
import type { Change, PolledView, Slot, View } from '../domain/view.ts'
import { type Remembered, type RevisionMeta, type Store, StoreError } from '../store/store.ts'
import { inTurns } from './in-turns.ts'
import { openPast, type Past } from './past.ts'
import { planOf, refusePlan } from './plan.ts'
import { followUses, type TokenUses } from './token-uses.ts'

export type { HistoryQuery, RecordedRevision } from '../store/store.ts'

export type Author = Pick<RevisionMeta, 'actor' | 'message' | 'request_id' | 'client_address'>

/** Commands, or what finds them out on top of whatever revision the write is decided on. */
export type Work =
  | readonly Command[]
  | { readonly operation: string; readonly load: () => Promise<Result<readonly Command[]>> }

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
}

export interface Engine {
  /** True once a stop has begun. */
  readonly draining: boolean
  /** Everything as of the last published revision; changes under the reader's feet only between ticks. */
  readonly state: PolledView & Pick<State, 'typeNames'>
  /** Does all of the work as one revision, or nothing. */
  write(work: Work, author: Author, options?: WriteOptions): Promise<Result<Written>>
  /** Reads from the log; a store that is away makes it a problem. */
  inspect<T>(read: (past: Past) => Promise<Result<T>>): Promise<Result<T>>
  /** The same for work that finds its commands in the log. */
  readonly past: Past
  /** When tokens were last used. */
  readonly uses: TokenUses
  /** Takes in what other processes have committed. */
  catchUp(): Promise<void>
  /** Why the engine cannot serve, if it cannot. */
  check(): Promise<string | undefined>
  /** Takes no more writes and says that it is not ready; polls go on. */
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
  readonly onStoreError?: (error: StoreError, doing: 'commit' | 'read' | 'follow' | 'uses') => void
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
const DEFAULT_BRAKE_PERCENT = 10
/** Whoever sends them may be gone already. */
const MAX_WAITING = 1000

/** Loads the state and follows the store until stopped. */
export async function startEngine({
  store,
  types,
  now,
  brakePercent = DEFAULT_BRAKE_PERCENT,
  onStoreError = () => {},
}: EngineParts): Promise<Engine> {
  const state = await loadState(store, types)
  const past = openPast(store, types, state, now)
  const uses = followUses(store, now, (error) => onStoreError(error, 'uses'))

  let stopping = false
  let writes: Promise<unknown> = Promise.resolve()
  let waiting = 0
  let committing: Promise<unknown> | undefined
  let following: Promise<void> | undefined

  async function follow(): Promise<void> {
    const anchor = await store.anchor()
    // The log does not reach back to where this process is: the documents themselves are read again.
    if (anchor && anchor.revision > state.revision) state.become(await loadState(store, types))
    for await (const { revision, changes } of store.changesSince(state.revision)) {
      const prepared = await inTurns(state.prepare(revision, changes))
      // A commit of our own publishes what it made, once it has seen what that means.
      await committing
      if (revision <= state.revision) continue
      if (revision > state.revision + 1)
        throw new StoreError(`revision ${state.revision + 1} is missing from the log`)
      state.publish(revision, prepared)
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

  async function catchUpIfBehind(): Promise<void> {
    if ((await store.head()) !== state.revision) await catchUp()
  }

  async function attempt(work: Work, author: Author, options: WriteOptions): Promise<Result<Written>> {
    for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
      await catchUpIfBehind()
      const { onlyAt, once } = options
      const repeated = once && (await recall(once))
      if (repeated) return repeated
      const base = state.revision
      if (onlyAt !== undefined && base !== onlyAt) {
        return fail({ code: 'conflict', message: `the store is at revision ${base}, not ${onlyAt}` })
      }
      const decided = await decideOn(work, options)
      // What was decided while another process's commit was taken in may be half of each.
      if (state.revision !== base) continue
      if (!decided.ok) return decided
      const { decision, removals, comparison, beyond } = decided.value
      const revision = base + Number(decision.changes.length > 0 && !options.dryRun)
      const warnings = [...(beyond ? [`you may not do this: ${beyond.message}`] : []), ...decision.warnings]
      const written = { ...decision, warnings, removals, revision }
      if (!options.dryRun && !once && revision > base) {
        // What it means for clusters is worked out while the store is writing.
        const assessed = await commit(base, work, author, decision, undefined, () =>
          assess(decision, comparison, options),
        )
        if (assessed) return succeed({ ...written, ...assessed })
        continue
      }
      const assessed = { ...written, ...(await assess(decision, comparison, options)) }
      if (state.revision !== base) continue
      const record = once && !options.dryRun ? recordOf(once, assessed) : undefined
      if (revision === base) {
        if (record) await store.remember(record)
        return succeed(assessed)
      }
      const done = await commit(base, work, author, decision, record, async () => assessed)
      if (done) return succeed(done)
    }
    return fail({ code: 'unavailable', message: 'other writers were faster every time: try again' })
  }

  /** Decides, and refuses what is not as planned or removes too much. */
  async function decideOn(
    work: Work,
    { dryRun, grant, plan, confirmRemovals, impactLimit = IMPACT_LIMIT }: WriteOptions,
  ): Promise<Result<Decided>> {
    const commands = 'load' in work ? await work.load() : succeed(work)
    if (!commands.ok) return commands
    const decided = await inTurns(decide(types, state, commands.value))
    if (!decided.ok) return decided
    const decision = decided.value
    const comparison = new Comparison(types, state, decision.after)
    const beyond = grant && (await inTurns(refuseBeyond(grant, comparison, decision.changes)))
    if (beyond && !dryRun) return fail(beyond)
    if (plan !== undefined && (await inTurns(planOf(decision.changes))) !== plan) {
      return refusePlan(types, past, state.revision, { plan, commands: commands.value, decision })
    }
    const removals = await inTurns(findRemovals(comparison, decision.changes, brakePercent))
    if (removals.length === 0 || confirmRemovals || dryRun)
      return succeed({ decision, removals, comparison, beyond })
    return fail({
      code: 'destructive_change',
      message: `this removes a lot: ${removals.join('; ')}. If that is meant, confirm it: confirm=removals`,
      impact: await inTurns(impactOf(comparison, impactLimit)),
    })
  }

  /** What the caller wants to know of a decision. */
  async function assess(
    { changes }: Decision,
    comparison: Comparison,
    { plan, impactLimit }: WriteOptions,
  ): Promise<Pick<Written, 'impact' | 'plan'>> {
    if (impactLimit === undefined) return plan === undefined ? {} : { plan }
    return {
      impact: await inTurns(impactOf(comparison, impactLimit)),
      plan: plan ?? (await inTurns(planOf(changes))),
    }
  }

  function recordOf(once: Once, written: Written): Remembered {
    const { key, fingerprint } = once
    return { key, fingerprint, time: now().toISOString(), answer: once.answer(written) }
  }

  /** Commits, does something else meanwhile, and publishes; nothing when another writer was faster. */
  async function commit<T>(
    base: number,
    work: Work,
    author: Author,
    { changes }: Decision,
    remember: Remembered | undefined,
    meanwhile: () => Promise<T>,
  ): Promise<T | undefined> {
    const committed = store.commit(base, {
      time: remember?.time ?? now().toISOString(),
      ...author,
      operation: 'load' in work ? work.operation : summarise(work),
      changes: changes.map(({ type, id, after }) => ({ type, id, after: after && toStored(after) })),
      ...(remember && { remember }),
    })
    const preparing = inTurns(state.prepare(base + 1, toApplied(changes)))
    const all = Promise.all([committed, preparing, meanwhile()])
    committing = all.catch(() => {})
    const [result, prepared, value] = await all
    if (!result.ok) return undefined
    if (state.revision === base) state.publish(base + 1, prepared)
    return value
  }

  async function recall({ key, fingerprint }: Once): Promise<Result<Written> | undefined> {
    const known = await store.recall(key, now().toISOString())
    if (!known) return undefined
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
    try {
      return await run()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      onStoreError(error, doing)
      return fail({ code: 'unavailable', message: `the store cannot be used now: ${error.message}` })
    }
  }

  // A store that stays away is looked at many times a second, and told of once.
  let followed = true
  const unwatch = store.watch(async () => {
    try {
      // Nothing of our own needs to be read back.
      await committing
      await catchUp()
      followed = true
    } catch (error) {
      if (followed) onStoreError(error as StoreError, 'follow')
      followed = false
    }
  })

  return {
    get draining() {
      return stopping
    },
    state,
    past,
    uses,
    catchUp,
    write(work, author, options = {}) {
      if (stopping) return Promise.resolve(fail({ code: 'unavailable', message: 'the service is stopping' }))
      if (waiting >= MAX_WAITING)
        return Promise.resolve(
          fail({ code: 'unavailable', message: 'too many writes are waiting: try again' }),
        )
      waiting++
      const result = writes.then(() => guarded('commit', () => attempt(work, author, options)))
      writes = result.catch(() => {}).finally(() => waiting--)
      return result
    },
    inspect: (read) =>
      guarded('read', async () => {
        await catchUpIfBehind()
        return read(past)
      }),
    async check() {
      if (stopping) return 'the service is stopping'
      try {
        await store.head()
        return undefined
      } catch (error) {
        return `the store does not answer: ${(error as Error).message}`
      }
    },
    drain() {
      stopping = true
    },
    async stop() {
      stopping = true
      unwatch()
      await writes
      await following?.catch(() => {})
      await uses.stop()
      await store.close()
    },
  }
}

async function loadState(store: Store, types: Types): Promise<State> {
  const state = new State(types)
  state.revision = await store.load((revision, document) => state.put(revision, document))
  state.settle()
  return state
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

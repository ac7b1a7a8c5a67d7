// Decide, then commit, then publish: the only way anything changes, and the state that everything is read from.
import { type BrakePercents, DEFAULT_BRAKE } from '../base/brake-percents.ts'
import { fail, type ReasonOf, type Result } from '../base/problem.ts'
import { may } from '../domain/access/permissions.ts'
import type { WriteCommand } from '../domain/commands/command.ts'
import type { State } from '../domain/documents/state.ts'
import type { PolledView } from '../domain/documents/view.ts'
import type { Types } from '../domain/types/resource-type.ts'
import { Interrupted } from '../runtime/run-time-sliced.ts'
import { type Store, StoreError } from '../store/store.ts'
import type { ReplicationStatus } from '../transfer/replication-status.ts'
import { Follower, type StoreUse } from './follower.ts'
import { HeadChecks } from './head-checks.ts'
import { openPast, type Past } from './past.ts'
import { keepSnapshots, type Snapshots } from './snapshot.ts'
import { followUses, type TokenUses } from './token-uses.ts'
import { type Turn, WriteQueue } from './write-queue.ts'
import { type Author, type WriteOptions, Writer, type Written } from './writer.ts'

export interface Engine {
  /** False until there is a state to serve from: nothing may be served from this one before. */
  readonly isLoaded: boolean
  /** Resolves once it is. */
  readonly loaded: Promise<void>
  /** True once a stop has begun. */
  readonly draining: boolean
  /** Everything as of the last published revision; changes under the reader's feet only between ticks. */
  readonly state: PolledView & Pick<State, 'typeNames' | 'freeze'>
  /** Does all of the commands as one revision, or nothing. A dry run waits for no write, and no write for it. */
  write(commands: readonly WriteCommand[], author: Author, options?: WriteOptions): Promise<Result<Written>>
  /** Reads from the log; a store that is unavailable makes it a problem. */
  inspect<T>(read: (past: Past) => Promise<Result<T>>): Promise<Result<T>>
  readonly past: Past
  /** When tokens were last used. */
  readonly uses: TokenUses
  /** Takes in what other processes have committed. */
  catchUp(): Promise<void>
  readonly status: ReplicationStatus
  /** The status after a check of the store, waited for a moment at most. */
  check(): Promise<ReplicationStatus>
  /** Waits until this process is at a revision, for so long at most; returns whether it is. */
  reach(revision: number, ms: number): Promise<boolean>
  /** Calls back after every change of what is served; returns how to stop that. */
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
  /** How many clusters may lose inputs without confirmation. */
  readonly brake?: BrakePercents
  /** Called with every failure of the store. */
  readonly onStoreError?: (error: StoreError, doing: StoreUse) => void
  /** Called when the store can be followed again after a failure. */
  readonly onStoreBack?: () => void
  /** What to start from while the store is unavailable. */
  readonly snapshots?: Snapshots
  /** Of a mirror: how its store stands to what it is a copy of. */
  readonly upstream?: () => ReplicationStatus
}

/** Whoever sends them may be gone already; administrators may have as many more. */
const MAX_WAITING = 1000

/** Loads the state and follows the store until stopped. */
export async function startEngine(parts: EngineParts): Promise<Engine> {
  const { store, types, now, brake = DEFAULT_BRAKE, snapshots, upstream } = parts
  const { onStoreError = () => {}, onStoreBack = () => {} } = parts
  const follower = new Follower({ store, types, now, onStoreError, onStoreBack, upstream })
  const { state } = follower
  const checks = new HeadChecks(follower)
  const past = openPast(store, types, state, now)
  const uses = followUses(store, now, (error) => onStoreError(error, 'uses'))
  const writer = new Writer({ store, types, now, follower, past, brake })
  const queue = new WriteQueue()
  const guarded = guardStore(follower, onStoreError)
  let draining = false
  let stopped = false

  await follower.start(snapshots)
  const unwatch = store.watch(() => void checks.refresh())
  if (!store.isPrivate) checks.start()
  const keeper = snapshots && keepFrom(snapshots, follower, onStoreError)

  function write(
    commands: readonly WriteCommand[],
    author: Author,
    options: WriteOptions = {},
  ): Promise<Result<Written>> {
    const request = { commands, author, options }
    if (stopped) return refused('draining', 'the service is stopping')
    if (options.dryRun) return guarded('read', () => writer.preview(request))
    const isUrgent = options.grant === undefined || may(options.grant, 'priority')
    if (queue.size >= (isUrgent ? 2 : 1) * MAX_WAITING)
      return refused('too_many_writes', 'too many writes are waiting: try again')
    const sender = { caller: options.caller ?? author.actor, isUrgent, signal: options.signal }
    // Checked again when its turn comes: the store may be known to be unavailable by then.
    const run = (turn: Turn): Promise<Result<Written>> => guarded('commit', () => writer.write(request, turn))
    return guarded('commit', () => queue.run(sender, run))
  }

  return {
    get isLoaded() {
      return follower.isLoaded
    },
    loaded: follower.loaded,
    get draining() {
      return draining
    },
    get status() {
      return follower.status
    },
    state,
    past,
    uses,
    catchUp: () => follower.checkHead(),
    write,
    inspect: (read) =>
      guarded('read', async () => {
        await follower.checkHead()
        return read(past)
      }),
    async check() {
      await checks.checkNow()
      return follower.status
    },
    reach(revision, ms) {
      if (state.revision < revision) void checks.refresh()
      return follower.reach(revision, ms)
    },
    subscribe: (published) => follower.subscribe(published),
    drain() {
      draining = true
      checks.pause()
    },
    async stop() {
      draining = true
      stopped = true
      unwatch()
      checks.pause()
      await queue.drained()
      await checks.stop()
      await follower.settled()
      await keeper?.stop()
      await uses.stop()
      await store.close()
    },
  }
}

type OnStoreError = NonNullable<EngineParts['onStoreError']>

/** Runs what needs the store; a store that fails makes it a problem. */
function guardStore(follower: Follower, onStoreError: OnStoreError) {
  return async <T>(doing: 'commit' | 'read', run: () => Promise<Result<T>>): Promise<Result<T>> => {
    // Nobody waits for a store that is known to be unavailable.
    if (follower.failure?.isTransient) return unavailable(follower.failure)
    try {
      return await run()
    } catch (error) {
      if (error instanceof Interrupted) return fail(error.problem)
      if (!(error instanceof StoreError)) throw error
      if (error !== follower.failure) onStoreError(error, doing)
      return unavailable(error)
    }
  }
}

function keepFrom(snapshots: Snapshots, follower: Follower, onStoreError: OnStoreError) {
  return keepSnapshots(snapshots, {
    // Also while the store is unavailable: whoever starts from it must not go back behind what was served.
    current() {
      const { isLoaded, state, head, stalenessMs } = follower
      return isLoaded ? { state, head, stalenessMs } : undefined
    },
    failed: (error) => onStoreError(error, 'snapshot'),
  })
}

function unavailable({ message }: StoreError): Result<never> {
  return fail({
    code: 'unavailable',
    reason: 'store_unavailable',
    message: `the store cannot be used now: ${message}`,
  })
}

function refused(reason: ReasonOf<'unavailable'>, message: string): Promise<Result<never>> {
  return Promise.resolve(fail({ code: 'unavailable', reason, message }))
}

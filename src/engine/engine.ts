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
import { DEFAULT_STATUS, type FollowedFleet, followFleet, type StatusSettings } from './fleet/follow-fleet.ts'
import { Follower, type StoreUse } from './follower.ts'
import { HeadChecks } from './head-checks.ts'
import { openPast, type Past } from './past.ts'
import { followReplicas, type ReplicaAbout, type Replicas } from './replicas.ts'
import type { CheckSettings } from './rollouts/check-asker.ts'
import { type StartedController, startController } from './rollouts/start-controller.ts'
import { keepSnapshots, type Snapshots } from './snapshot.ts'
import { followUses, type TokenUses } from './token-uses.ts'
import type { Author, WriteOptions, WriteRequest, Written } from './write-options.ts'
import { type Turn, WriteQueue } from './write-queue.ts'
import { Writer } from './writer.ts'

export interface Engine {
  /** False until a state is loaded; `state` must not be served before. */
  readonly isLoaded: boolean
  /** Resolves once the state is loaded. */
  readonly loaded: Promise<void>
  /** True once a stop has begun. */
  readonly draining: boolean
  /** Everything as of the last published revision; it never changes within one tick of the event loop. */
  readonly state: PolledView & Pick<State, 'typeNames' | 'freeze'>
  /** Commits all commands as one revision, or none of them. A dry run waits for no write, and no write for it. */
  write(commands: readonly WriteCommand[], author: Author, options?: WriteOptions): Promise<Result<Written>>
  /** Reads from the log; returns a problem when the store is unavailable. */
  inspect<T>(read: (past: Past) => Promise<Result<T>>): Promise<Result<T>>
  readonly past: Past
  /** When tokens were last used. */
  readonly uses: TokenUses
  readonly fleet: FollowedFleet
  /** The processes that work on the same store. */
  readonly replicas: Replicas
  /** Applies what other processes have committed. */
  catchUp(): Promise<void>
  readonly status: ReplicationStatus
  /** The status after a check of the store; a check that takes long is not waited for. */
  check(): Promise<ReplicationStatus>
  /** Waits until this process is at a revision, for `ms` at most; returns whether it is. */
  reach(revision: number, ms: number): Promise<boolean>
  /** Calls back after every change of what is served; returns a function that stops it. */
  subscribe(published: () => void): () => void
  /** Announces the stop; requests that have begun, and polls, go on. */
  drain(): void
  /** Finishes the writes under way, then closes the store. */
  stop(): Promise<void>
}

export interface EngineParts {
  readonly store: Store
  readonly types: Types
  readonly now: () => Date
  /** What this process says of itself to others on the store. */
  readonly about?: ReplicaAbout
  /** How many clusters may lose inputs without confirmation. */
  readonly brake?: BrakePercents
  /** How the status of clusters is derived and kept. */
  readonly fleetStatus?: StatusSettings
  /** Called with every failure of the store. */
  readonly onStoreError?: (error: StoreError, doing: StoreUse) => void
  /** Called when the store can be followed again after a failure. */
  readonly onStoreBack?: () => void
  /** Called every few seconds while a large state is loaded. */
  readonly onLoading?: (documents: number) => void
  /** What to start from while the store is unavailable. */
  readonly snapshots?: Snapshots
  /** Only of a mirror: how far its copy is behind the upstream. */
  readonly upstream?: () => ReplicationStatus
  /** Called when a step of a rollout cannot be taken now. */
  readonly onRolloutProblem?: (problem: unknown) => void
  /** Whether this process takes the steps of rollouts, if no other one does. */
  readonly controlsRollouts?: boolean
  /** Which systems outside may be asked about rollouts; none without it. */
  readonly checks?: CheckSettings | undefined
}

/** Writes that may wait in the queue; twice as many for a write of an administrator. */
const MAX_WAITING = 1000

/** Loads the state and follows the store until stopped. */
export async function startEngine(parts: EngineParts): Promise<Engine> {
  const { store, types, now, brake = DEFAULT_BRAKE, snapshots, upstream, onLoading } = parts
  const { fleetStatus = DEFAULT_STATUS, onStoreError = () => {}, onStoreBack = () => {} } = parts
  const follower = new Follower({ store, types, now, onStoreError, onStoreBack, onLoading, upstream })
  const { state } = follower
  const checks = new HeadChecks(follower)
  const past = openPast(store, types, state, now)
  const uses = followUses(store, now, reporterOf(parts, 'uses'))
  const noted = { store, types, state, now, about: parts.about, settings: fleetStatus }
  const fleet = followFleet({ ...noted, failed: reporterOf(parts, 'status') }, follower.loaded)
  const replicas = followReplicas({ ...noted, failed: reporterOf(parts, 'replicas') })
  const writer = new Writer({
    ...{ store, types, now, follower, past, brake, status: fleet.status },
    checkUrls: parts.checks?.urls ?? [],
  })
  const queue = new WriteQueue()
  const guarded = guardStore(follower, onStoreError)
  let draining = false
  let stopped = false

  await follower.start(snapshots)
  const unwatch = store.watch(() => void checks.refresh())
  if (!store.isPrivate) checks.start()
  const keeper = snapshots && keepFrom(snapshots, follower, onStoreError)
  const write = queueWrites(writer, queue, guarded)
  const controller = parts.controlsRollouts ? controlRollouts(parts, follower, fleet.fleet, write) : undefined

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
    fleet,
    replicas,
    catchUp: () => follower.checkHead(),
    write: (commands, author, options = {}) =>
      stopped ? refused('draining', 'the service is stopping') : write({ commands, author, options }),
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
      await controller?.stop()
      await queue.drained()
      await checks.stop()
      await follower.settled()
      await keeper?.stop()
      for (const each of [uses, replicas, fleet]) await each.stop()
      await store.close()
    },
  }
}

function reporterOf({ onStoreError }: EngineParts, doing: StoreUse): (error: StoreError) => void {
  return (error) => onStoreError?.(error, doing)
}

function controlRollouts(
  { store, types, now, checks, onRolloutProblem = () => {} }: EngineParts,
  follower: Follower,
  fleet: FollowedFleet['fleet'],
  write: (request: WriteRequest) => Promise<Result<Written>>,
): StartedController {
  return startController({
    types,
    state: follower.state,
    fleet,
    leases: store.leases,
    now,
    checks,
    write: (commands, author, options) => write({ commands, author, options }),
    subscribe: (published) => follower.subscribe(published),
    failed: onRolloutProblem,
  })
}

/** Previews run at once; writes wait for their turn, those of administrators first. */
function queueWrites(writer: Writer, queue: WriteQueue, guarded: ReturnType<typeof guardStore>) {
  return (request: WriteRequest): Promise<Result<Written>> => {
    const { author, options } = request
    if (options.dryRun) return guarded('read', () => writer.preview(request))
    const isUrgent = options.grant === undefined || may(options.grant, 'priority')
    if (queue.size >= (isUrgent ? 2 : 1) * MAX_WAITING)
      return refused('too_many_writes', 'too many writes are waiting: try again')
    const sender = { caller: options.caller ?? author.actor, isUrgent, signal: options.signal }
    // Checked again when its turn comes: the store may be known to be unavailable by then.
    const waiting = options.span?.child('wait for its turn')
    const run = (turn: Turn): Promise<Result<Written>> => {
      waiting?.end()
      return guarded('commit', () => writer.write(request, turn))
    }
    return guarded('commit', () => queue.run(sender, run))
  }
}

type OnStoreError = NonNullable<EngineParts['onStoreError']>

/** Runs work that needs the store; a StoreError becomes a problem. */
function guardStore(follower: Follower, onStoreError: OnStoreError) {
  return async <T>(doing: 'commit' | 'read', run: () => Promise<Result<T>>): Promise<Result<T>> => {
    // A store that is known to be unavailable fails at once, without a wait.
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
    // Also while the store is unavailable: a process that starts from the snapshot must not serve less than was served.
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

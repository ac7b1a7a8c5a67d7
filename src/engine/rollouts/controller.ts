// Takes the steps of rollouts: one process at a time, by commits, from what is stored and what the fleet reports.
import { randomUUID } from 'node:crypto'
import type { Problem, Result } from '../../base/problem.ts'
import type { Command } from '../../domain/commands/command.ts'
import type { State } from '../../domain/documents/state.ts'
import type { PolledView } from '../../domain/documents/view.ts'
import { actorOf, advance, pausedFor, type Surroundings } from '../../domain/rollouts/advance.ts'
import { asHold, HOLDS } from '../../domain/rollouts/hold.ts'
import { ROLLOUTS, type Rollout } from '../../domain/rollouts/rollout.ts'
import { type ActiveRollout, stagingOf } from '../../domain/rollouts/staging.ts'
import type { Types } from '../../domain/types/resource-type.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import type { Lease, Leases } from '../../store/leases.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { Author, WriteOptions, Written } from '../writer.ts'
import { tallyRollout } from './tally-rollout.ts'

export interface ControllerParts {
  readonly types: Types
  readonly state: PolledView & Pick<State, 'freeze'>
  readonly fleet: Fleet
  readonly leases: Leases
  readonly now: () => Date
  write(commands: readonly Command[], author: Author, options: WriteOptions): Promise<Result<Written>>
  /** Calls back after every change of the state; returns a function that stops it. */
  subscribe(changed: () => void): () => void
  /** Called when a step cannot be taken. */
  readonly failed: (problem: unknown) => void
}

export interface RolloutController {
  /** Takes every step that can be taken now; returns how many. */
  tick(): Promise<number>
  stop(): Promise<void>
}

const LEASE = 'rollouts'
const LEASE_MS = 15_000
/** How often the evidence is looked at while a rollout goes on. */
const LOOK_MS = 1000
/** Looking takes at most this share of the time. */
const LOOK_SHARE = 0.1
/** Steps in a row before others get their turn. */
const MAX_STEPS = 100

/** Runs in processes that write. Costs nothing while there is neither a rollout nor a hold that ends. */
export function startController(parts: ControllerParts): RolloutController {
  const controller = new Controller(parts)
  controller.start()
  return controller
}

class Controller implements RolloutController {
  readonly #parts: ControllerParts
  /** Begins with the id of the process, for people who look into the store. */
  readonly #holder = `${process.pid}-${randomUUID()}`
  #lease: Lease | undefined
  #timer: NodeJS.Timeout | undefined
  #running: Promise<unknown> = Promise.resolve()
  #unsubscribe = (): void => {}
  #isStopped = false
  #isRunning = false
  /** Of the rollouts and holds that were last looked at. */
  #stamp = ''

  constructor(parts: ControllerParts) {
    this.#parts = parts
  }

  start(): void {
    this.#unsubscribe = this.#parts.subscribe(() => this.#published())
    this.#schedule(0)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#unsubscribe()
    clearTimeout(this.#timer)
    await this.#running
    // Another process goes on at once, instead of when the lease expires.
    if (this.#lease) await this.#parts.leases.release(this.#lease).catch(() => {})
  }

  async tick(): Promise<number> {
    const { leases } = this.#parts
    const lease = await leases.acquire(LEASE, this.#holder, LEASE_MS)
    this.#lease = lease.holder === this.#holder ? lease : undefined
    if (!this.#lease) return 0
    let steps = await this.#endHolds()
    for (const { rollout } of this.#staging().active)
      for (let i = 0; i < MAX_STEPS && !this.#isStopped && (await this.#step(rollout.id)); i++) steps++
    return steps
  }

  #staging() {
    return stagingOf(this.#parts.types, this.#parts.state)
  }

  /** Whether there is anything that time or evidence could move. */
  get #isNeeded(): boolean {
    const { state } = this.#parts
    return state.count(HOLDS) > 0 || this.#staging().active.some(({ rollout }) => rollout.state !== 'paused')
  }

  #schedule(ms: number): void {
    if (this.#isStopped) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#running = this.#run()
    }, ms)
    this.#timer.unref()
  }

  /** What other processes and people write is looked at at once. */
  #published(): void {
    const { state } = this.#parts
    const stamp = `${state.stamp(ROLLOUTS)} ${state.stamp(HOLDS)}`
    if (stamp === this.#stamp) return
    this.#stamp = stamp
    if (!this.#isRunning) this.#schedule(0)
  }

  async #run(): Promise<void> {
    if (!this.#isNeeded) return
    this.#isRunning = true
    const begun = performance.now()
    try {
      await this.tick()
    } catch (error) {
      this.#parts.failed(error)
    }
    this.#isRunning = false
    this.#schedule(Math.max(LOOK_MS, (performance.now() - begun) / LOOK_SHARE))
  }

  /** Takes one step of a rollout, if there is one to take. */
  async #step(id: string): Promise<boolean> {
    const { types, state, fleet, now } = this.#parts
    const active = this.#staging().active.find(({ rollout }) => rollout.id === id)
    if (!active || active.rollout.state === 'paused') return false
    const view = state.freeze()
    try {
      const tallies = await runTimeSliced(tallyRollout({ types, fleet, view }, active))
      const around: Surroundings = {
        now: now().toISOString(),
        revision: view.revision + 1,
        blockOf: () => undefined,
      }
      const next = advance(active.rollout, tallies, around)
      if (next.kind === 'wait') return false
      if (next.kind === 'step') return await this.#put(active, next.rollout)
      return await this.#end(active, next, around.now)
    } finally {
      view.release()
    }
  }

  async #put(active: ActiveRollout, rollout: Rollout): Promise<boolean> {
    const what = rollout.events.at(-1)?.what ?? 'advanced'
    const expect = { revisions: [active.entry.revision] }
    const done = await this.#write(active, { op: 'put_rollout', rollout, expect, path: '' }, what)
    return this.#settle(active, done)
  }

  async #end(
    active: ActiveRollout,
    next: { readonly kind: 'finish' } | { readonly kind: 'abort'; readonly why: string },
    at: string,
  ): Promise<boolean> {
    const { id } = active.rollout
    const by = actorOf(active.rollout)
    const expect = { revisions: [active.entry.revision] }
    const command: Command =
      next.kind === 'finish'
        ? { op: 'finish_rollout', id, by, at, expect, path: '' }
        : { op: 'act_on_rollout', id, action: { kind: 'abort', remark: next.why }, by, at, expect, path: '' }
    return this.#settle(active, await this.#write(active, command, next.kind))
  }

  /** A step that is refused pauses the rollout, with the reason; one that came too late is worked out anew. */
  async #settle(active: ActiveRollout, done: Result<Written>): Promise<boolean> {
    if (done.ok) return true
    const { problem } = done
    if (problem.code === 'precondition_failed' || problem.code === 'not_found') return true
    if (problem.code === 'unavailable') {
      this.#parts.failed(problem)
      return false
    }
    const paused = pausedFor(active.rollout, reasonOf(problem), this.#parts.now().toISOString())
    const expect = { revisions: [active.entry.revision] }
    const written = await this.#parts.write(
      [{ op: 'put_rollout', rollout: paused, expect, path: '' }],
      authorOf(active.rollout, 'paused'),
      {},
    )
    if (!written.ok) this.#parts.failed(written.problem)
    return written.ok
  }

  #write(active: ActiveRollout, command: Command, what: string): Promise<Result<Written>> {
    const { rollout } = active
    const { grant } = rollout
    return this.#parts.write([command], authorOf(rollout, what), {
      ...(grant && { grant }),
      ownRollout: rollout.id,
      // Removals were confirmed when the rollout was started.
      confirmRemovals: true,
      operation: `rollout ${rollout.id}: ${what}`,
    })
  }

  async #endHolds(): Promise<number> {
    const { state, now } = this.#parts
    if (state.count(HOLDS) === 0) return 0
    const time = now().toISOString()
    const over = [...state.all(HOLDS)].map(asHold).filter(({ until }) => until !== undefined && until <= time)
    for (const { id, reason } of over) {
      const author = {
        actor: 'service',
        message: `the hold is over: ${reason}`,
        request_id: randomUUID(),
        client_address: null,
      }
      const done = await this.#parts.write([{ op: 'release_cluster', cluster: id, path: '' }], author, {
        confirmRemovals: true,
      })
      if (!done.ok) this.#parts.failed(done.problem)
    }
    return over.length
  }
}

function reasonOf({ message }: Problem): string {
  return `a step was refused: ${message}`
}

function authorOf(rollout: Rollout, what: string): Author {
  const message = `${what}, for ${rollout.started_by}${rollout.message ? `: ${rollout.message}` : ''}`
  return { actor: actorOf(rollout), message, request_id: randomUUID(), client_address: null }
}

// Takes the steps of rollouts: one process at a time, by commits, from what is stored and what the fleet reports.
import { randomUUID } from 'node:crypto'
import type { Problem, Result } from '../../base/problem.ts'
import type { Command } from '../../domain/commands/command.ts'
import type { State } from '../../domain/documents/state.ts'
import type { PolledView } from '../../domain/documents/view.ts'
import type { ActiveRollout } from '../../domain/rollouts/active-rollout.ts'
import { type Advance, actorOf, advance, pausedFor } from '../../domain/rollouts/advance.ts'
import { freezeType } from '../../domain/rollouts/freeze.ts'
import { asHold, HOLDS, type Hold } from '../../domain/rollouts/hold.ts'
import type { Rollout } from '../../domain/rollouts/rollout.ts'
import { stagingOf } from '../../domain/rollouts/staging.ts'
import { surroundingsOf } from '../../domain/rollouts/wave-blocks.ts'
import type { WaveTally } from '../../domain/rollouts/wave-gates.ts'
import type { Types } from '../../domain/types/resource-type.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import type { Leases } from '../../store/leases.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { Author, WriteOptions, Written } from '../write-options.ts'
import { type Answered, CheckAsker, type CheckSettings } from './check-asker.ts'
import { JoinedMembers } from './join-members.ts'
import { Leadership } from './leadership.ts'
import { findAbsent, type TalliedFleet, tallyForStep } from './tally-rollout.ts'

export interface ControllerParts {
  readonly types: Types
  readonly state: PolledView & Pick<State, 'freeze'>
  readonly fleet: Fleet
  readonly leases: Leases
  readonly now: () => Date
  /** Where checks may be asked; without it, none is. */
  readonly checks?: CheckSettings | undefined
  write(commands: readonly Command[], author: Author, options: WriteOptions): Promise<Result<Written>>
  /** Calls back after every change of the state; returns a function that stops it. */
  subscribe(changed: () => void): () => void
  /** Called when a step cannot be taken. */
  readonly failed: (problem: unknown) => void
}

/** Steps in a row before others get their turn. */
const MAX_STEPS = 100
/** How soon something is tried again that another process is to do, or that something new keeps from happening. */
const RETRY_MS = 5000

export interface RolloutController {
  /** Whether there is a rollout that goes on: evidence may move it. */
  readonly hasRollouts: boolean
  /** Whether there are holds: time may end them. */
  readonly hasHolds: boolean
  /**
   * When time alone could move something next, in milliseconds since the epoch, as of the last look. It comes from stored
   * instants: it does not matter when this process was started, nor whether the clock was put forward or back.
   */
  readonly nextLook: number
  /** Takes every step that can be taken now; returns how many. Only a step needs the lease: to look is free. */
  tick(): Promise<number>
  stop(): Promise<void>
}

/** Takes steps only when it is told to. */
export function createController(parts: ControllerParts): RolloutController {
  return new Controller(parts)
}

class Controller implements RolloutController {
  readonly #parts: ControllerParts
  readonly #leadership: Leadership
  readonly #joined: JoinedMembers
  readonly #asker: CheckAsker
  /** Rollouts and holds whose next step a freeze has refused. */
  readonly #frozen = new Map<string, { readonly until: number; readonly stamp: number }>()
  #isStopped = false
  #nextLook = Number.POSITIVE_INFINITY

  constructor(parts: ControllerParts) {
    this.#parts = parts
    this.#leadership = new Leadership(parts.leases)
    this.#joined = new JoinedMembers(parts.types)
    this.#asker = new CheckAsker({
      settings: parts.checks,
      answered: (answered) => this.#take(answered),
      failed: parts.failed,
    })
  }

  get hasRollouts(): boolean {
    return this.#active.some(({ rollout }) => rollout.state !== 'paused')
  }

  get hasHolds(): boolean {
    return this.#parts.state.count(HOLDS) > 0
  }

  get nextLook(): number {
    return this.#nextLook
  }

  async tick(): Promise<number> {
    this.#nextLook = Number.POSITIVE_INFINITY
    let steps = await this.#endHolds()
    const active = this.#active
    this.#joined.forgetOthers(active)
    this.#asker.beginLook()
    for (const { rollout } of active)
      for (let i = 0; i < MAX_STEPS && !this.#isStopped && (await this.#step(rollout.id)); i++) steps++
    this.#asker.endLook()
    return steps
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#asker.stop()
    await this.#leadership.resign()
  }

  get #active(): readonly ActiveRollout[] {
    return stagingOf(this.#parts.types, this.#parts.state).active
  }

  #lookAt(ms: number): void {
    this.#nextLook = Math.min(this.#nextLook, ms)
  }

  /** Takes one step of a rollout, if there is one to take. */
  async #step(id: string): Promise<boolean> {
    const { types, state, fleet, now } = this.#parts
    const active = this.#active.find(({ rollout }) => rollout.id === id)
    if (!active || active.rollout.state === 'paused' || this.#isFrozen(id)) return false
    const view = state.freeze()
    try {
      const around = await runTimeSliced(surroundingsOf({ types, view, active, now: now() }))
      const joined = await this.#joined.look(view, active, around)
      if (joined) return await this.#put(active, joined, around.revision)
      const tallied = { types, fleet, view }
      const tallies = await runTimeSliced(tallyForStep(tallied, active))
      const next = advance(active.rollout, tallies, around)
      if (next.kind === 'wait') return await this.#wait(active, next, tallies)
      if (next.kind === 'step') return await this.#put(active, next.rollout, around.revision)
      return await this.#end(active, next, around.now, tallied)
    } finally {
      view.release()
    }
  }

  async #wait(
    active: ActiveRollout,
    { until, ask = [] }: Extract<Advance, { kind: 'wait' }>,
    tallies: readonly WaveTally[],
  ): Promise<false> {
    if (until !== undefined) this.#lookAt(Date.parse(until))
    for (const tally of tallies) this.#lookAt(tally.until)
    if (ask.length === 0) return false
    if (await this.#leads()) for (const check of ask) this.#asker.ask(active, check)
    return false
  }

  /** Whether this process is the one to act. Where it is not, the one that is may fail to: it looks again. */
  async #leads(): Promise<boolean> {
    if (await this.#leadership.take()) return true
    this.#lookAt(this.#parts.now().getTime() + RETRY_MS)
    return false
  }

  async #put(active: ActiveRollout, rollout: Rollout, assumed: number): Promise<boolean> {
    if (!(await this.#leads())) return false
    const what = rollout.events.at(-1)?.what ?? 'advanced'
    const expect = { revisions: [active.entry.revision] }
    const done = await this.#write(active, { op: 'put_rollout', rollout, assumed, expect, path: '' }, what)
    return this.#settle(active, done)
  }

  async #end(
    active: ActiveRollout,
    next: { readonly kind: 'finish' } | { readonly kind: 'abort'; readonly why: string },
    at: string,
    tallied: TalliedFleet,
  ): Promise<boolean> {
    if (!(await this.#leads())) return false
    const { id } = active.rollout
    const by = actorOf(active.rollout)
    const expect = { revisions: [active.entry.revision] }
    const command: Command =
      next.kind === 'finish'
        ? {
            ...(await runTimeSliced(findAbsent(tallied, active))),
            ...{ op: 'finish_rollout', id, by, at, expect, path: '' },
          }
        : { op: 'act_on_rollout', id, action: { kind: 'abort', remark: next.why }, by, at, expect, path: '' }
    return this.#settle(active, await this.#write(active, command, next.kind))
  }

  /** Keeps what a system outside said about a wave, if it is still about the rollout as it is. */
  async #take({ rollout, wave, name, ok, remark }: Answered): Promise<void> {
    const active = this.#active.find((each) => each.rollout.id === rollout.id)
    if (!active || !(await this.#leads())) return
    const command: Command = {
      op: 'act_on_rollout',
      id: rollout.id,
      action: { kind: 'check', wave, name, ok, plan: rollout.plan, ...(remark !== undefined && { remark }) },
      by: actorOf(rollout),
      at: this.#parts.now().toISOString(),
      path: '',
    }
    const done = await this.#write(active, command, `check ${name} of wave ${wave}`)
    const isVoid = !done.ok && (done.problem.code === 'plan_changed' || done.problem.code === 'not_found')
    if (!done.ok && !isVoid) this.#parts.failed(done.problem)
  }

  /** A step that is refused pauses the rollout, with the reason; one that came too late is worked out anew. */
  async #settle(active: ActiveRollout, done: Result<Written>): Promise<boolean> {
    if (done.ok) return true
    const { problem } = done
    if (problem.code === 'precondition_failed' || problem.code === 'not_found') return true
    if (problem.code === 'unavailable') {
      this.#fail(problem)
      return false
    }
    if (problem.reason === 'frozen') return this.#freeze(active.rollout.id, problem)
    const paused = pausedFor(active.rollout, reasonOf(problem), this.#parts.now().toISOString())
    const expect = { revisions: [active.entry.revision] }
    const written = await this.#parts.write(
      [{ op: 'put_rollout', rollout: paused, assumed: 0, expect, path: '' }],
      authorOf(active.rollout),
      { operation: `rollout ${active.rollout.id}: paused` },
    )
    if (!written.ok) this.#fail(written.problem)
    return written.ok
  }

  /** What is frozen is tried again when it thaws, or when freezes are changed. */
  #freeze(id: string, { nextOpen }: Problem): false {
    const until = nextOpen === undefined ? Number.POSITIVE_INFINITY : Date.parse(nextOpen)
    this.#frozen.set(id, { until, stamp: this.#freezeStamp })
    this.#lookAt(until)
    return false
  }

  #isFrozen(id: string): boolean {
    const frozen = this.#frozen.get(id)
    if (!frozen) return false
    if (frozen.stamp === this.#freezeStamp && this.#parts.now().getTime() < frozen.until) {
      this.#lookAt(frozen.until)
      return true
    }
    this.#frozen.delete(id)
    return false
  }

  get #freezeStamp(): number {
    const { types, state } = this.#parts
    const type = freezeType(types)
    return type ? state.stamp(type.name) : 0
  }

  #fail(problem: Problem): void {
    this.#lookAt(this.#parts.now().getTime() + RETRY_MS)
    this.#parts.failed(problem)
  }

  #write(active: ActiveRollout, command: Command, what: string): Promise<Result<Written>> {
    const { rollout } = active
    const { grant, bypass } = rollout
    return this.#parts.write([command], authorOf(rollout), {
      ...(grant && { grant }),
      ...(bypass && { bypass }),
      ownRollout: rollout.id,
      // Removals were confirmed when the rollout was started.
      confirmRemovals: true,
      operation: `rollout ${rollout.id}: ${what}`,
    })
  }

  async #endHolds(): Promise<number> {
    const { state, now } = this.#parts
    if (!this.hasHolds) return 0
    const time = now().getTime()
    const holds = [...state.all(HOLDS)].map(asHold)
    const over: Hold[] = []
    for (const hold of holds) {
      const end = hold.until === undefined ? Number.POSITIVE_INFINITY : Date.parse(hold.until)
      if (end > time) this.#lookAt(end)
      else if (!this.#isFrozen(hold.id)) over.push(hold)
    }
    if (over.length === 0 || !(await this.#leads())) return 0
    let ended = 0
    for (const hold of over) ended += Number(await this.#endHold(hold))
    return ended
  }

  async #endHold({ id, reason }: Hold): Promise<boolean> {
    const author = {
      actor: 'service',
      message: `the hold is over: ${reason}`,
      request_id: randomUUID(),
      client_address: null,
    }
    const command: Command = { op: 'release_cluster', cluster: id, path: '' }
    const done = await this.#parts.write([command], author, { confirmRemovals: true })
    if (done.ok) return true
    if (done.problem.reason === 'frozen') return this.#freeze(id, done.problem)
    this.#fail(done.problem)
    return false
  }
}

function reasonOf({ message }: Problem): string {
  return `a step was refused: ${message}`
}

/** Messages are in copies of a part of the fleet too: they name no cluster. */
function authorOf(rollout: Rollout): Author {
  const message = `for ${rollout.started_by}${rollout.message ? `: ${rollout.message}` : ''}`
  return { actor: actorOf(rollout), message, request_id: randomUUID(), client_address: null }
}

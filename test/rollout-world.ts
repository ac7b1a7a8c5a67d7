// Two replicas on one store, each with a controller, and everything that is checked at every revision that they make.
import assert from 'node:assert/strict'
import type { Command, RolloutAction } from '../src/domain/commands/command.ts'
import { HOLDS } from '../src/domain/rollouts/hold.ts'
import type { Rollout } from '../src/domain/rollouts/rollout.ts'
import { stagingOf } from '../src/domain/rollouts/staging.ts'
import { type Engine, startEngine } from '../src/engine/engine.ts'
import type { RolloutOptions, WriteOptions } from '../src/engine/write-options.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import type { Store } from '../src/store/store.ts'
import { firstFleet } from './random-changes.ts'
import type { Happening } from './random-rollouts.ts'
import { difference, received, told } from './received-differences.ts'
import { answersIn } from './rollout-copies.ts'
import { Evidence } from './rollout-evidence.ts'
import { type Documents, documentsIn, editsOf, type ModelEdits, types } from './rollout-model.ts'
import { Replica } from './rollout-replica.ts'
import { RolloutWatch } from './rollout-watch.ts'

const AUTHOR = { actor: 'law', message: null, request_id: 'law', client_address: null }

interface GivenApproval {
  readonly rollout: string
  readonly wave: string
  readonly when: 'before' | 'after'
  readonly by: string
  /** The plan that stood then. */
  readonly plan: string
  readonly time: number
}

export class World {
  now = Date.parse('2026-03-01T00:00:00Z')
  /** What happened how often, so that tests can tell that their laws were tried. */
  readonly tried = new Map<string, number>()
  /** Opens the one store of all replicas. */
  readonly #open: () => Store
  #finished: Documents | undefined
  /** A fleet without rollouts, which gets every other write. */
  readonly plain: Engine
  readonly replicas: Replica[] = []
  readonly watch: RolloutWatch
  /** All that were given, whatever became of them. */
  readonly approvals: GivenApproval[] = []

  static async open(open = sharedMemory()): Promise<World> {
    const clock = { now: () => new Date(0) }
    const plain = await startEngine({ store: openMemoryStore(), types, now: () => clock.now() })
    const world = new World(plain, open)
    clock.now = () => new Date(world.now)
    for (const engine of [plain, await world.#engine()]) {
      const created = await engine.write(firstFleet(), AUTHOR)
      assert.ok(created.ok, JSON.stringify(created))
      if (engine !== plain) world.#join(engine)
    }
    world.#join(await world.#engine())
    world.#observe()
    return world
  }

  constructor(plain: Engine, open: () => Store) {
    this.plain = plain
    this.#open = open
    this.watch = new RolloutWatch(this)
  }

  get engine(): Engine {
    return this.replica(0).engine
  }

  replica(at: number): Replica {
    return this.replicas[at] as Replica
  }

  #engine(): Promise<Engine> {
    return startEngine({ store: this.#open(), types, now: () => new Date(this.now) })
  }

  #join(engine: Engine, at = this.replicas.length, evidence = new Evidence()): void {
    const now = () => new Date(this.now)
    this.replicas[at] = new Replica(engine, now, (problem) => this.watch.failed(problem), evidence)
  }

  #observe(): void {
    this.watch.look()
    this.engine.subscribe(() => this.watch.look())
  }

  /** Documents that a rollout has changed by its finish: the fleet without rollouts gets them too. */
  finished(documents: Documents): void {
    this.#finished = documents
  }

  async #takeFinished(): Promise<void> {
    const documents = this.#finished
    if (!documents) return
    this.#finished = undefined
    const there = documentsIn(this.plain.state)
    const commands = [...new Set([...there.keys(), ...documents.keys()])].flatMap((name): Command[] => {
      const [type = '', id = ''] = name.split('/')
      const document = documents.get(name)
      if (JSON.stringify(document) === JSON.stringify(there.get(name))) return []
      return [{ op: 'reset', type, id, to: document && { document, deleted: false }, path: '' }]
    })
    const done = await this.plain.write(commands, AUTHOR, { confirmRemovals: true })
    assert.ok(done.ok, JSON.stringify(done))
    this.watch.assertBase()
  }

  #note(what: string): void {
    this.tried.set(what, (this.tried.get(what) ?? 0) + 1)
  }

  /** Lets something happen, and fails if any revision that it made broke a law. */
  async happen(happening: Happening): Promise<void> {
    this.now += 1000
    const done = await this.#run(happening)
    this.#note(`${happening.kind}${happening.kind === 'act' ? ` ${happening.action.kind}` : ''}: ${done}`)
    await this.engine.catchUp()
    for (const replica of this.replicas) await replica.settle()
    this.watch.settle()
    await this.#takeFinished()
  }

  async #run(happening: Happening): Promise<string> {
    switch (happening.kind) {
      case 'write':
        return this.#write(happening.commands)
      case 'start':
        return this.#start(happening)
      case 'amend': {
        const id = this.#chosen(happening.rollout)
        const { commands, spec, restart } = happening
        return id === undefined ? 'nothing' : this.#stage(commands, { spec, amends: { id, restart } })
      }
      case 'act':
        return this.#act(happening)
      case 'finish':
        return this.#finish(happening.rollout)
      case 'hold':
        return this.#hold(happening.cluster)
      case 'release':
        return this.#command({ op: 'release_cluster', cluster: happening.cluster, path: '' })
      case 'poll':
        return this.replica(happening.replica).poll(happening.cluster)
      case 'report':
        return this.replica(happening.replica).report(happening.cluster, happening.isLate)
      case 'fail':
        return this.replica(happening.replica).fail(happening.cluster, happening.component)
      case 'honest':
        return this.answerAll()
      case 'progress':
        return this.progress()
      case 'wait':
        this.now += happening.seconds * 1000
        return 'done'
      case 'tick':
        return String((await this.replica(happening.replica).controller.tick()) > 0)
      case 'race':
        await Promise.all(this.replicas.map(({ controller }) => controller.tick()))
        return 'done'
      case 'restart':
        return this.#restart(happening.replica)
    }
  }

  /** An active rollout; undefined when there is none. */
  #chosen(n: number): string | undefined {
    const active = this.active()
    return active[n % Math.max(1, active.length)]?.id
  }

  active(): readonly Rollout[] {
    return stagingOf(types, this.engine.state).active.map(({ rollout }) => rollout)
  }

  async #write(commands: readonly Command[]): Promise<string> {
    this.watch.isWriting = true
    const done = await this.#command(commands)
    this.watch.isWriting = false
    if (done !== 'done') return done
    const there = await this.plain.write(commands, AUTHOR, { confirmRemovals: true })
    assert.ok(there.ok, `without rollouts this write is refused: ${JSON.stringify(there)}`)
    this.watch.assertBase()
    return done
  }

  async #command(command: Command | readonly Command[], options: WriteOptions = {}): Promise<string> {
    const commands = Array.isArray(command) ? command : [command]
    const before = received(this.engine.state)
    const all = { confirmRemovals: true, impactLimit: 1000, ...options }
    const done = await this.replica(0).write(commands, AUTHOR, all)
    if (done.ok && done.value.impact)
      assert.deepEqual(told(done.value.impact), difference(before, received(this.engine.state)))
    return done.ok
      ? done.value.changes.length > 0
        ? 'done'
        : 'unchanged'
      : (done.problem.reason ?? done.problem.code)
  }

  async #start({ commands, spec, supersedes }: Extract<Happening, { kind: 'start' }>): Promise<string> {
    const superseded = supersedes === undefined ? undefined : this.#chosen(supersedes)
    return this.#stage(commands, { spec, ...(superseded !== undefined && { supersedes: superseded }) })
  }

  async #stage(
    commands: readonly Command[],
    more: Pick<RolloutOptions, 'spec'> & Partial<Pick<RolloutOptions, 'supersedes' | 'amends'>>,
  ): Promise<string> {
    this.watch.expected = await this.#editsBy(commands)
    const rollout = { strategy: undefined, path: '/rollout/waves', operations: [], ...more }
    const done = await this.replica(0).write(commands, AUTHOR, { confirmRemovals: true, rollout })
    if (!done.ok) return done.problem.reason ?? done.problem.code
    assert.ok(done.value.staged, 'no rollout was made')
    return 'done'
  }

  /** What commands change in a fleet without rollouts. */
  async #editsBy(commands: readonly Command[]): Promise<ModelEdits> {
    const before = documentsIn(this.plain.state)
    const done = await this.plain.write(commands, AUTHOR, { confirmRemovals: true, dryRun: true })
    return editsOf(before, done.ok ? documentsIn(done.value.after) : before)
  }

  async #act({ rollout, action, by }: Extract<Happening, { kind: 'act' }>): Promise<string> {
    const id = this.#chosen(rollout)
    if (id === undefined) return 'nothing'
    const at = new Date(this.now).toISOString()
    const done = await this.#command({ op: 'act_on_rollout', id, action, by, at, path: '' })
    if (done !== 'done' || action.kind !== 'approve') return done
    const { approvals, plan } = this.active().find((each) => each.id === id) ?? assert.fail()
    const given = approvals.filter((each) => each.by === by && each.at === at)
    this.approvals.push(
      ...given.map(({ wave, when }) => ({ rollout: id, wave, when, by, plan, time: this.now })),
    )
    return done
  }

  /** Whatever was written meanwhile, it is such that the rollout can be finished. */
  async #finish(rollout: number): Promise<string> {
    const id = this.#chosen(rollout)
    if (id === undefined) return 'nothing'
    const at = new Date(this.now).toISOString()
    const done = await this.#command(
      { op: 'finish_rollout', id, by: 'law', at, absent: [], stragglers: [], path: '' },
      { ownRollout: id, confirmFinish: true },
    )
    assert.equal(done, 'done', `${id} cannot be finished`)
    return done
  }

  /** Nothing keeps a rollout from going on: whatever is asked of people is done. */
  async clearTheWay(): Promise<void> {
    for (const { id } of [...this.engine.state.all(HOLDS)])
      await this.happen({ kind: 'release', cluster: id })
    for (const [i, { state, waves }] of this.active().entries()) {
      const act = (action: RolloutAction, by: string): Promise<void> =>
        this.happen({ kind: 'act', rollout: i, action, by })
      if (state === 'paused') await act({ kind: 'retry' }, 'ann')
      for (const { name } of waves)
        for (const when of ['before', 'after'] as const)
          for (const by of ['ann', 'ben']) await act({ kind: 'approve', wave: name, when }, by)
    }
  }

  /** Everybody answers well, and time passes. */
  async progress(): Promise<string> {
    this.answerAll()
    this.now += 700_000
    this.answerAll()
    return String((await this.replica(0).controller.tick()) > 0)
  }

  async #hold(cluster: string): Promise<string> {
    const at = new Date(this.now).toISOString()
    return this.#command({ op: 'hold_cluster', cluster, reason: 'r', by: 'law', at, path: '' })
  }

  /** Every cluster polls, and reports that it has applied that. */
  answerAll(): string {
    for (const replica of this.replicas)
      for (const { id } of [...replica.engine.state.all('clusters')]) {
        this.now += 1
        replica.poll(id)
        this.now += 1
        replica.report(id)
      }
    return 'done'
  }

  /** A new process in the place of a replica knows what is in the store. */
  async #restart(at: number): Promise<string> {
    const answers = answersIn(this.engine.state)
    for (const { engine } of this.replicas) await engine.fleet.sync()
    await this.replica(at).stop()
    const all = this.replicas.map((replica) => replica.evidence)
    const evidence = Evidence.merged(all)
    this.#join(await this.#engine(), at, evidence)
    if (at === 0) this.#observe()
    assert.deepEqual(answersIn(this.replica(at).engine.state), answers, 'a new process serves something else')
    return 'done'
  }

  async stop(): Promise<void> {
    const hits = this.replicas.reduce((sum, { cache }) => sum + cache.hits, 0)
    this.tried.set('poll: from the cache', hits)
    for (const replica of this.replicas) await replica.stop()
    await this.plain.stop()
  }
}

function sharedMemory(): () => Store {
  const store = openMemoryStore()
  return () => store
}

// The laws of staged rollouts, checked at every revision.
import assert from 'node:assert/strict'
import type { View } from '../src/domain/documents/view.ts'
import { asHold, HOLDS } from '../src/domain/rollouts/hold.ts'
import {
  asPlan,
  asRollout,
  ROLLOUT_PLANS,
  ROLLOUTS,
  type Rollout,
  type RolloutPlan,
} from '../src/domain/rollouts/rollout.ts'
import { stagingOf } from '../src/domain/rollouts/staging.ts'
import { CLUSTER_IDS } from './random-changes.ts'
import {
  answersFrom,
  answersTo,
  assertEdited,
  type Documents,
  documentsIn,
  inputsOf,
  laid,
  type ModelEdits,
  servedDocuments,
  types,
} from './rollout-model.ts'
import { RolloutSteps } from './rollout-steps.ts'
import type { World } from './rollout-world.ts'

interface Stage {
  readonly rollout: Rollout
  /** Undefined when it has ended. */
  readonly plan: RolloutPlan | undefined
  /** The revision of its plan. */
  readonly planned: number
}

interface Seen {
  readonly base: Documents
  readonly answers: ReadonlyMap<string, readonly string[]>
  /** Ids of the rollouts that are open for a cluster. */
  readonly open: ReadonlyMap<string, readonly string[]>
  readonly held: ReadonlySet<string>
  readonly stages: ReadonlyMap<string, Stage>
}

export class RolloutWatch {
  /** An ordinary write is under way. */
  isWriting = false
  /** What the rollout that is being started or amended changes. */
  expected: ModelEdits | undefined
  readonly #world: World
  readonly #edits = new Map<string, ModelEdits>()
  readonly #failures: unknown[] = []
  /** What every cluster got at each revision. */
  readonly served = new Map<number, Readonly<Record<string, readonly string[]>>>()
  readonly #steps: RolloutSteps
  /** What held clusters got when they were held. */
  readonly #kept = new Map<string, readonly string[]>()
  #seen: Seen | undefined

  constructor(world: World) {
    this.#world = world
    this.#steps = new RolloutSteps(world)
  }

  failed(problem: unknown): void {
    this.#failures.push(problem)
  }

  /** Fails with what went wrong since the last call. */
  settle(): void {
    const [first] = this.#failures
    if (first !== undefined) throw first instanceof Error ? first : new Error(JSON.stringify(first))
  }

  get #view(): View {
    return this.#world.engine.state
  }

  /** The documents are those of the fleet without rollouts. */
  assertBase(): void {
    const [here, there] = [this.#view, this.#world.plain.state].map((view) =>
      Object.fromEntries(documentsIn(view)),
    )
    assert.equal(JSON.stringify(here), JSON.stringify(there))
  }

  look(): void {
    try {
      const before = this.#seen
      const after = this.#see()
      this.#seen = after
      this.served.set(this.#view.revision, Object.fromEntries(after.answers))
      if (before) this.#check(before, after)
    } catch (error) {
      this.#failures.push(error)
    }
  }

  #see(): Seen {
    const view = this.#view
    const stages = new Map<string, Stage>()
    for (const entry of view.all(ROLLOUTS)) {
      const plan = view.get(ROLLOUT_PLANS, entry.id)
      stages.set(entry.id, {
        rollout: asRollout(entry),
        plan: plan && asPlan(plan),
        planned: plan?.revision ?? 0,
      })
    }
    const live = CLUSTER_IDS.filter((id) => view.get('clusters', id))
    return {
      base: documentsIn(view),
      answers: new Map(CLUSTER_IDS.map((id) => [id, answersTo(view, id)])),
      open: new Map(
        live.map((id) => [id, [...stages].filter(([, stage]) => isOpen(stage, id)).map(([name]) => name)]),
      ),
      held: new Set(live.filter((id) => view.get(HOLDS, id))),
      stages,
    }
  }

  #check(before: Seen, after: Seen): void {
    this.#noteMoments(before, after)
    for (const [id, stage] of after.stages) {
      const was = before.stages.get(id)
      if (stage.plan && stage.planned !== was?.planned) this.#checkPlan(id, stage.plan)
      if (stage.plan && was?.plan && stage.planned === was.planned)
        this.#steps.check(was.rollout, stage.rollout, stage.plan)
    }
    this.#checkDocuments(before, after)
    for (const id of CLUSTER_IDS) this.#checkCluster(before, after, id)
  }

  /** Notes new plans, new holds, and since when clusters are served the edits of a rollout. */
  #noteMoments(before: Seen, after: Seen): void {
    for (const [id, { planned, plan }] of after.stages) {
      const isNew = plan && planned !== before.stages.get(id)?.planned
      if (isNew) this.#edits.set(id, this.expected ?? assert.fail('nobody started a rollout'))
      for (const cluster of CLUSTER_IDS) {
        const [was, is] = [before, after].map(({ open }) => open.get(cluster)?.includes(id))
        if (is && (!was || isNew)) this.#steps.opened(id, cluster)
      }
    }
    for (const id of after.held)
      if (!before.held.has(id) && this.#view.get(HOLDS, id)?.revision === this.#view.revision)
        this.#kept.set(id, this.#keptBytes(before, id))
  }

  /** A straggler is held at what it is served without the rollout that has ended, whoever else: at what it was served. */
  #keptBytes(before: Seen, id: string): readonly string[] {
    const hold = this.#view.get(HOLDS, id)
    const [, rollout] = /^rollout\/(.*)$/.exec(hold ? asHold(hold).held_by : '') ?? []
    if (rollout === undefined) return before.answers.get(id) ?? []
    return answersFrom(this.#modelOf(before, id, rollout), id)
  }

  /** Not known by other means than the overlays: what a cluster would be served but for one rollout. */
  #modelOf(before: Seen, id: string, except: string): Documents {
    const others = before.open.get(id)?.filter((name) => name !== except) ?? []
    assert.equal(others.length, 0, 'stragglers of two rollouts at a time are told by another test')
    return before.base
  }

  #checkPlan(id: string, { members }: RolloutPlan): void {
    const all = members.flat()
    assert.equal(new Set(all).size, all.length, `the waves of ${id} share members`)
    const view = this.#view
    const { active } = stagingOf(types, view)
    const own = active.find(({ rollout }) => rollout.id === id)?.overlay ?? assert.fail()
    for (const cluster of CLUSTER_IDS) {
      if (!view.get('clusters', cluster) || view.get(HOLDS, cluster)) continue
      const others = active
        .filter((each) => each.rollout.id !== id && each.isOpenFor(cluster))
        .map(({ overlay }) => overlay)
      const [without, having] = [others, [...others, own]].map((overlays) =>
        inputsOf(answersTo(laid(view, overlays), cluster)),
      )
      const isAffected = JSON.stringify(without) !== JSON.stringify(having)
      assert.equal(
        all.includes(cluster),
        isAffected,
        `${cluster} and the waves of ${id}: ${JSON.stringify(members)}`,
      )
    }
  }

  /** Only writes and finishes change documents, a finish by the edits alone. */
  #checkDocuments(before: Seen, after: Seen): void {
    const finished = [...after.stages].filter(
      ([id, { rollout }]) => rollout.state === 'finished' && before.stages.get(id)?.plan,
    )
    if (this.isWriting && finished.length === 0) return
    assertEdited(
      after.base,
      before.base,
      finished.map(([id]) => this.#edits.get(id) ?? assert.fail()),
    )
    if (finished.length > 0) this.#world.finished(after.base)
  }

  #checkCluster(before: Seen, after: Seen, id: string): void {
    const view = this.#view
    const open = after.open.get(id)
    const answers = after.answers.get(id) ?? []
    if (after.held.has(id)) assert.deepEqual(answers, this.#kept.get(id), `${id} is held`)
    if (after.held.has(id) || !open) return
    const served = servedDocuments(view, id)
    assertEdited(
      served,
      after.base,
      open.map((name) => this.#edits.get(name) ?? assert.fail()),
    )
    assert.deepEqual(answers, answersFrom(served, id), `${id} gets what was rendered of something else`)
    if (this.isWriting || before.held.has(id) || !before.open.has(id)) return
    const was = before.open.get(id) ?? []
    const ended = was.filter((name) => after.stages.get(name)?.rollout.state === 'finished')
    const isSame = was.length === open.length + ended.length && open.every((name) => was.includes(name))
    const isReplanned = open.some(
      (name) => after.stages.get(name)?.planned !== before.stages.get(name)?.planned,
    )
    const mayChange = [...after.stages].some(
      ([name, { rollout }]) =>
        rollout.state === 'finished' && before.stages.get(name)?.plan && !was.includes(name),
    )
    if (isSame && !isReplanned && !mayChange)
      assert.deepEqual(answers, before.answers.get(id), `${id} gets something else`)
  }
}

function isOpen({ rollout, plan }: Stage, cluster: string): boolean {
  // Clusters that came to a wave later follow on those that the plan names.
  const opened =
    plan?.members.flatMap((ids, i) =>
      [...ids, ...(rollout.joined?.[i] ?? [])].slice(0, rollout.waves[i]?.opened ?? 0),
    ) ?? []
  return opened.includes(cluster) && !rollout.skipped.includes(cluster)
}

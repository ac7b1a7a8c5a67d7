// What controllers may do to a rollout, by what clusters were served and reported to them.
import assert from 'node:assert/strict'
import type { View } from '../src/domain/documents/view.ts'
import {
  type Rollout,
  type RolloutPlan,
  specOf,
  type Wave,
  type WaveSpec,
} from '../src/domain/rollouts/rollout.ts'
import { stagingOf } from '../src/domain/rollouts/staging.ts'
import { allowedFailures, gatesOf, neededOf } from '../src/domain/rollouts/strategy.ts'
import { nextPlace } from './rollout-evidence.ts'
import { answersTo, laid, types } from './rollout-model.ts'
import type { World } from './rollout-world.ts'

export class RolloutSteps {
  readonly #world: World
  /** Since when a cluster is served the present edits of a rollout, by both. */
  readonly #openSince = new Map<string, number>()

  constructor(world: World) {
    this.#world = world
  }

  get #view(): View {
    return this.#world.engine.state
  }

  /** A cluster is served the edits of a rollout, or other edits, from now on. */
  opened(rollout: string, cluster: string): void {
    this.#openSince.set(`${rollout} ${cluster}`, nextPlace())
  }

  /** What the controller did to a rollout was allowed. */
  check(before: Rollout, after: Rollout, { members }: RolloutPlan): void {
    assert.ok(!after.waiting_for?.startsWith('a step was refused'), `${after.id}: ${after.waiting_for}`)
    const isOwnStep = after.events.at(-1)?.by === `rollout/${after.id}`
    for (const [i, wave] of after.waves.entries()) {
      const was = before.waves[i] as Wave
      const all = [...(members[i] ?? []), ...(after.joined?.[i] ?? [])]
      assert.ok(wave.opened >= was.opened, 'a wave closes')
      if (wave.opened > was.opened) {
        assert.ok(
          isOwnStep && before.state !== 'paused' && before.state !== 'aborted',
          'somebody else opened a wave',
        )
        this.#checkOpening(before, after, i, all)
      }
      if (wave.state === 'passed' && was.state === 'open' && isOwnStep) this.#checkPassing(after, i, all)
    }
  }

  #checkOpening(before: Rollout, after: Rollout, at: number, members: readonly string[]): void {
    const spec = specOf(after, at)
    const earlier = after.waves.slice(0, at)
    assert.ok(
      earlier.every(({ state }) => state === 'passed' || state === 'skipped'),
      'a wave opens before its turn',
    )
    if (before.waves[at]?.opened === 0) this.#checkApproved(after, spec, 'before')
    if (spec.max_concurrent === undefined) return
    const { opened = 0 } = after.waves[at] ?? {}
    const underWay = members.slice(0, opened).filter((id) => {
      const isCounted =
        this.#answersOf(after, id) && !after.skipped.includes(id) && !after.set_aside.includes(id)
      const isOver = this.#anywhere((evidence) => evidence.hasFailed(id)) || this.#isDone(after, at, id)
      return isCounted && !isOver
    })
    assert.ok(underWay.length <= spec.max_concurrent, `${underWay} are under way, of ${spec.max_concurrent}`)
  }

  /** Whoever had to approve did so, about the present plan, and not too long ago. */
  #checkApproved(rollout: Rollout, { name, approval }: WaveSpec, when: 'before' | 'after'): void {
    const rule = approval?.[when]
    if (!rule) return
    const { now, approvals } = this.#world
    const given = approvals.filter(
      (each) =>
        each.rollout === rollout.id &&
        each.wave === name &&
        each.when === when &&
        each.plan === rollout.plan &&
        (rule.expires_s === undefined || now < each.time + rule.expires_s * 1000) &&
        !(rule.not_starter && each.by === rollout.started_by),
    )
    const people = new Set(given.map(({ by }) => by)).size
    assert.ok(people >= (rule.count ?? 1), `wave ${name} goes on without its approvals ${when} it`)
  }

  #checkPassing(after: Rollout, at: number, members: readonly string[]): void {
    const spec = specOf(after, at)
    this.#checkApproved(after, spec, 'after')
    const gates = gatesOf(spec)
    const counted = members.filter((id) => this.#answersOf(after, id) && !after.skipped.includes(id))
    const observable = counted.filter((id) => !after.set_aside.includes(id))
    const having = (gate: 'isServed' | 'isApplied' | 'isHealthy'): number =>
      counted.filter((id) => this.#has(after, id, gate)).length
    for (const [gate, percent] of [
      ['isServed', gates.served_percent],
      ['isApplied', gates.applied_percent],
      ['isHealthy', gates.healthy_percent],
    ] as const)
      if (percent !== undefined)
        assert.ok(
          having(gate) >= neededOf(percent, observable.length),
          `wave ${spec.name} passes with ${having(gate)} of ${observable.length}`,
        )
    assert.ok(counted.length === 0 || having('isServed') > 0, 'a wave passes in which nobody has answered')
    assert.ok(allowedFailures(gates, counted.length) >= 0)
    const { opened_at = '' } = after.waves[at] ?? {}
    assert.ok(
      this.#world.now >= Date.parse(opened_at) + (gates.soak_s ?? 0) * 1000,
      'a wave passes before it has soaked',
    )
  }

  #isDone(rollout: Rollout, at: number, id: string): boolean {
    const gates = gatesOf(specOf(rollout, at))
    if (gates.healthy_percent !== undefined) return this.#has(rollout, id, 'isHealthy')
    return this.#has(rollout, id, gates.applied_percent !== undefined ? 'isApplied' : 'isServed')
  }

  /** Whether any replica has evidence from after the cluster was first served the edits of the rollout. */
  #has({ id: rollout }: Rollout, id: string, what: 'isServed' | 'isApplied' | 'isHealthy'): boolean {
    const since = this.#openSince.get(`${rollout} ${id}`)
    const answers = this.#answersOf({ id: rollout }, id)
    return (
      since !== undefined &&
      answers !== undefined &&
      this.#anywhere((evidence) => evidence[what](id, since, answers))
    )
  }

  #anywhere(test: (evidence: World['replicas'][number]['evidence']) => boolean): boolean {
    return this.#world.replicas.some(({ evidence }) => test(evidence))
  }

  /** The present answers of the endpoints that a rollout changes for a cluster; undefined where there are none. */
  #answersOf({ id }: Pick<Rollout, 'id'>, cluster: string): ReadonlyMap<string, string> | undefined {
    const view = this.#view
    const own = stagingOf(types, view).active.find(({ rollout }) => rollout.id === id)?.overlay
    if (!own || !view.get('clusters', cluster)) return undefined
    const [without, having, served] = [laid(view, []), laid(view, [own]), view].map((each) =>
      answersTo(each, cluster),
    )
    const changed = types.delivered.flatMap(({ delivery }, i) =>
      without?.[i] === having?.[i] ? [] : [[delivery.endpoint, served?.[i] ?? ''] as const],
    )
    return changed.length > 0 ? new Map(changed) : undefined
  }
}

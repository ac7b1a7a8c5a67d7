// The decision of the controller: what a rollout does next, by how far its members are. No evidence, no advance.
import { named } from '../../base/sentences.ts'
import type { GateResult, Rollout, RolloutEvent, Wave, WaveCounts, WaveSpec } from './rollout.ts'
import { allowedFailures, DEFAULT_DEADLINE_S, gatesOf, neededOf } from './strategy.ts'

/** The members of one wave, counted. Clusters that are deleted, skipped, or reached by nothing any more do not count. */
export interface WaveTally extends Omit<WaveCounts, 'set_aside'> {
  readonly members: number
  /** Of the opened members that are not done, those of which nothing is to be expected now. */
  readonly absent: readonly string[]
  /** Those of them that were never served it. */
  readonly stragglers: readonly string[]
  /** How far the absent ones have come: what is set aside counts for no share. */
  readonly absentCounts: Pick<WaveCounts, 'served' | 'applied' | 'healthy'>
  /** Opened members that are neither done nor failed nor absent, the first few of them. */
  readonly lagging: readonly string[]
  readonly laggingCount: number
  readonly failing: readonly string[]
}

export interface Surroundings {
  /** RFC 3339, UTC. */
  readonly now: string
  /** The revision that the next step makes. */
  readonly revision: number
  /** Why a wave may not open now, such as a freeze; undefined when it may. */
  blockOf(wave: number): string | undefined
}

export type Advance =
  /** Nothing to write. */
  | { readonly kind: 'wait'; readonly waitingFor: string }
  | { readonly kind: 'step'; readonly rollout: Rollout }
  | { readonly kind: 'abort'; readonly why: string }
  | { readonly kind: 'finish' }

/** The most events that a rollout keeps. */
const MAX_EVENTS = 200

export function advance(rollout: Rollout, tallies: readonly WaveTally[], around: Surroundings): Advance {
  if (rollout.state === 'paused') return wait(rollout.waiting_for ?? 'somebody to resume it')
  const breach = findBreach(rollout, tallies)
  if (breach) {
    if (rollout.spec.on_failure === 'abort') return { kind: 'abort', why: breach }
    return step(pausedFor(withCounts(rollout, tallies, around.now), breach, around.now))
  }
  const late = openLate(rollout, tallies, around)
  if (late) return step(late)
  const at = rollout.waves.findIndex(({ state }) => state === 'waiting' || state === 'open')
  if (at < 0) return bake(rollout, around)
  const { state } = rollout.waves[at] as Wave
  return state === 'waiting'
    ? enter(rollout, at, around)
    : watch(rollout, at, tallies[at] as WaveTally, around)
}

export function addEvent(events: readonly RolloutEvent[], event: RolloutEvent): RolloutEvent[] {
  return [...events, event].slice(-MAX_EVENTS)
}

export function pausedFor(rollout: Rollout, why: string, at: string): Rollout {
  const events = addEvent(rollout.events, { at, by: actorOf(rollout), what: 'paused', remark: why })
  return { ...rollout, state: 'paused', waiting_for: why, events }
}

/** The actor of the steps that a rollout takes by itself. */
export function actorOf({ id }: Pick<Rollout, 'id'>): string {
  return `rollout/${id}`
}

/** The wave as it was asked for. A wave that was added for what was left has no spec of its own. */
export function specOf({ spec, waves }: Rollout, at: number): WaveSpec {
  return spec.waves[at] ?? { name: waves[at]?.name ?? 'rest', rest: true }
}

function wait(waitingFor: string): Advance {
  return { kind: 'wait', waitingFor }
}

function step(rollout: Rollout): Advance {
  return { kind: 'step', rollout }
}

/** Earlier waves are watched too while later ones run. */
function findBreach(rollout: Rollout, tallies: readonly WaveTally[]): string | undefined {
  for (const [i, { name, opened }] of rollout.waves.entries()) {
    const tally = tallies[i]
    if (!tally || opened === 0) continue
    const allowed = allowedFailures(gatesOf(specOf(rollout, i)), tally.members)
    if (tally.failed > allowed)
      return `${tally.failed} of ${tally.members} clusters of wave ${name} failed, more than the ${allowed} that may: ${named(tally.failing)}`
  }
  return undefined
}

/** A wave that is next: it opens when nothing keeps it from that. */
function enter(rollout: Rollout, at: number, around: Surroundings): Advance {
  const wave = rollout.waves[at] as Wave
  const spec = specOf(rollout, at)
  if (wave.members === 0)
    return step(withWave(rollout, at, { state: 'skipped' }, around, 'skipped: no members'))
  const missing = missingApproval(rollout, at, 'before', around.now)
  if (missing) return wait(missing)
  if (spec.start_at !== undefined && spec.start_at > around.now)
    return wait(`wave ${wave.name} starts at ${spec.start_at}`)
  const block = around.blockOf(at)
  if (block !== undefined) return wait(block)
  const opened = Math.min(wave.members, spec.max_concurrent ?? wave.members)
  const { now: opened_at, revision: opened_revision } = around
  const patch = { state: 'open', opened, opened_at, opened_revision } as const
  return step({
    ...withWave(rollout, at, patch, around, `opened ${opened} of ${wave.members}`),
    state: 'running',
  })
}

/** An open wave: more of it opens, its gates hold for a while, it has passed. */
function watch(rollout: Rollout, at: number, tally: WaveTally, around: Surroundings): Advance {
  const wave = rollout.waves[at] as Wave
  const spec = specOf(rollout, at)
  if (tally.members === 0)
    return step(withWave(rollout, at, { state: 'skipped' }, around, 'skipped: no members are left'))
  const setAside = setAsideIn(rollout, at, tally, around.now)
  const known = new Set(rollout.set_aside)
  const added = setAside.filter((id) => !known.has(id))
  if (added.length > 0)
    return step({
      ...withWave(rollout, at, {}, around, `set aside ${added.length}: ${named(added)}`),
      set_aside: [...rollout.set_aside, ...added],
    })
  const more = openMore(wave, spec, tally, setAside.length)
  if (more > 0 && around.blockOf(at) === undefined) return step(widened(rollout, at, more, around))
  const gates = evaluate(rollout, at, tally, setAside.length)
  const holds = wave.opened >= wave.members && gates.every((gate) => gate.holds)
  if (!holds) {
    if (wave.gates_hold_since !== undefined)
      return step(withWave(rollout, at, { gates_hold_since: undefined }, around, 'gates no longer hold'))
    return wait(explain(rollout, at, tally, setAside.length))
  }
  const counts = countsOf(tally, setAside.length)
  if (wave.gates_hold_since === undefined)
    return step(withWave(rollout, at, { gates_hold_since: around.now, gates, counts }, around, 'gates hold'))
  const { soak_s = 0 } = gatesOf(spec)
  if (!isPast(wave.gates_hold_since, soak_s, around.now))
    return wait(`wave ${wave.name} soaks until ${later(wave.gates_hold_since, soak_s)}`)
  const missing = missingApproval(rollout, at, 'after', around.now)
  if (missing) return wait(missing)
  return step(
    withWave(rollout, at, { state: 'passed', passed_at: around.now, gates, counts }, around, 'passed'),
  )
}

/** Clusters that join a wave that has passed are opened with it, as many at a time as in any wave. */
function openLate(
  rollout: Rollout,
  tallies: readonly WaveTally[],
  around: Surroundings,
): Rollout | undefined {
  for (const [at, wave] of rollout.waves.entries()) {
    const tally = tallies[at]
    if (wave.state !== 'passed' || !tally) continue
    const setAside = setAsideIn(rollout, at, tally, around.now)
    const more = openMore(wave, specOf(rollout, at), tally, setAside.length)
    if (more > 0 && around.blockOf(at) === undefined) return widened(rollout, at, more, around)
  }
  return undefined
}

function widened(rollout: Rollout, at: number, more: number, around: Surroundings): Rollout {
  const { opened: before, members } = rollout.waves[at] as Wave
  const opened = before + more
  const patch = { opened, widened_at: around.now }
  return withWave(rollout, at, patch, around, `opened ${opened} of ${members}`)
}

/** The absent members of a wave once its deadline is over: it counts from when the newest members were opened. */
export function setAsideIn(rollout: Rollout, at: number, tally: WaveTally, now: string): readonly string[] {
  const { opened_at, widened_at = opened_at } = rollout.waves[at] as Wave
  return isPast(widened_at, specOf(rollout, at).deadline_s ?? DEFAULT_DEADLINE_S, now) ? tally.absent : []
}

/** How many more members may be opened: `max_concurrent` counts those that are under way. */
function openMore(wave: Wave, { max_concurrent }: WaveSpec, tally: WaveTally, setAside: number): number {
  const left = wave.members - wave.opened
  if (left <= 0 || max_concurrent === undefined) return Math.max(0, left)
  const underWay = tally.laggingCount + tally.absent.length - setAside
  return Math.max(0, Math.min(left, max_concurrent - underWay))
}

/** Percentages are of the members that can be observed; where nobody can, no gate holds. */
export function evaluate(rollout: Rollout, at: number, tally: WaveTally, setAside: number): GateResult[] {
  const gates = gatesOf(specOf(rollout, at))
  const of = tally.members - setAside
  const observed = (column: 'served' | 'applied' | 'healthy'): number =>
    tally[column] - (setAside > 0 ? tally.absentCounts[column] : 0)
  const percents = (['served', 'applied', 'healthy'] as const).flatMap((column): GateResult[] => {
    const kind = `${column}_percent` as const
    const needed = gates[kind]
    if (needed === undefined) return []
    const [count, needed_count] = [observed(column), neededOf(needed, of)]
    const value = of > 0 ? Math.floor((1000 * count) / of) / 10 : 0
    return [{ kind, needed, value, holds: of > 0 && count >= needed_count, count, needed_count, of }]
  })
  const allowed = allowedFailures(gates, tally.members)
  const { failed } = tally
  // A wave in which nobody has answered has no failures either: that is no success.
  const holds = observed('served') > 0 && failed <= allowed
  const failures = { kind: 'failures', needed: allowed, value: failed, holds } as const
  return [...percents, { ...failures, count: failed, needed_count: allowed, of: tally.members }]
}

function explain(rollout: Rollout, at: number, tally: WaveTally, setAside: number): string {
  const { name, opened, members } = rollout.waves[at] as Wave
  const gates = gatesOf(specOf(rollout, at))
  const doing =
    gates.healthy_percent !== undefined
      ? 'are not healthy with it'
      : gates.applied_percent !== undefined
        ? 'have not applied it'
        : 'were not served it'
  const absent = tally.absent.length - setAside
  if (tally.laggingCount === 0 && absent === 0) {
    if (opened < members) return `the next members of wave ${name} to open`
    return setAside > 0 && setAside === tally.members
      ? `an answer: all ${setAside} clusters of wave ${name} are absent`
      : `wave ${name}: ${tally.failed} of ${tally.members} clusters failed`
  }
  const ids = [...tally.lagging, ...tally.absent]
  const away = absent > 0 ? ` (${absent} of them absent)` : ''
  return `${tally.laggingCount + absent} of ${tally.members} clusters of wave ${name} ${doing} yet${away}: ${named(ids)}`
}

function bake(rollout: Rollout, { now }: Surroundings): Advance {
  const { bake_s = 0 } = rollout.spec
  if (bake_s === 0) return { kind: 'finish' }
  const { baking_since } = rollout
  if (baking_since === undefined) {
    const events = addEvent(rollout.events, { at: now, by: actorOf(rollout), what: 'baking' })
    return step({ ...rollout, state: 'baking', baking_since: now, events })
  }
  return isPast(baking_since, bake_s, now)
    ? { kind: 'finish' }
    : wait(`it bakes until ${later(baking_since, bake_s)}`)
}

/** Approvals are bound to the plan: one of an earlier plan is not in the list any more. */
function missingApproval(
  rollout: Rollout,
  at: number,
  when: 'before' | 'after',
  now: string,
): string | undefined {
  const { name } = rollout.waves[at] as Wave
  const rule = specOf(rollout, at).approval?.[when]
  if (!rule) return undefined
  const { count = 1, expires_s } = rule
  const given = rollout.approvals.filter(
    (approval) =>
      approval.wave === name &&
      approval.when === when &&
      (expires_s === undefined || !isPast(approval.at, expires_s, now)),
  )
  if (given.length >= count) return undefined
  const who = rule.not_starter ? ` by somebody other than ${rollout.started_by}` : ''
  return `${count - given.length} more approval${count - given.length === 1 ? '' : 's'} ${when} wave ${name}${who}`
}

function withWave(
  rollout: Rollout,
  at: number,
  patch: { readonly [K in keyof Wave]?: Wave[K] | undefined },
  { now }: Surroundings,
  what: string,
): Rollout {
  const wave = Object.fromEntries(
    Object.entries({ ...rollout.waves[at], ...patch }).filter(([, value]) => value !== undefined),
  ) as unknown as Wave
  const events = addEvent(rollout.events, {
    at: now,
    by: actorOf(rollout),
    what: `wave ${wave.name}: ${what}`,
  })
  return { ...rollout, waves: rollout.waves.with(at, wave), waiting_for: null, events }
}

/** The counts at a decision are kept as its evidence. */
function withCounts(rollout: Rollout, tallies: readonly WaveTally[], now: string): Rollout {
  const waves = rollout.waves.map((wave, i) => {
    const tally = tallies[i]
    if (!tally || wave.opened === 0) return wave
    // Of other waves only failures are looked for.
    if (wave.state !== 'open')
      return wave.counts ? { ...wave, counts: { ...wave.counts, failed: tally.failed } } : wave
    const setAside = setAsideIn(rollout, i, tally, now).length
    return { ...wave, counts: countsOf(tally, setAside), gates: evaluate(rollout, i, tally, setAside) }
  })
  return { ...rollout, waves }
}

export function countsOf({ served, applied, healthy, failed }: WaveTally, set_aside: number): WaveCounts {
  return { served, applied, healthy, failed, set_aside }
}

export function isPast(since: string | undefined, seconds: number, now: string): boolean {
  return since !== undefined && Date.parse(now) >= Date.parse(since) + seconds * 1000
}

export function later(since: string, seconds: number): string {
  return new Date(Date.parse(since) + seconds * 1000).toISOString()
}

// The decision of the controller: what a rollout does next, by how far its members are. No evidence, no advance.
import { named } from '../../base/sentences.ts'
import { missingApproval } from './approvals.ts'
import { earliest, isAhead, isPast, later } from './instants.ts'
import type { CheckSpec, Rollout, RolloutEvent, Wave, WaveSpec } from './rollout.ts'
import { specOf } from './rollout.ts'
import { allowedFailures, gatesOf } from './strategy.ts'
import {
  countsOf,
  deadlineOf,
  evaluate,
  openChecks,
  refusedCheck,
  setAsideIn,
  type WaveTally,
} from './wave-gates.ts'

/** Why something may not happen now, and until when, where an end is in sight. */
export interface Block {
  readonly why: string
  readonly until?: string
}

export interface Surroundings {
  /** RFC 3339, UTC. */
  readonly now: string
  /** The revision that the next step makes. */
  readonly revision: number
  /** Why the members of a wave that come before a place may not all be served the change now. */
  blockOf(wave: number, opened: number): Block | undefined
  /** Why the change may not be finished now, once all waves have ended. */
  blockOfFinish(): Block | undefined
}

export type Advance =
  /** Nothing to write before `until`, where that is known, or before something new becomes known. */
  | {
      readonly kind: 'wait'
      readonly waitingFor: string
      readonly until?: string
      /** Checks to ask for meanwhile. */
      readonly ask?: readonly AskedCheck[]
    }
  | { readonly kind: 'step'; readonly rollout: Rollout }
  | { readonly kind: 'abort'; readonly why: string }
  | { readonly kind: 'finish' }

export interface AskedCheck extends CheckSpec {
  readonly url: string
  /** The wave's place. */
  readonly wave: number
}

/** The most events that a rollout keeps. */
const MAX_EVENTS = 200
/** Those before count as opened with their wave: they have come far enough for others to be opened after them. */
const MAX_WIDENINGS = 32
/** For how long a check with a URL is asked again, where it does not say itself. */
const CHECK_TIMEOUT_S = 600

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

function wait(waitingFor: string, until?: string): Advance {
  return { kind: 'wait', waitingFor, ...(until !== undefined && { until }) }
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
    const refused = refusedCheck(rollout, i)
    if (refused)
      return `check ${refused.name} of wave ${name} says no${refused.remark === undefined ? '' : `: ${refused.remark}`}`
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
  if (isAhead(spec.start_at, around.now))
    return wait(`wave ${wave.name} starts at ${spec.start_at}`, spec.start_at)
  // An amendment may have left some of it open already.
  const opened = Math.max(wave.opened, Math.min(wave.members, spec.max_concurrent ?? wave.members))
  const block = around.blockOf(at, opened)
  if (block) return wait(block.why, block.until)
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
  const block = more > 0 ? around.blockOf(at, wave.opened + more) : undefined
  if (more > 0 && !block) return step(widened(rollout, at, more, around))
  const deadline = deadlineOf(rollout, at)
  // Once it is past, whoever is absent then is set aside as soon as that is known.
  const next = isAhead(deadline, around.now) ? deadline : undefined
  const gates = evaluate(rollout, at, tally, setAside.length)
  const areServed = wave.opened >= wave.members && gates.every(({ kind, holds }) => kind === 'check' || holds)
  if (!areServed) {
    if (wave.gates_hold_since !== undefined || wave.checks_since !== undefined)
      return step(withWave(rollout, at, NOT_HOLDING, around, 'gates no longer hold'))
    return block
      ? wait(block.why, earliest(block.until, next))
      : wait(explain(rollout, at, tally, setAside.length), next)
  }
  const asked = awaitChecks(rollout, at, around, next)
  if (asked) return asked
  return soak(rollout, at, { gates, counts: countsOf(tally, setAside.length) }, around)
}

const NOT_HOLDING = { gates_hold_since: undefined, checks_since: undefined }

/** Waits for the answers of systems outside; undefined where all have answered. */
function awaitChecks(
  rollout: Rollout,
  at: number,
  around: Surroundings,
  deadline: string | undefined,
): Advance | undefined {
  const checks = openChecks(rollout, at)
  if (checks.length === 0) return undefined
  const { name, checks_since: since } = rollout.waves[at] as Wave
  const names = named(checks.map((check) => check.name))
  if (since === undefined || isAhead(since, around.now))
    return step(withWave(rollout, at, { checks_since: around.now }, around, `waits for check ${names}`))
  const ends = checks.map((check) => {
    const { timeout_s = check.url === undefined ? undefined : CHECK_TIMEOUT_S } = check
    return timeout_s === undefined ? undefined : { check, timeout_s, at: later(since, timeout_s) }
  })
  const late = ends.find((end) => end !== undefined && !isAhead(end.at, around.now))
  if (late) {
    const why = `check ${late.check.name} of wave ${name} has not answered within ${late.timeout_s} s`
    return step(pausedFor(rollout, why, around.now))
  }
  const ask = checks.flatMap(({ url, ...check }) => (url === undefined ? [] : [{ ...check, url, wave: at }]))
  const until = earliest(deadline, ...ends.map((end) => end?.at))
  const waitingFor = `the answer of check ${names} of wave ${name}`
  return { kind: 'wait', waitingFor, ...(until !== undefined && { until }), ask }
}

/** All gates hold: they have to go on doing so for a while. */
function soak(
  rollout: Rollout,
  at: number,
  evidence: Pick<Wave, 'gates' | 'counts'>,
  around: Surroundings,
): Advance {
  const wave = rollout.waves[at] as Wave
  const { gates_hold_since: since } = wave
  if (since === undefined || isAhead(since, around.now))
    return step(withWave(rollout, at, { gates_hold_since: around.now, ...evidence }, around, 'gates hold'))
  const { soak_s = 0 } = gatesOf(specOf(rollout, at))
  if (!isPast(since, soak_s, around.now)) {
    const until = later(since, soak_s)
    return wait(`wave ${wave.name} soaks until ${until}`, until)
  }
  const missing = missingApproval(rollout, at, 'after', around.now)
  if (missing) return wait(missing)
  return step(
    withWave(rollout, at, { state: 'passed', passed_at: around.now, ...evidence }, around, 'passed'),
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
    if (more > 0 && !around.blockOf(at, wave.opened + more)) return widened(rollout, at, more, around)
  }
  return undefined
}

function widened(rollout: Rollout, at: number, more: number, around: Surroundings): Rollout {
  const { opened: before, members, widenings: former = [] } = rollout.waves[at] as Wave
  const opened = before + more
  const widenings = [...former, [before, around.revision] as const].slice(-MAX_WIDENINGS)
  const patch = { opened, widened_at: around.now, widenings }
  return withWave(rollout, at, patch, around, `opened ${opened} of ${members}`)
}

/** How many more members may be opened: `max_concurrent` counts those that are under way. */
function openMore(wave: Wave, { max_concurrent }: WaveSpec, tally: WaveTally, setAside: number): number {
  const left = wave.members - wave.opened
  if (left <= 0 || max_concurrent === undefined) return Math.max(0, left)
  const underWay = tally.laggingCount + tally.absent.length - setAside
  return Math.max(0, Math.min(left, max_concurrent - underWay))
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

function bake(rollout: Rollout, around: Surroundings): Advance {
  const { now } = around
  const { bake_s = 0 } = rollout.spec
  const { baking_since } = rollout
  if (bake_s > 0 && (baking_since === undefined || isAhead(baking_since, now))) {
    const events = addEvent(rollout.events, { at: now, by: actorOf(rollout), what: 'baking' })
    return step({ ...rollout, state: 'baking', baking_since: now, events })
  }
  if (baking_since !== undefined && !isPast(baking_since, bake_s, now)) {
    const until = later(baking_since, bake_s)
    return wait(`it bakes until ${until}`, until)
  }
  const block = around.blockOfFinish()
  return block ? wait(block.why, block.until) : { kind: 'finish' }
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

// The gates of a wave: how far its members are, and which gates hold by that.
import { isAhead, later } from './instants.ts'
import type { CheckResult, CheckSpec, GateResult, Rollout, Wave, WaveCounts } from './rollout.ts'
import { specOf } from './rollout.ts'
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
  /** When it may come out differently without anything new becoming known, in milliseconds. */
  readonly until: number
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
  return [
    ...percents,
    { ...failures, count: failed, needed_count: allowed, of: tally.members },
    ...(gates.checks ?? []).map(({ name }) => checkResult(rollout, at, name)),
  ]
}

function checkResult(rollout: Rollout, at: number, name: string): GateResult {
  const holds = answerOf(rollout, at, name)?.ok === true
  const value = Number(holds)
  return { kind: 'check', name, needed: 1, value, holds, count: value, needed_count: 1, of: 1 }
}

/** When absent members are set aside: it counts from when the newest members were opened. */
export function deadlineOf(rollout: Rollout, at: number): string | undefined {
  const { opened_at, widened_at = opened_at } = rollout.waves[at] as Wave
  return widened_at === undefined
    ? undefined
    : later(widened_at, specOf(rollout, at).deadline_s ?? DEFAULT_DEADLINE_S)
}

/** The absent members of a wave once its deadline is over. */
export function setAsideIn(rollout: Rollout, at: number, tally: WaveTally, now: string): readonly string[] {
  const deadline = deadlineOf(rollout, at)
  return deadline !== undefined && !isAhead(deadline, now) ? tally.absent : []
}

/** The last answer to a check of a wave, where it is about the present plan. */
function answerOf(rollout: Rollout, at: number, check: string): CheckResult | undefined {
  const { name } = rollout.waves[at] as Wave
  return rollout.checks?.find(
    (each) => each.wave === name && each.name === check && each.plan === rollout.plan,
  )
}

/** The checks of a wave that nobody has answered yet; a no from before a retry does not count. */
export function openChecks(rollout: Rollout, at: number): CheckSpec[] {
  const { checks = [] } = gatesOf(specOf(rollout, at))
  return checks.filter(({ name }) => {
    const answer = answerOf(rollout, at, name)
    return answer === undefined || (!answer.ok && isRetried(rollout, answer))
  })
}

/** The first check of a wave that was answered with a no. */
export function refusedCheck(rollout: Rollout, at: number): CheckResult | undefined {
  const { checks = [] } = gatesOf(specOf(rollout, at))
  return checks
    .map(({ name }) => answerOf(rollout, at, name))
    .find((answer) => answer !== undefined && !answer.ok && !isRetried(rollout, answer))
}

function isRetried({ retried_at }: Rollout, { at }: CheckResult): boolean {
  return retried_at !== undefined && Date.parse(at) <= Date.parse(retried_at)
}

export function countsOf({ served, applied, healthy, failed }: WaveTally, set_aside: number): WaveCounts {
  return { served, applied, healthy, failed, set_aside }
}

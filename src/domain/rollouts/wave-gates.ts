// The gates of a wave: how far its members are, and which gates hold by that.
import type { CheckResult, CheckSpec, GateResult, Rollout, Wave, WaveCounts } from './rollout.ts'
import { specOf } from './rollout.ts'
import { allowedFailures, gatesOf } from './strategy.ts'

/** The members of one wave, counted. Clusters that are deleted, skipped, or reached by nothing any more do not count. */
export interface WaveTally extends Omit<WaveCounts, 'set_aside'> {
  readonly members: number
  /** Of the opened members, those of which nothing is to be expected now. */
  readonly absent: readonly string[]
  /** Opened members that are neither done nor failed nor absent, the first few of them. */
  readonly lagging: readonly string[]
  readonly laggingCount: number
  readonly failing: readonly string[]
  /** When it may come out differently without anything new becoming known, in milliseconds. */
  readonly until?: number
}

/** Percentages are of the members that can be observed; where nobody can, no gate holds. */
export function evaluate(rollout: Rollout, at: number, tally: WaveTally, setAside: number): GateResult[] {
  const gates = gatesOf(specOf(rollout, at))
  const observable = tally.members - setAside
  const share = (count: number): number => (observable > 0 ? Math.floor((1000 * count) / observable) / 10 : 0)
  const percent = (
    kind: 'served_percent' | 'applied_percent' | 'healthy_percent',
    count: number,
  ): GateResult[] => {
    const needed = gates[kind]
    if (needed === undefined) return []
    return [{ kind, needed, value: share(count), holds: observable > 0 && share(count) >= needed }]
  }
  const allowed = allowedFailures(gates, tally.members)
  return [
    ...percent('served_percent', tally.served),
    ...percent('applied_percent', tally.applied),
    ...percent('healthy_percent', tally.healthy),
    // A wave in which nobody has answered has no failures either: that is no success.
    {
      kind: 'failures',
      needed: allowed,
      value: tally.failed,
      holds: observable > 0 && tally.served > 0 && tally.failed <= allowed,
    },
    ...(gates.checks ?? []).map(({ name }): GateResult => {
      const holds = answerOf(rollout, at, name)?.ok === true
      return { kind: 'check', name, needed: 1, value: Number(holds), holds }
    }),
  ]
}

/** The last answer to a check of a wave, where it is about the present plan. */
export function answerOf(rollout: Rollout, at: number, check: string): CheckResult | undefined {
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

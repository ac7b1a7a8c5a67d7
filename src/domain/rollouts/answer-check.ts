// Answers of systems outside to the checks of a wave.
import { conflictOf, fail, invalid, type Result, succeed } from '../../base/problem.ts'
import { named } from '../../base/sentences.ts'
import type { RolloutAction } from '../commands/command.ts'
import { type CheckResult, type Rollout, specOf } from './rollout.ts'
import { gatesOf } from './strategy.ts'

/** Refuses what was said about a plan that is not the present one any more. */
export function otherPlan({ id }: Rollout, what: string): Result<never> {
  return fail({
    code: 'plan_changed',
    reason: 'plan_changed',
    message: `the ${what} is about another plan: rollout "${id}" was changed since, look again`,
  })
}

/** Takes an answer about a wave that is open, or has been; a later one takes the place of an earlier one. */
export function answerCheck(
  rollout: Rollout,
  { wave: name, name: check, ok, remark, plan }: Extract<RolloutAction, { kind: 'check' }>,
  by: string,
  at: string,
): Result<Rollout> {
  const place = rollout.waves.findIndex((wave) => wave.name === name)
  const wave = rollout.waves[place]
  if (!wave) {
    const known = named(rollout.waves.map((each) => each.name))
    return invalid([{ path: '/wave', message: `names no wave: "${name}"; there are ${known}` }])
  }
  const { checks = [] } = gatesOf(specOf(rollout, place))
  if (!checks.some((each) => each.name === check)) {
    const known = checks.length > 0 ? `it has ${named(checks.map((each) => each.name))}` : 'it has none'
    return invalid([{ path: '/name', message: `names no check of wave "${name}": "${check}"; ${known}` }])
  }
  if (wave.opened === 0)
    return fail(
      conflictOf(
        'rollout_state',
        `wave "${name}" is not open: there is nothing yet that ${check} could be about`,
      ),
    )
  if (plan !== undefined && plan !== rollout.plan) return otherPlan(rollout, 'answer')
  const answer: CheckResult = {
    wave: name,
    name: check,
    ok,
    by,
    at,
    plan: rollout.plan,
    ...(remark !== undefined && { remark }),
  }
  const others = (rollout.checks ?? []).filter((each) => each.wave !== name || each.name !== check)
  return succeed({ ...rollout, checks: [...others, answer] })
}

// Who has to approve a wave before it opens, or after its gates hold; who may, and who is missing.
import { conflictOf, fail, forbidden, invalid, type Result, succeed } from '../../base/problem.ts'
import type { Role } from '../access/grant.ts'
import { isPast } from './instants.ts'
import { type Approval, type ApprovalRule, type Rollout, specOf, type Wave } from './rollout.ts'

export interface ApprovalGiven {
  /** The wave's place. */
  readonly wave: number
  readonly when: 'before' | 'after' | undefined
  readonly by: string
  readonly at: string
  readonly remark: string | undefined
  readonly role: Role | undefined
}

/** Adds an approval; a second one of the same person takes the place of the first. */
export function approve(rollout: Rollout, given: ApprovalGiven): Result<Rollout> {
  const { wave: place, by, at, remark } = given
  const wave = rollout.waves[place] as Wave
  const { name, state } = wave
  if (state === 'passed' || state === 'skipped')
    return fail(conflictOf('wave_ended', `wave "${name}" is ${state} already: it needs no approval any more`))
  const when = given.when ?? (state === 'open' ? 'after' : 'before')
  if (when === 'before' && state === 'open')
    return fail(conflictOf('wave_ended', `wave "${name}" is open already: approve it after`))
  const rule = specOf(rollout, place).approval?.[when]
  if (!rule) return invalid([{ path: '/wave', message: `names a wave that needs no approval ${when} it` }])
  if (rule.not_starter && authorsOf(rollout).includes(by))
    return fail(
      conflictOf(
        'own_approval',
        `wave "${name}" needs the approval of somebody other than ${by}, whose change it is`,
      ),
    )
  if (rule.role === 'admin' && given.role !== undefined && given.role !== 'admin')
    return fail(
      forbidden(
        'needs_admin',
        `wave "${name}" needs the approval of an admin, and your role is ${given.role}`,
      ),
    )
  const others = rollout.approvals.filter(
    (each) => !(each.wave === name && each.when === when && each.by === by),
  )
  const approval: Approval = { wave: name, when, by, at, ...(remark !== undefined && { remark }) }
  return succeed({ ...rollout, approvals: [...others, approval] })
}

/** An approval that is still missing, as a sentence; undefined where there are enough. */
export function missingApproval(
  rollout: Rollout,
  place: number,
  when: 'before' | 'after',
  now: string,
): string | undefined {
  const { name } = rollout.waves[place] as Wave
  const rule = specOf(rollout, place).approval?.[when]
  if (!rule) return undefined
  const missing = (rule.count ?? 1) - countValid(rollout, name, when, rule, now)
  if (missing <= 0) return undefined
  const whom = rule.role === 'admin' ? 'an admin' : 'somebody'
  const others = rule.not_starter ? ` other than ${authorsOf(rollout).join(' and ')}` : ''
  const who = rule.not_starter || rule.role === 'admin' ? ` by ${whom}${others}` : ''
  return `${missing} more approval${missing === 1 ? '' : 's'} ${when} wave ${name}${who}`
}

/** The place of the first wave that lacks an approval; of the next wave where none does, negative where all have ended. */
export function nextToApprove(rollout: Rollout, when: 'before' | 'after' | undefined, now: string): number {
  const { waves } = rollout
  const lacks = ({ state }: Wave, place: number): boolean =>
    (state === 'waiting' || state === 'open') &&
    missingApproval(rollout, place, when ?? (state === 'open' ? 'after' : 'before'), now) !== undefined
  const lacking = waves.findIndex(lacks)
  return lacking >= 0 ? lacking : waves.findIndex(({ state }) => state === 'waiting' || state === 'open')
}

/** Approvals are bound to the plan: those of an earlier plan are not in the list any more. */
function countValid(
  rollout: Rollout,
  wave: string,
  when: 'before' | 'after',
  { not_starter, expires_s }: ApprovalRule,
  now: string,
): number {
  const own = not_starter ? authorsOf(rollout) : []
  const people = rollout.approvals.filter(
    (given) =>
      given.wave === wave &&
      given.when === when &&
      !own.includes(given.by) &&
      (expires_s === undefined || !isPast(given.at, expires_s, now)),
  )
  return new Set(people.map(({ by }) => by)).size
}

/** Whose change it is. */
export function authorsOf({ started_by, amended_by }: Rollout): string[] {
  return [...new Set([started_by, ...(amended_by === undefined ? [] : [amended_by])])]
}

// The guards of every write, in the order in which they are asked.
import { forbidden, type Problem } from '../base/problem.ts'
import { leastRoleWith, mayBypass } from '../domain/access/permissions.ts'
import { type Impact, impactOf } from '../domain/delivery/impact.ts'
import {
  BRAKE_GUARD,
  type DecidedWrite,
  FREEZE_GUARD,
  type Guard,
  METHODS_GUARD,
  type Objection,
  ROLLOUT_GUARD,
  SCOPE_GUARD,
} from '../domain/guards/guard.ts'
import { runTimeSliced } from '../runtime/run-time-sliced.ts'
import { planChanged, planOf } from './plan.ts'

const PLAN_GUARD: Guard = {
  stopsPreview: true,
  *check({ plan, comparison, changes, staged }) {
    if (plan === undefined) return []
    if ((staged?.rollout.plan ?? (yield* planOf(comparison.types, changes))) === plan) return []
    return [{ kind: 'plan', problem: planChanged(changes) }]
  },
}

const GUARDS: readonly Guard[] = [
  METHODS_GUARD,
  SCOPE_GUARD,
  PLAN_GUARD,
  ROLLOUT_GUARD,
  FREEZE_GUARD,
  BRAKE_GUARD,
]

export interface Verdict {
  /** Objections of guards that let the write pass, lifted or not; a preview lists them. */
  readonly objections: readonly Objection[]
  /** Objections of the first guard that stops the write; empty when it may be committed. */
  readonly refusals: readonly Objection[]
}

interface Run {
  readonly dryRun: boolean
  /** The kinds of confirmation that the caller has given. */
  readonly lifted: ReadonlySet<Objection['liftedBy'] | Objection['confirmation']>
  readonly signal: AbortSignal | undefined
}

/** Asks the guards in turn, until one stops the write. */
export async function askGuards(write: DecidedWrite, { dryRun, lifted, signal }: Run): Promise<Verdict> {
  const objections: Objection[] = []
  for (const { check, stopsPreview } of GUARDS) {
    const found = await runTimeSliced(check(write), signal)
    const standing = found.flatMap((objection) => stillStanding(objection, write, lifted))
    if (standing.length > 0 && (!dryRun || stopsPreview)) return { objections, refusals: standing }
    objections.push(...found)
  }
  return { objections, refusals: [] }
}

/** What is left of an objection after the caller's confirmations. */
function stillStanding(
  objection: Objection,
  { grant }: DecidedWrite,
  lifted: Run['lifted'],
): readonly Objection[] {
  const { liftedBy, confirmation = liftedBy, bypass, problem } = objection
  if (confirmation === undefined || !lifted.has(confirmation)) return [objection]
  if (liftedBy !== 'bypass' || grant === undefined || mayBypass(grant, bypass)) return []
  const message = `only the role ${leastRoleWith('bypass')} may bypass this: ${problem.message}`
  return [{ ...objection, problem: forbidden('needs_admin', message, problem.details) }]
}

/** The problem to return for objections that stop a write. */
export async function refusalOf(
  [first, ...others]: readonly [Objection, ...Objection[]],
  { comparison }: DecidedWrite,
  impactLimit: number,
  signal: AbortSignal | undefined,
): Promise<Problem> {
  const { kind, problem } = first
  if (kind !== 'brake') return problem
  const impact: Impact = await runTimeSliced(impactOf(comparison, impactLimit), signal)
  const removals = [first, ...others].map((each) => each.problem.message).join('; ')
  const message = `this has to be confirmed: ${removals}. If that is meant, send it again with ?confirm=removals`
  return { ...problem, message, impact }
}

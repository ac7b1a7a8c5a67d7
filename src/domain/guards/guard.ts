// Guards stand between a decision and its commit. Each returns its objections, all in one form.
import type { BrakePercents } from '../../base/brake-percents.ts'
import type { Problem } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import type { Grant } from '../access/grant.ts'
import type { Bypass } from '../access/permissions.ts'
import type { Comparison } from '../delivery/compare-served.ts'
import type { Change } from '../documents/view.ts'
import type { StagedWrite } from '../rollouts/stage-write.ts'
import { findRemovals } from './brake.ts'
import { type Committed, checkScope } from './check-scope.ts'
import { checkFit } from './fits-rollouts.ts'
import { checkFrozen } from './frozen.ts'
import { checkHeldFields } from './held-by-rollout.ts'
import { refuseMethods } from './refuse-methods.ts'
import { findUnfinished } from './unfinished-rollout.ts'

export const OBJECTION_KINDS = ['methods', 'scope', 'plan', 'rollout', 'freeze', 'brake'] as const

export interface Objection {
  readonly kind: (typeof OBJECTION_KINDS)[number]
  /** The problem that the write is refused with. */
  readonly problem: Problem
  /** What lifts the objection; undefined where nothing does. */
  readonly liftedBy?: 'confirm' | 'bypass'
  /** Who may bypass it. */
  readonly bypass?: Bypass
  /** What has to be confirmed, where that lifts it. */
  readonly confirmation?: (typeof CONFIRMATIONS)[number]
}

export const CONFIRMATIONS = ['removals', 'finish'] as const

/** A write that has been decided. */
export interface DecidedWrite extends Committed {
  readonly comparison: Comparison
  readonly changes: readonly Change[]
  /** The caller's grant; a write of the service itself has none. */
  readonly grant: Grant | undefined
  /** The plan that the write is bound to. */
  readonly plan: string | undefined
  /** Set where the changes are to be a rollout. */
  readonly staged: StagedWrite | undefined
  /** The rollout that the write finishes. */
  readonly ownRollout: string | undefined
  readonly brake: BrakePercents
  /** Whether it only brings back what was served before. */
  readonly isWayBack: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

export interface Guard {
  /** Whether a preview is refused with the objection instead of listing it: the request itself is wrong. */
  readonly stopsPreview: boolean
  check(write: DecidedWrite): Steps<readonly Objection[]>
}

/**
 * Allows only the methods of the resource files. A seed file has no grant: it may create what cannot be changed later.
 */
export const METHODS_GUARD: Guard = {
  stopsPreview: true,
  // biome-ignore lint/correctness/useYield: it looks at each change once.
  *check({ comparison, changes, grant }) {
    const problem = grant && refuseMethods(comparison.types, changes)
    return problem ? [{ kind: 'methods', problem }] : []
  },
}

export const SCOPE_GUARD: Guard = {
  stopsPreview: false,
  *check({ comparison, changes, grant, ...write }) {
    const problem = grant && (yield* checkScope(grant, comparison, changes, write))
    return problem ? [{ kind: 'scope', problem }] : []
  },
}

export const ROLLOUT_GUARD: Guard = {
  stopsPreview: false,
  *check({ comparison, changes, staged, ownRollout }) {
    const { types, before } = comparison
    const write = { types, before, changes, isStaged: staged !== undefined, except: ownRollout }
    const problem = (yield* checkHeldFields(write)) ?? (yield* checkFit(write))
    const unfinished = findUnfinished(changes)
    return [
      // Two rollouts of one field would never come to an end.
      ...(problem ? [{ kind: 'rollout', problem, ...(!staged && BYPASSED_BY_ADMINS) } as const] : []),
      ...(unfinished
        ? [{ kind: 'rollout', problem: unfinished, liftedBy: 'confirm', confirmation: 'finish' } as const]
        : []),
    ]
  },
}

const BYPASSED_BY_ADMINS = { liftedBy: 'bypass', bypass: 'admin' } as const

export const FREEZE_GUARD: Guard = {
  stopsPreview: false,
  *check({ served, isWayBack, now }) {
    const frozen = isWayBack ? undefined : yield* checkFrozen(served, now)
    if (!frozen) return []
    const { problem, bypass } = frozen
    return [{ kind: 'freeze', problem, ...(bypass !== 'nobody' && { liftedBy: 'bypass', bypass }) }]
  },
}

export const BRAKE_GUARD: Guard = {
  stopsPreview: false,
  *check({ comparison, changes, brake }) {
    const removals = yield* findRemovals(comparison, changes, brake)
    return removals.map((message) => ({
      kind: 'brake',
      problem: { code: 'destructive_change', reason: 'brake', message },
      liftedBy: 'confirm',
      confirmation: 'removals',
    }))
  },
}

// Guards stand between a decision and its commit. Each returns its objections, all in one form.
import type { BrakePercents } from '../../base/brake-percents.ts'
import type { Detail, Problem } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import type { Grant } from '../access/grant.ts'
import type { Comparison } from '../delivery/compare-served.ts'
import type { Change } from '../documents/view.ts'
import { findRemovals } from './brake.ts'
import { checkScope } from './check-scope.ts'
import { refuseMethods } from './refuse-methods.ts'

export const OBJECTION_KINDS = ['methods', 'scope', 'plan', 'brake'] as const

export interface Objection {
  readonly kind: (typeof OBJECTION_KINDS)[number]
  /** The problem of a write that it stops. */
  readonly code: Problem['code']
  /** Which objection of its kind; stays the same whatever the words. */
  readonly reason: string
  readonly message: string
  readonly details?: readonly Detail[]
  /** What lets the write pass all the same; nothing does where this is undefined. */
  readonly liftedBy?: 'confirm'
}

/** A write that has been decided. */
export interface DecidedWrite {
  readonly comparison: Comparison
  readonly changes: readonly Change[]
  /** Of the caller; a write of the service itself has none. */
  readonly grant: Grant | undefined
  /** The plan that the write is bound to. */
  readonly plan: string | undefined
  readonly brake: BrakePercents
}

export interface Guard {
  /** A preview ends with the objection instead of listing it: the request itself does not hold. */
  readonly stopsPreview: boolean
  check(write: DecidedWrite): Steps<readonly Objection[]>
}

/** Only what the resource files allow. A seed file, which nobody is granted, fills what cannot be changed later. */
export const METHODS_GUARD: Guard = {
  stopsPreview: true,
  // biome-ignore lint/correctness/useYield: it looks at each change once.
  *check({ comparison, changes, grant }) {
    const problem = grant && refuseMethods(comparison.types, changes)
    return problem ? [objection('methods', 'method_not_allowed', problem)] : []
  },
}

export const SCOPE_GUARD: Guard = {
  stopsPreview: false,
  *check({ comparison, changes, grant }) {
    const problem = grant && (yield* checkScope(grant, comparison, changes))
    return problem ? [objection('scope', 'out_of_scope', problem)] : []
  },
}

export const BRAKE_GUARD: Guard = {
  stopsPreview: false,
  *check({ comparison, changes, brake }) {
    const removals = yield* findRemovals(comparison, changes, brake)
    return removals.map((message) => ({
      kind: 'brake',
      code: 'destructive_change',
      reason: 'removals',
      message,
      liftedBy: 'confirm',
    }))
  },
}

export function objection(kind: Objection['kind'], reason: string, problem: Problem): Objection {
  const { code, message, details } = problem
  return { kind, code, reason, message, ...(details && { details }) }
}

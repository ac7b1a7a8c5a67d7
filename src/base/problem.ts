// Why something was refused, as a value. The domain never throws.

export interface Detail {
  /** JSON pointer into what was sent. */
  readonly path: string
  readonly message: string
}

export const PROBLEM_CODES = [
  'validation_error',
  'unauthorized',
  'forbidden',
  'not_found',
  'method_not_allowed',
  'conflict',
  'plan_changed',
  'destructive_change',
  'gone',
  'idempotency_mismatch',
  'precondition_failed',
  'rate_limited',
  'payload_too_large',
  'unsupported_media_type',
  'unavailable',
  'internal_error',
] as const
export type ProblemCode = (typeof PROBLEM_CODES)[number]

/** Why, for programs: of the refusals that share a code, which one it is. `src/api/problem-reasons.ts` explains each. */
export const REASONS = {
  validation_error: [
    'unknown_reference',
    'duplicate_reference',
    'dependency_cycle',
    'not_assigned',
    'reserved_id',
    'no_match',
    'unknown_label',
    'answer_too_large',
    'unknown_parameter',
    'malformed_json',
    'incomplete_body',
    'revision_in_future',
    'not_staged',
  ],
  unauthorized: ['no_credentials', 'credential_refused', 'credential_expired'],
  forbidden: [
    'needs_poller',
    'needs_mirror',
    'needs_viewer',
    'needs_editor',
    'needs_admin',
    'purge_needs_admin',
    'no_role',
    'out_of_scope',
    'invalid_scope',
    'held',
    'other_cluster',
    'copies_only',
  ],
  not_found: ['unknown_id', 'unknown_cluster', 'unknown_endpoint', 'not_assigned', 'no_route'],
  method_not_allowed: ['read_only', 'unknown_method'],
  conflict: [
    'already_exists',
    'in_use',
    'protected',
    'dns_taken',
    'not_deleted',
    'test_failed',
    'changed_since',
    'no_longer_valid',
    'not_allowed_by_type',
    'token_exists',
    'token_expired',
    'token_not_restorable',
    'too_many_secrets',
    'revision_mismatch',
    'behind_caller',
    'held_by_rollout',
    'nothing_to_roll_out',
    'rollout_ended',
    'rollout_state',
    'rollout_unfinished',
    'not_reverted',
    'too_many_rollouts',
    'wave_ended',
    'own_approval',
    'frozen',
  ],
  plan_changed: ['plan_changed'],
  destructive_change: ['brake'],
  gone: ['history_pruned'],
  precondition_failed: ['already_exists', 'unknown_id', 'revision_mismatch', 'malformed_etag'],
  idempotency_mismatch: ['idempotency_mismatch'],
  rate_limited: ['failed_authentication', 'caller_share', 'too_many_events'],
  unavailable: [
    'store_unavailable',
    'not_loaded',
    'draining',
    'too_many_writes',
    'too_many_requests',
    'lost_races',
    'timed_out',
    'behind_revision',
    'stale',
    'log_incomplete',
    'authentication_unavailable',
    'caller_left',
  ],
} as const satisfies Partial<Record<ProblemCode, readonly string[]>>

export type ReasonOf<C extends ProblemCode> = C extends keyof typeof REASONS
  ? (typeof REASONS)[C][number]
  : never
export type Reason = ReasonOf<ProblemCode>

interface Refused<C extends ProblemCode> {
  readonly code: C
  readonly message: string
  readonly details?: readonly Detail[]
  /** The `Impact` of a refused write: what clusters would have received differently. */
  readonly impact?: object
  /** Seconds after which to try again. */
  readonly retryAfter?: number
  /** When nothing will stand in the way any more, where that is known. RFC 3339, UTC. */
  readonly nextOpen?: string
}

/** A conflict always has a reason. */
type WithReason<C extends ProblemCode> = C extends 'conflict'
  ? { readonly reason: ReasonOf<C> }
  : { readonly reason?: ReasonOf<C> | undefined }

export type Problem = { [C in ProblemCode]: Refused<C> & WithReason<C> }[ProblemCode]

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: Problem }

export function succeed<T>(value: T): Result<T> {
  return { ok: true, value }
}

export function fail(problem: Problem): { readonly ok: false; readonly problem: Problem } {
  return { ok: false, problem }
}

/** Details in one response, at most. */
export const MAX_DETAILS = 50
/** Mistakes to look for, at most: their sender corrects these before the rest is looked for. */
export const MAX_FOUND = 100

/**
 * A refusal of what was sent. Its message holds the first detail, so that it can be read alone; `reason` holds for all.
 */
export function invalid(
  details: readonly Detail[],
  reason?: ReasonOf<'validation_error'>,
): { readonly ok: false; readonly problem: Problem } {
  const [first] = details
  const least = details.length > MAX_FOUND ? 'at least ' : ''
  const more = details.length > 1 ? ` (and ${least}${Math.min(details.length - 1, MAX_FOUND)} more)` : ''
  const message = first
    ? `${first.path || 'the document'} ${first.message}${more}`
    : 'the request is not valid'
  return fail({ code: 'validation_error', reason, message, details: details.slice(0, MAX_DETAILS) })
}

/** A refusal because of how things stand. */
export function conflictOf(
  reason: ReasonOf<'conflict'>,
  message: string,
  details: readonly Detail[] = [],
): Problem {
  return {
    code: 'conflict',
    reason,
    message,
    ...(details.length > 0 && { details: details.slice(0, MAX_DETAILS) }),
  }
}

/** A refusal of what the caller may not do. */
export function forbidden(
  reason: ReasonOf<'forbidden'>,
  message: string,
  details: readonly Detail[] = [],
): Problem {
  return { code: 'forbidden', reason, message, details: details.slice(0, MAX_DETAILS) }
}

export function notFound(singular: string, id: string): { readonly ok: false; readonly problem: Problem } {
  return fail({ code: 'not_found', reason: 'unknown_id', message: `no ${singular} "${id}"` })
}

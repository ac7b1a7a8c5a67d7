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

export interface Problem {
  readonly code: ProblemCode
  readonly message: string
  readonly details?: readonly Detail[]
  /** The `Impact` of a refused write: what clusters would have received differently. */
  readonly impact?: object
  /** Seconds after which to try again. */
  readonly retryAfter?: number
}

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: Problem }

export function succeed<T>(value: T): Result<T> {
  return { ok: true, value }
}

export function fail(problem: Problem): { readonly ok: false; readonly problem: Problem } {
  return { ok: false, problem }
}

/** As many places are told of at once. */
export const MAX_DETAILS = 50
/** As many are looked for: whoever has more mistakes than these corrects some of them first. */
export const MAX_FOUND = 100

/** A refusal of what was sent, with the first details in its message so that it reads alone. */
export function invalid(details: readonly Detail[]): { readonly ok: false; readonly problem: Problem } {
  const [first] = details
  const least = details.length > MAX_FOUND ? 'at least ' : ''
  const more = details.length > 1 ? ` (and ${least}${Math.min(details.length - 1, MAX_FOUND)} more)` : ''
  const message = first
    ? `${first.path || 'the document'} ${first.message}${more}`
    : 'the request is not valid'
  return fail({ code: 'validation_error', message, details: details.slice(0, MAX_DETAILS) })
}

/** A refusal of what the caller may not do. */
export function forbidden(message: string, details: readonly Detail[] = []): Problem {
  return { code: 'forbidden', message, details: details.slice(0, MAX_DETAILS) }
}

export function notFound(singular: string, id: string): { readonly ok: false; readonly problem: Problem } {
  return fail({ code: 'not_found', message: `no ${singular} "${id}"` })
}

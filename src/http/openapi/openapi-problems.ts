// Problems in the description: one OpenAPI response for each status, which all operations share.
import { ref } from '../../api/component-ref.ts'
import type { ProblemCode, Reason } from '../../base/problem.ts'
import { example, headerRefs, json, type Node } from './openapi-operation.ts'

interface DescribedProblem {
  readonly description: string
  readonly error: ProblemCode
  readonly reason?: Reason
  readonly message: string
}

const PROBLEMS: Readonly<Record<number, DescribedProblem>> = {
  400: {
    description: 'Something in the request is wrong; details name it.',
    error: 'validation_error',
    message: '/environment must be one of dev, qa, uat, prod, not "test"',
  },
  401: {
    description: 'No valid token.',
    error: 'unauthorized',
    message: 'a valid token is needed: send "Authorization: Bearer <token>"',
  },
  403: {
    description: 'The token may not do this.',
    error: 'forbidden',
    reason: 'needs_editor',
    message: 'this needs the role editor, and yours is viewer: you may preview it with dry_run=true',
  },
  404: {
    description: 'No such document or cluster.',
    error: 'not_found',
    reason: 'unknown_id',
    message: 'no cluster "us-east-prod-01"',
  },
  409: {
    description:
      'A conflict, a changed plan, or a change that takes inputs from many clusters, or the last of a type from one, and was not confirmed.',
    error: 'conflict',
    reason: 'already_exists',
    message: 'cluster "us-east-prod-01" exists already: replace or patch it',
  },
  410: {
    description: 'History before that revision was pruned.',
    error: 'gone',
    reason: 'history_pruned',
    message: 'history before revision 40 was pruned',
  },
  412: {
    description: 'If-Match or If-None-Match does not hold.',
    error: 'precondition_failed',
    reason: 'revision_mismatch',
    message: 'cluster "us-east-prod-01" is at revision 42: read it again and retry',
  },
  413: {
    description: 'The body is too large.',
    error: 'payload_too_large',
    message: 'the body is larger than this route takes, which is 4 MiB',
  },
  415: {
    description: 'The body is of a type that is not taken here.',
    error: 'unsupported_media_type',
    message: 'send application/json',
  },
  422: {
    description: 'The Idempotency-Key was used for another request.',
    error: 'idempotency_mismatch',
    reason: 'idempotency_mismatch',
    message: 'this Idempotency-Key was used for another request: take a new key for every write',
  },
  429: {
    description:
      'Too many requests with wrong credentials, or more at once than the share of one caller; Retry-After says when to try again.',
    error: 'rate_limited',
    reason: 'failed_authentication',
    message: 'too many requests with credentials that are not valid: wait, and correct them',
  },
  500: {
    description: 'A failure of the service; the request id leads to its log.',
    error: 'internal_error',
    message: 'something failed here; the log has more under request id req-1',
  },
  503: {
    description: 'The store is unavailable, or the service is stopping; Retry-After says when to try again.',
    error: 'unavailable',
    reason: 'store_unavailable',
    message: 'the store cannot be used now: try again',
  },
}
const PROBLEM_HEADERS: Readonly<Record<number, readonly string[]>> = {
  401: ['WWW-Authenticate'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

/** The responses that operations refer to. */
export function problemResponses(): Node {
  return Object.fromEntries(
    Object.entries(PROBLEMS).map(([status, { description, ...body }]) => {
      const names = ['X-Request-Id', ...(PROBLEM_HEADERS[Number(status)] ?? [])]
      const content = json(ref('error'), 'application/json', example(body))
      return [`problem_${status}`, { description, headers: headerRefs(names), content }]
    }),
  )
}

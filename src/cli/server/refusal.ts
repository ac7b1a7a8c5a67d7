// An error response of the API as a failure of the command.
import { isObject } from '../../base/json.ts'
import type { Reason } from '../../base/problem.ts'
import type { Impact } from '../../domain/delivery/impact.ts'
import { EXIT, Failure } from '../failure.ts'
import { hintFor } from '../output/refusal-hints.ts'

interface ProblemBody {
  readonly error: string
  readonly reason?: Reason
  readonly message: string
  readonly details?: unknown
  readonly impact?: Impact
}

/** A refusal by the API, with its status, code and details. */
export class Refusal extends Failure {
  readonly status: number
  readonly code: string
  readonly reason: Reason | undefined
  readonly impact: Impact | undefined

  constructor(status: number, body: ProblemBody, requestId: string | undefined) {
    const { error, message, impact } = body
    const details = Array.isArray(body.details) ? body.details.filter(isObject) : []
    // A single detail mostly repeats the message.
    const isRepeated = details.length === 1 && message.includes(String(details[0]?.message))
    const lines = isRepeated ? [] : details.map((detail) => `${detail.path || '/'} ${detail.message}`)
    const source = `HTTP ${status} ${error}${requestId ? `, request id ${requestId}` : ''}`
    super(EXIT.refused, message, { details: [...lines, source], hint: hintFor(status, body) })
    this.status = status
    this.code = error
    this.reason = body.reason
    this.impact = impact
  }
}

/** Whether a server that restarts, or a busy one, may be the reason. */
export function isTransient(error: unknown): error is Failure {
  if (error instanceof Refusal) return error.status >= 500
  return error instanceof Failure && error.exitCode === EXIT.unreachable
}

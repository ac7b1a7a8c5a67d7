// An error response of the API as a failure of the command.

import type { Requirement } from '../../api/wire-types.ts'
import { isObject } from '../../base/json.ts'
import type { Detail, Reason } from '../../base/problem.ts'
import type { Impact } from '../../domain/delivery/impact.ts'
import { EXIT, Failure } from '../failure.ts'
import { adviceFor } from '../output/refusal-hints.ts'

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
  readonly #body: ProblemBody
  readonly #requestId: string | undefined

  constructor(status: number, body: ProblemBody, requestId: string | undefined) {
    const { error, message, impact } = body
    const source = `HTTP ${status} ${error}${requestId ? `, request id ${requestId}` : ''}`
    const details = detailsOf(body)
    const lines = linesOf(details, message)
    super(EXIT.refused, message, { details: [...lines, source], ...adviceFor(status, { ...body, details }) })
    this.status = status
    this.code = error
    this.reason = body.reason
    this.impact = impact
    this.#body = body
    this.#requestId = requestId
  }

  /** The same refusal with another hint. */
  withHint(hint: string): Failure {
    return new Failure(this.exitCode, this.message, { details: this.details, hint })
  }

  /** The same refusal in other words. */
  reworded(translate: (text: string) => string): Refusal {
    const details = detailsOf(this.#body).map(({ path, message }): Detail => {
      const told = `${path} ${message}`
      const other = translate(told)
      // A place that became a flag is said together with what is wrong there.
      return other === told ? { path, message } : { path: SAID, message: other }
    })
    const body = { ...this.#body, message: translate(this.#body.message), details }
    return new Refusal(this.status, body, this.#requestId)
  }
}

function detailsOf({ details }: ProblemBody): Detail[] {
  const found = Array.isArray(details) ? details.filter(isObject) : []
  return found.map(({ path, message }) => ({ path: String(path ?? ''), message: String(message) }))
}

/** The places that are wrong, a line each; a single one mostly repeats the message. */
function linesOf(details: readonly Detail[], message: string): string[] {
  const isRepeated = details.length === 1 && message.includes(String(details[0]?.message))
  if (isRepeated) return []
  return details.map(({ path, message: what }) => (path === SAID ? what : `${path || '/'} ${what}`))
}

/** The path of a detail whose message has it already. */
const SAID = '\u0000'

/** The failure of a write that its preview says will be refused. */
export function refusedBy(requirements: readonly Requirement[]): Failure | undefined {
  const [first] = requirements
  if (!first) return undefined
  const { reason, message } = first
  const details = requirements.flatMap((each) => each.details ?? [])
  const problem = { error: '', message, details, ...(reason && { reason }) }
  return new Failure(EXIT.refused, message, { details: linesOf(details, message), ...adviceFor(0, problem) })
}

/** Whether a server that restarts, or a busy one, may be the reason. */
export function isTransient(error: unknown): error is Failure {
  if (error instanceof Refusal) return error.status >= 500
  return error instanceof Failure && error.exitCode === EXIT.unreachable
}

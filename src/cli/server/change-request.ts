// A write as a request: what is sent for a change, and what it becomes where it is to be rolled out wave by wave.
import { isObject, type Json, type JsonObject, own } from '../../base/json.ts'
import { usage } from '../failure.ts'
import type { Question } from '../input/agree.ts'
import { type RolloutFlags, stagingOf } from '../input/rollout-flags.ts'
import { pathOf, ROLLOUT_ROUTES } from './read-documents.ts'

export interface WriteRequest {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string | boolean | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Json
  /** The same write as an operation of a batch: what a rollout is made of. */
  readonly operation?: JsonObject
  /** What it does, for the question, where its changes do not tell: `abort rollout r42`. */
  readonly does?: string
  /** What it is asked about with, however little it changes. */
  readonly always?: Pick<Question, 'does' | 'notes'>
  /** How many parts it has; with a size, progress is shown. */
  readonly size?: number
  /** Whether its operations are from a file, whose places are told. */
  readonly isFile?: boolean
}

const BATCH = '/batch'

export function batchOf(operations: readonly Json[], size?: number): WriteRequest {
  return { method: 'POST', path: BATCH, body: { operations }, ...(size !== undefined && { size }) }
}

/** The request that starts or amends a rollout; the request as it is where the flags ask for none. */
export function stagedRequest(flags: RolloutFlags, request: WriteRequest): WriteRequest {
  const staging = stagingOf(flags)
  if (!staging) return request
  const { operation, body = {}, size } = request
  const whole: JsonObject = operation ? { operations: [operation] } : isObject(body) ? body : {}
  const sized = size === undefined ? {} : { size }
  if (staging.kind === 'amend') {
    const operations = own(whole, 'operations')
    if (operations === undefined)
      throw usage('--amend takes a change of documents: undo it by a batch, or start a rollout of its own')
    const path = pathOf(ROLLOUT_ROUTES, staging.id, 'amend')
    return { method: 'POST', path, body: { operations, ...staging.how }, ...sized }
  }
  if (whole.rollout !== undefined)
    throw usage('the file has a rollout of its own: leave it out there, or leave the flags out')
  const path = operation ? BATCH : request.path
  return { method: 'POST', path, body: { ...whole, rollout: staging.rollout }, ...sized }
}

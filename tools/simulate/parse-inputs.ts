// An answer to a poll as the Flux Operator reads it: what it would refuse is a failure.
import { isObject, type JsonObject } from '../../src/base/json.ts'

export type ParsedInputs =
  | { readonly ok: true; readonly inputs: readonly JsonObject[] }
  | { readonly ok: false; readonly problem: string }

/** The longest body that the operator reads. */
const MAX_BYTES = 921_600

export function parseInputs(body: string): ParsedInputs {
  if (Buffer.byteLength(body) > MAX_BYTES) return refuse(`the body is longer than ${MAX_BYTES} bytes`)
  let answer: unknown
  try {
    answer = JSON.parse(body)
  } catch {
    return refuse('the body is no JSON')
  }
  const inputs = isObject(answer) ? answer.inputs : undefined
  if (!Array.isArray(inputs)) return refuse('the body has no list of inputs')
  const ids = new Set<string>()
  for (const [i, input] of inputs.entries()) {
    const id = isObject(input) ? input.id : undefined
    if (typeof id !== 'string') return refuse(`input ${i} has no id`)
    if (ids.has(id)) return refuse(`input ${i} has the id "${id}" again`)
    ids.add(id)
  }
  return { ok: true, inputs }
}

function refuse(problem: string): ParsedInputs {
  return { ok: false, problem }
}

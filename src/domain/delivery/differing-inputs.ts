// What two lists of inputs, as clusters get them, differ in: of two clusters, or of one at two times.
import { diffFields, type FieldChange } from '../../base/diff.ts'
import type { JsonObject } from '../../base/json.ts'

export interface ReceivedInput extends JsonObject {
  readonly id: string
}

export interface InputsDifference {
  /** Ids that only the second list has. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly { readonly id: string; readonly fields: readonly FieldChange[] }[]
}

/** What says whose input it is, and which version of it: never what one looks for. */
const IDENTITY: readonly string[] = ['cluster', 'digest', 'answer_digest']

export function differingInputs(
  one: readonly ReceivedInput[],
  two: readonly ReceivedInput[],
): InputsDifference {
  const [first, second] = [byId(one), byId(two)]
  const changed = [...first].flatMap(([id, input]) => {
    const other = second.get(id)
    const fields = other ? diffFields(input, other) : []
    return fields.length > 0 ? [{ id, fields }] : []
  })
  return {
    added: [...second.keys()].filter((id) => !first.has(id)),
    removed: [...first.keys()].filter((id) => !second.has(id)),
    changed,
  }
}

function byId(inputs: readonly ReceivedInput[]): Map<string, JsonObject> {
  return new Map(
    inputs.map((input) => {
      const told = Object.entries(input).filter(([name]) => !IDENTITY.includes(name))
      return [input.id, Object.fromEntries(told) as JsonObject]
    }),
  )
}

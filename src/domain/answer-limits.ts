// What the Flux Operator accepts of one answer is a limit of ours: beyond it a cluster would stop or lose objects.
import type { Draft } from './draft.ts'
import { invalid, type Result, succeed } from './problem.ts'
import { renderInputs } from './render-inputs.ts'
import { type DeliveredType, findReference, referencesOf, type Types } from './resource-type.ts'
import type { Entry, View } from './view.ts'

/** Flux refuses a body that is larger. */
export const MAX_ANSWER_BYTES = 900 * 1024
/** The highest `spec.filter.limit` of a provider; what is beyond it is cut off, and so deleted. */
export const MAX_INPUTS = 10_000

/** Field names, punctuation and defaults that an input adds to its definition's text. */
const INPUT_OVERHEAD = 512
const MAX_BYTES_PER_CHAR = 3
const MAX_CHARS_PER_ESCAPED_CHAR = 6

/** Refuses changes after which some cluster's answer would be too large. */
export function checkLimits(types: Types, before: View, draft: Draft): Result<void> {
  const largest = new Map(types.delivered.map((type) => [type, largestDefinition(draft, type)]))
  const clusters = types.cluster.type.name
  for (const { type, id, path } of draft.touched()) {
    const cluster = type === clusters ? draft.get(clusters, id) : undefined
    if (!cluster) continue
    for (const delivered of types.delivered) {
      const problem = limitProblem(types, draft, delivered, cluster, largest.get(delivered) as number)
      if (problem) return invalid([{ path: `${path}/${delivered.delivery.assignedBy}`, message: problem }])
    }
  }
  for (const type of types.delivered) {
    const grown = grownDefinitions(before, draft, type)
    if (grown.length === 0) continue
    for (const cluster of draft.all(clusters)) {
      if (!mayExceed(types, type, cluster, largest.get(type) as number)) continue
      const cause = grown.find(({ id }) => findReference(cluster.document, type.delivery, id))
      const problem = cause && limitProblem(types, draft, type, cluster, largest.get(type) as number)
      if (problem) return invalid([{ path: cause.path, message: problem }])
    }
  }
  return succeed(undefined)
}

function limitProblem(
  types: Types,
  view: View,
  type: DeliveredType,
  cluster: Entry,
  largest: number,
): string | undefined {
  const { endpoint } = type.delivery
  const count = referencesOf(cluster.document, type.delivery).length
  if (count > MAX_INPUTS) {
    return `would give cluster "${cluster.id}" ${count} inputs of ${endpoint}: Flux takes at most ${MAX_INPUTS}`
  }
  if (!mayExceed(types, type, cluster, largest)) return undefined
  const bytes = new TextEncoder().encode(renderInputs(view, types, type, cluster)).length
  if (bytes <= MAX_ANSWER_BYTES) return undefined
  return `would make the ${endpoint} answer of cluster "${cluster.id}" ${bytes} bytes: Flux takes at most ${MAX_ANSWER_BYTES}`
}

/** An upper bound that needs no rendering: it spares nearly every cluster the exact count. */
function mayExceed(types: Types, type: DeliveredType, cluster: Entry, largest: number): boolean {
  let identity = 0
  for (const [, property] of types.cluster.input) identity += String(cluster.document[property]).length
  const perInput = largest + INPUT_OVERHEAD + identity * MAX_CHARS_PER_ESCAPED_CHAR
  const chars = referencesOf(cluster.document, type.delivery).length * perInput + cluster.size
  return chars * MAX_BYTES_PER_CHAR > MAX_ANSWER_BYTES
}

function largestDefinition(view: View, type: DeliveredType): number {
  let largest = 0
  for (const { size } of view.all(type.name)) if (size > largest) largest = size
  return largest
}

/** Existing definitions whose text got longer; a new one reaches only clusters that are touched too. */
function grownDefinitions(before: View, draft: Draft, type: DeliveredType): { id: string; path: string }[] {
  return draft.touched().filter(({ type: name, id, after }) => {
    const old = name === type.name ? before.get(name, id) : undefined
    return old !== undefined && after !== undefined && after.json.length > old.size
  })
}

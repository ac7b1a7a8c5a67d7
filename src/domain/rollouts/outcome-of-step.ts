// What a step makes of a rollout, whenever it is taken: a plan that was previewed is to hold a minute later too.
import { isObject, type Json, type JsonObject } from '../../base/json.ts'

/** Fields that say when something was, and the words that go with it. */
const MOMENTS: ReadonlySet<string> = new Set([
  'at',
  'remark',
  'waiting_for',
  'ended_at',
  'retried_at',
  'baking_since',
  'opened_at',
  'widened_at',
  'opened_revision',
  'passed_at',
  'gates_hold_since',
  'checks_since',
])

export function outcomeOf(rollout: JsonObject): JsonObject {
  return withoutMoments(rollout) as JsonObject
}

function withoutMoments(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutMoments)
  if (!isObject(value)) return value
  const left = Object.entries(value).filter(([name]) => !MOMENTS.has(name))
  return Object.fromEntries(left.map(([name, each]) => [name, withoutMoments(each)]))
}

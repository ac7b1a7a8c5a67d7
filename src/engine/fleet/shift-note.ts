// Times inside of notes, moved: what one process sends to another as ages becomes times of that one's own clock.
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { EvidenceKind } from './evidence-notes.ts'

/** Moves every time in the value of a note; what no version of this program wrote is left as it is. */
export function shiftTimes(kind: EvidenceKind, value: Json, ms: number): Json {
  if (!Array.isArray(value)) return value
  const shift = (time: Json | undefined): Json => (typeof time === 'number' ? time + ms : (time ?? null))
  const at = (...places: readonly number[]): Json =>
    value.map((each, i) => (places.includes(i) ? shift(each) : each))
  if (kind === 'polls') return at(2, 8)
  if (kind === 'failures') return at(0)
  if (kind === 'refusals') return value
  const [every = null, applied = null, ready = null, version = null, ...parts] = value
  const shifted = parts.map((each) =>
    isObject(each) ? mapEntries(each, ([part, time]) => [part, shift(time)]) : each,
  )
  return [every, shiftApplied(applied, shift), shiftReady(ready, ms), version, ...shifted]
}

function shiftApplied(applied: Json, shift: (time: Json | undefined) => Json): Json {
  if (!isObject(applied)) return applied
  return mapEntries(applied, ([endpoint, mark]) => [
    endpoint,
    Array.isArray(mark) && mark.length > 1 ? mark.with(1, shift(mark[1])) : mark,
  ])
}

/** Grouped by time. */
function shiftReady(ready: Json, ms: number): Json {
  if (!isObject(ready)) return ready
  return mapEntries(ready, ([since, group]) => [String(Number(since) + ms), group])
}

function mapEntries(object: JsonObject, map: (entry: [string, Json]) => [string, Json]): Json {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => map([key, value as Json])))
}

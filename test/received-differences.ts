// What clusters get before and after, compared in the simplest words.
import { equalJson, isObject, type Json, type JsonObject, pointer } from '../src/base/json.ts'
import type { Impact } from '../src/domain/delivery/impact.ts'
import { renderInputs } from '../src/domain/delivery/render-inputs.ts'
import { servedTo } from '../src/domain/delivery/served-view.ts'
import type { View } from '../src/domain/documents/view.ts'
import { builtInTypes } from './service.ts'
import { withoutDigests } from './without-digests.ts'

const types = builtInTypes()

/** What every live cluster gets, without digests, by cluster, endpoint and id of the input. */
export function received(view: View): Map<string, Map<string, JsonObject>> {
  const answers = new Map<string, Map<string, JsonObject>>()
  for (const entry of view.all('clusters')) {
    const served = servedTo(types, view, entry.id)
    const cluster = served.get('clusters', entry.id) ?? entry
    for (const type of types.delivered) {
      const { text } = renderInputs(served, types, type, cluster)
      const { inputs } = JSON.parse(withoutDigests(text))
      const byId = new Map<string, JsonObject>(inputs.map((input: JsonObject) => [input.id, input]))
      answers.set(`${entry.id} ${type.delivery.endpoint}`, byId)
    }
  }
  return answers
}

/** The difference in its simplest words. */
export function difference(before: ReturnType<typeof received>, after: ReturnType<typeof received>) {
  const differences: Record<string, unknown> = {}
  for (const key of new Set([...before.keys(), ...after.keys()])) {
    const [had, has] = [before.get(key) ?? new Map(), after.get(key) ?? new Map()]
    const added = [...has.keys()].filter((id) => !had.has(id)).sort()
    const removed = [...had.keys()].filter((id) => !has.has(id)).sort()
    const changed = [...has]
      .filter(([id, input]) => had.has(id) && !equalJson(had.get(id), input))
      .map(([id, input]) => ({ id, fields: changedLeaves(had.get(id), input).sort() }))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
    if (added.length + removed.length + changed.length > 0) differences[key] = { added, removed, changed }
  }
  return differences
}

function changedLeaves(before: Json | undefined, after: Json | undefined, path = ''): string[] {
  if (before !== undefined && after !== undefined && equalJson(before, after)) return []
  if (!isObject(before) || !isObject(after)) return [path]
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...keys].flatMap((key) => changedLeaves(before[key], after[key], pointer(path, key)))
}

export function told({ details }: Impact) {
  return Object.fromEntries(
    details.map(({ cluster, endpoint, added, removed, changed }) => [
      `${cluster} ${endpoint}`,
      {
        added: added.toSorted(),
        removed: removed.toSorted(),
        changed: changed
          .map(({ id, fields }) => ({ id, fields: fields.map(({ path }) => path).sort() }))
          .toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      },
    ]),
  )
}

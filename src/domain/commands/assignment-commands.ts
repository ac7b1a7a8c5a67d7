// Commands that change what one cluster is assigned, without rewriting the cluster.

import { equalJson, isObject, type JsonObject, pointer } from '../../base/json.ts'
import { mergePatch } from '../../base/merge-patch.ts'
import { invalid, type Result, succeed } from '../../base/problem.ts'
import type { Draft } from '../documents/draft.ts'
import { findLive, notAssigned } from '../documents/find-document.ts'
import { below, checkSize, withId } from '../documents/parse-document.ts'
import {
  type DeliveredType,
  type Document,
  findReference,
  patchesOf,
  type Reference,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'
import type { Assign, Outcome, PatchValues, Unassign } from './command.ts'

export function assign(types: Types, draft: Draft, type: DeliveredType, command: Assign): Result<Outcome> {
  const { id, path } = command
  const clusters = types.cluster.type
  const found = findLive(draft, clusters, command.cluster, command.expect)
  if (!found.ok) return found
  const { document } = found.value
  const { delivery } = type
  const current = findReference(document, delivery, id)
  if (command.how === 'merge' && !current) return notAssigned(draft, type, id, command.cluster)
  if (!isObject(command.reference)) return invalid([{ path, message: 'must be an object' }])
  const keeps = command.how !== 'replace' && current
  const wanted = keeps ? mergePatch(current, command.reference) : command.reference
  const identified = withId(wanted as JsonObject, id, path)
  if (!identified.ok) return identified
  const reference = delivery.normaliseReference(identified.value) as Reference
  const details = delivery.checkReference(reference)
  if (details.length > 0) return invalid(below(path, details))
  const references = referencesOf(document, delivery)
  const updated = current
    ? references.map((other) => (other.id === id ? reference : other))
    : [...references, reference]
  if (!current || !equalJson(current, reference)) {
    const at = pointer(pointer('', delivery.assignedBy), updated.indexOf(reference))
    const assigned = { ...document, [delivery.assignedBy]: updated }
    const fits = checkSize(clusters, assigned, path, document)
    if (!fits.ok) return fits
    draft.put(clusters.name, assigned, { path, at })
  }
  return succeed({ type: clusters.name, id: document.id, created: !current })
}

export function unassign(
  types: Types,
  draft: Draft,
  type: DeliveredType,
  command: Unassign,
): Result<Outcome> {
  const clusters = types.cluster.type
  const found = findLive(draft, clusters, command.cluster, command.expect)
  if (!found.ok) return found
  const { document } = found.value
  const removed = findReference(document, type.delivery, command.id)
  if (!removed) return notAssigned(draft, type, command.id, command.cluster)
  draft.put(clusters.name, withoutReference(types, type, document, command.id), command)
  return succeed({ type: clusters.name, id: document.id, created: false, removed })
}

export function withoutReference(types: Types, type: DeliveredType, cluster: Document, id: string): Document {
  const { assignedBy, patches } = type.delivery
  const references = referencesOf(cluster, type.delivery).filter((reference) => reference.id !== id)
  const without = { ...cluster, [assignedBy]: references }
  return patches ? withPatches(types, without, id, {}) : without
}

export function patchValues(types: Types, draft: Draft, command: PatchValues): Result<Outcome> {
  const { component, path } = command
  const clusters = types.cluster.type
  const found = findLive(draft, clusters, command.cluster, command.expect)
  if (!found.ok) return found
  const { document } = found.value
  const type = types.patchable
  if (!type || !findReference(document, type.delivery, component)) {
    return notAssigned(draft, type ?? clusters, component, command.cluster)
  }
  if (!isObject(command.values))
    return invalid([{ path, message: 'must be an object: values by their path' }])
  const current = patchesOf(types.cluster, document, component)
  const values = mergePatch(command.merge ? current : {}, command.values) as JsonObject
  const wrong = Object.entries(values).filter(([, value]) => typeof value !== 'string')
  if (wrong.length > 0) {
    return invalid(
      wrong.map(([key, value]) => ({
        path: pointer(path, key),
        message: `must be a string${isObject(value) || Array.isArray(value) ? ': one value for each path' : `: write "${value}"`}`,
      })),
    )
  }
  const details = types.cluster.checkValues(values)
  if (details.length > 0)
    return invalid(details.map((detail) => ({ ...detail, path: `${path}${detail.path}` })))
  if (!equalJson(current, values)) {
    const at = pointer(pointer('', types.cluster.patches), component)
    const patched = withPatches(types, document, component, values)
    const fits = checkSize(clusters, patched, path, document)
    if (!fits.ok) return fits
    draft.put(clusters.name, patched, { path, at })
  }
  return succeed({ type: clusters.name, id: document.id, created: false, removed: current })
}

/** Without values the component has no entry. */
function withPatches(types: Types, cluster: Document, component: string, values: JsonObject): Document {
  const field = types.cluster.patches
  const patches = (cluster[field] ?? {}) as JsonObject
  if (Object.keys(values).length > 0) return { ...cluster, [field]: { ...patches, [component]: values } }
  if (!Object.hasOwn(patches, component)) return cluster
  const { [component]: _dropped, ...rest } = patches
  return { ...cluster, [field]: rest }
}

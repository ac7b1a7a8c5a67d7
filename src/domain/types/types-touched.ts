// The types that a change touches: references and patches are of the assigned type, other fields of the cluster type.
import { equalJson, type Json, type JsonObject } from '../../base/json.ts'
import type { DocumentVersion } from '../documents/view.ts'
import type { Types } from './resource-type.ts'

interface VersionChange {
  readonly type: string
  readonly before: DocumentVersion | undefined
  readonly after: DocumentVersion | undefined
}

export function typesTouched(
  { cluster, delivered, patchable }: Types,
  { type, before, after }: VersionChange,
): string[] {
  if (type !== cluster.type.name) return [type]
  const owners = new Map(delivered.map(({ name, delivery }) => [delivery.assignedBy, name]))
  if (patchable) owners.set(cluster.patches, patchable.name)
  // A cluster is created or deleted with all that it is assigned.
  const stays = before !== undefined && after !== undefined && before.deleted === after.deleted
  const contentOf = (version: DocumentVersion | undefined): JsonObject =>
    version && (stays || !version.deleted) ? version.document : {}
  const [was, is] = [contentOf(before), contentOf(after)]
  const touched = Object.keys({ ...was, ...is }).filter((field) => !isSame(was[field], is[field]))
  return [...new Set([...(stays ? [] : [type]), ...touched.map((field) => owners.get(field) ?? type)])]
}

/** A missing list or map equals an empty one. */
function isSame(a: Json | undefined, b: Json | undefined): boolean {
  return (isEmpty(a) && isEmpty(b)) || equalJson(a ?? null, b ?? null)
}

function isEmpty(value: Json | undefined): boolean {
  return (
    value === undefined || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
  )
}

// What clusters come to use by a write: definitions that return with a restored cluster, or are assigned for the first time.
import { getOrSet } from '../../base/get-or-set.ts'
import { equalJson } from '../../base/json.ts'
import type { Steps } from '../../base/steps.ts'
import type { Change, Entry, View } from '../documents/view.ts'
import {
  type DeliveredType,
  type Document,
  type DocumentName,
  type Reference,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'

/** A definition that was changed after a cluster was deleted, and returns with it. */
export interface Returning extends DocumentName {
  readonly clusters: string[]
  /** The revision that deleted the first of the clusters. */
  since: number
}

/** A definition that no live cluster used before. */
export interface FirstUse extends DocumentName {
  /** The revision that last changed it before the write. */
  readonly revision: number
}

interface NewUses {
  readonly returning: readonly Returning[]
  readonly first: readonly FirstUse[]
}

interface Write {
  readonly types: Types
  readonly before: View
  readonly after: View
}

/**
 * With `isWayBack`, every deleted cluster that comes back counts as restored, even if its document differs from the
 * deleted one.
 */
export function* newUsesOf(write: Write, changes: readonly Change[], isWayBack: boolean): Steps<NewUses> {
  const { types, before } = write
  const returning = new Map<string, Returning>()
  const assigned = new Map<string, FirstUse>()
  for (const { type, before: was, after: is } of changes) {
    yield
    if (type !== types.cluster.type.name || !is || is.deleted) continue
    const isRestored = was?.deleted && (isWayBack || equalJson(was.document, is.document))
    for (const delivered of types.delivered) {
      if (isRestored) noteReturning(returning, write, delivered, was, is.document)
      else noteAssigned(assigned, before, delivered, was?.deleted ? undefined : was?.document, is.document)
    }
  }
  return { returning: [...returning.values()], first: yield* unused(types, before, assigned) }
}

function noteReturning(
  returning: Map<string, Returning>,
  { after }: Write,
  { name: type, delivery }: DeliveredType,
  tombstone: Entry,
  document: Document,
): void {
  for (const { id } of referencesOf(document, delivery)) {
    if ((after.get(type, id)?.revision ?? 0) <= tombstone.revision) continue
    const known = getOrSet(returning, `${type}/${id}`, () => {
      return { type, id, clusters: [], since: tombstone.revision }
    })
    known.clusters.push(tombstone.id)
    known.since = Math.min(known.since, tombstone.revision)
  }
}

function noteAssigned(
  assigned: Map<string, FirstUse>,
  before: View,
  { name: type, delivery }: DeliveredType,
  was: Document | undefined,
  is: Document,
): void {
  const had = was ? referencesOf(was, delivery) : []
  const has = referencesOf(is, delivery)
  if (had === has || isSameOrder(had, has)) return
  const known = new Set(had.map(({ id }) => id))
  for (const { id } of has) {
    const entry = known.has(id) ? undefined : before.get(type, id)
    if (entry) assigned.set(`${type}/${id}`, { type, id, revision: entry.revision })
  }
}

/** Whether the ids are the same in the same order, as they are after most changes of a cluster. */
function isSameOrder(a: readonly Reference[], b: readonly Reference[]): boolean {
  return a.length === b.length && a.every(({ id }, i) => id === b[i]?.id)
}

/** Returns those of `assigned` that no live cluster has. Those in use are mostly found on the first few clusters. */
function* unused(types: Types, before: View, assigned: Map<string, FirstUse>): Steps<FirstUse[]> {
  for (const { document } of assigned.size > 0 ? before.all(types.cluster.type.name) : []) {
    yield
    for (const { name, delivery } of types.delivered)
      for (const { id } of referencesOf(document, delivery)) assigned.delete(`${name}/${id}`)
    if (assigned.size === 0) break
  }
  return [...assigned.values()]
}

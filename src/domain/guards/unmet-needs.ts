// Warnings of unmet needs: a write assigns a document without what it needs on the cluster, or takes that away.

import { getOrSet } from '../../base/get-or-set.ts'
import { equalJson } from '../../base/json.ts'
import { type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { enabledReferences, type FindEnabled } from '../delivery/dependencies.ts'
import { readerOf } from '../delivery/resolve-field.ts'
import { type ServedView, servedTo } from '../delivery/served-view.ts'
import type { Draft, Touched } from '../documents/draft.ts'
import type { View } from '../documents/view.ts'
import {
  type DeliveredType,
  type Document,
  type Need,
  type Reference,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'
import { Remarks } from './remarks.ts'

/** Returns only what the write itself brings about: needs that were unmet before are known already. */
export function* findUnmetNeeds(types: Types, draft: Draft, before: View): Steps<Result<string[]>> {
  const needing = types.delivered.filter(({ delivery }) => delivery.needs.types.length > 0)
  if (needing.length === 0) return succeed([])
  const remarks = new Remarks()
  const clusters = types.cluster.type.name
  const changed = changedNeeds(needing, draft.touched())
  for (const { type, id, before: was, after: is } of draft.touched()) {
    yield
    if (type !== clusters || !is || is.deleted) continue
    const had = was && !was.deleted ? was.document : undefined
    if (had && changed.size === 0 && isAssignedSame(types, had, is.document)) continue
    const old = new Holdings(types, servedTo(types, before, id), had)
    const now = new Holdings(types, servedTo(types, draft, id), is.document)
    for (const delivered of needing)
      for (const reference of now.references(delivered)) remark(remarks, id, delivered, reference, old, now)
  }
  for (const { id, document } of changed.size > 0 ? draft.all(clusters) : []) {
    yield
    if (draft.has(clusters, id)) continue
    const old = new Holdings(types, servedTo(types, before, id), document)
    const now = new Holdings(types, servedTo(types, draft, id), document)
    for (const [delivered, ids] of changed)
      for (const reference of now.references(delivered))
        if (ids.has(reference.id)) remark(remarks, id, delivered, reference, old, now)
  }
  return succeed(remarks.lines())
}

/** Definitions whose needs may change, by their type. */
function changedNeeds(
  needing: readonly DeliveredType[],
  touched: readonly Readonly<Touched>[],
): Map<DeliveredType, ReadonlySet<string>> {
  const changed = new Map<DeliveredType, ReadonlySet<string>>()
  for (const type of needing) {
    const ids = touched.flatMap(({ type: name, id, before, after }) => {
      if (name !== type.name || !before || !after) return []
      const [was, is] = [before.document, after.document]
      const { fields } = type.delivery.needs
      return fields.some((field) => !equalJson(was[field] ?? null, is[field] ?? null)) ? [id] : []
    })
    if (ids.length > 0) changed.set(type, new Set(ids))
  }
  return changed
}

/** A cheap check by identity: most changes of a cluster do not touch what it is assigned. */
function isAssignedSame(types: Types, had: Document, has: Document): boolean {
  return types.delivered.every(({ delivery: { assignedBy } }) => had[assignedBy] === has[assignedBy])
}

function remark(
  remarks: Remarks,
  cluster: string,
  type: DeliveredType,
  reference: Reference,
  old: Holdings,
  now: Holdings,
): void {
  for (const need of now.needsOf(type, reference)) {
    if (now.meets(need)) continue
    const before = old.find(type, reference.id)
    const wasNeeded = before && old.needsOf(type, before).some((other) => isSame(need, other))
    const isTaken = old.meets(need)
    // An unmet need is reported where it is new, or was met before. One that may be missing is reported only where it
    // was needed before, and met.
    if (need.mayBeMissing ? !(wasNeeded && isTaken) : wasNeeded && !isTaken) continue
    const what = `${type.singular} "${reference.id}" needs ${now.singularOf(need)} "${need.id}"`
    remarks.add(
      cluster,
      isTaken
        ? `${what}, which this takes away`
        : `${what}, which is not assigned: assign it, unless the cluster has it from elsewhere`,
    )
  }
}

function isSame(a: Need, b: Need): boolean {
  return a.type === b.type && a.id === b.id
}

/** What one cluster has enabled, in the view that it is served from. */
class Holdings {
  readonly #types: Types
  readonly #view: ServedView
  readonly #cluster: Document | undefined
  readonly #lookups = new Map<DeliveredType, FindEnabled>()

  constructor(types: Types, view: ServedView, cluster: Document | undefined) {
    this.#types = types
    this.#view = view
    this.#cluster = cluster
  }

  *references(type: DeliveredType): Generator<Reference> {
    if (!this.#cluster) return
    for (const { id } of referencesOf(this.#cluster, type.delivery)) {
      const reference = this.find(type, id)
      if (reference) yield reference
    }
  }

  find(type: DeliveredType, id: string): Reference | undefined {
    if (!this.#cluster) return undefined
    const cluster = this.#cluster
    return getOrSet(this.#lookups, type, () => enabledReferences(cluster, type.delivery))(id)
  }

  needsOf(type: DeliveredType, reference: Reference): readonly Need[] {
    const definition = this.#view.get(type.name, reference.id)?.document
    return definition ? type.delivery.needs.of(readerOf(type.delivery, definition, reference)) : []
  }

  meets({ type: name, id }: Need): boolean {
    const type = this.#types.delivered.find((other) => other.name === name)
    return !type || type.delivery.onEveryCluster.has(id) || this.find(type, id) !== undefined
  }

  singularOf({ type }: Need): string {
    return this.#types.get(type)?.singular ?? type
  }
}

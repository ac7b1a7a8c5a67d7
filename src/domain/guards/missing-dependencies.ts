// Warnings about inputs that come to a cluster without what they wait for, as far as a write causes that.
import { getOrSet } from '../../base/get-or-set.ts'
import { enabledReferences } from '../delivery/dependencies.ts'
import type { Draft } from '../documents/draft.ts'
import type { View } from '../documents/view.ts'
import {
  type DeliveredType,
  type Document,
  findReference,
  idsIn,
  isEnabled,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'

const MAX_WARNINGS = 20
const MAX_NAMED_CLUSTERS = 3

/** Collects what clusters lack: one warning for what many of them lack. */
export class MissingDependencies {
  readonly #draft: Draft
  /** The types whose inputs may wait for others. */
  readonly #waiting: readonly DeliveredType[]
  /** The clusters by what they lack. */
  readonly #clusters = new Map<string, string[]>()

  constructor(types: Types, draft: Draft) {
    this.#draft = draft
    this.#waiting = types.delivered.filter(({ delivery }) => delivery.waitsFor.length > 0)
  }

  /** Takes what a cluster lacks after the write and did not lack before it. */
  add(after: Document, before: Document | undefined): void {
    if (before && this.#hasSameInputs(after, before)) return
    const found = missingIn(this.#waiting, this.#draft, after)
    if (found.size === 0) return
    const known = before && missingIn(this.#waiting, this.#draft.original, before)
    for (const what of found) if (!known?.has(what)) getOrSet(this.#clusters, what, () => []).push(after.id)
  }

  /** Whether neither the assignments of a cluster change nor any definition: a patch keeps the lists that it does not touch. */
  #hasSameInputs(after: Document, before: Document): boolean {
    return this.#waiting.every(
      ({ name, delivery: { assignedBy } }) =>
        after[assignedBy] === before[assignedBy] && this.#draft.laid(name).size === 0,
    )
  }

  warnings(): string[] {
    const all = [...this.#clusters].map(([what, clusters]) => `${named(clusters)}: ${what}`)
    const more = all.length - MAX_WARNINGS
    return more > 0 ? [...all.slice(0, MAX_WARNINGS), `and ${more} more`] : all
  }
}

/** What a cluster's inputs wait for in vain, in words. */
function missingIn(waiting: readonly DeliveredType[], view: View, cluster: Document): Set<string> {
  const found = new Set<string>()
  for (const { name, delivery } of waiting) {
    const enabled = enabledReferences(cluster, delivery)
    for (const reference of referencesOf(cluster, delivery)) {
      if (!isEnabled(delivery, reference)) continue
      const { id } = reference
      const document = view.get(name, id)?.document
      const needs = delivery.waitsFor.flatMap((field) => idsIn(document?.[field]))
      for (const needed of needs.filter((each) => !enabled(each))) {
        const how = findReference(cluster, delivery, needed) ? 'is switched off' : 'is not assigned'
        found.add(`"${id}" depends on "${needed}", which ${how}`)
      }
    }
  }
  return found
}

function named(clusters: readonly string[]): string {
  const [first] = clusters
  if (clusters.length === 1) return `cluster "${first}"`
  const shown = clusters.slice(0, MAX_NAMED_CLUSTERS).map((id) => `"${id}"`)
  const more = clusters.length - shown.length
  return `${clusters.length} clusters (${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''})`
}

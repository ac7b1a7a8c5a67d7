// Equal references of many clusters as one object: a large fleet then fits in memory.
import { getOrSet } from '../../base/get-or-set.ts'
import { type Document, isPlain, type Reference, referencesOf, type Types } from '../types/resource-type.ts'
import { internalise } from './internalise.ts'

/** Only references that override nothing are shared: most clusters have them alike. */
export class SharedReferences {
  readonly #types: Types
  readonly #byType = new Map<string, Map<string, Reference>>()

  constructor(types: Types) {
    this.#types = types
  }

  /**
   * Puts the shared references in the place of equal ones. This is the one place where a document is edited, before it
   * is published and without changing its value: copies of the lists and the document would make the preparation of a
   * revision cost a quarter more.
   */
  share(cluster: Document): void {
    for (const { name, delivery } of this.#types.delivered) {
      const references = referencesOf(cluster, delivery) as Reference[]
      if (references.length === 0) continue
      const known = getOrSet(this.#byType, name, () => new Map<string, Reference>())
      for (let i = 0; i < references.length; i++) {
        const reference = references[i] as Reference
        const shared = known.get(reference.id)
        if (shared === reference || !isPlain(reference, delivery.referenceDefaults)) continue
        references[i] =
          shared ?? getOrSet(known, reference.id, () => ({ ...reference, id: internalise(reference.id) }))
      }
    }
  }
}

// Equal references of many clusters as one object: a large fleet then fits in memory.
import { getOrSet } from '../../base/get-or-set.ts'
import type { Json } from '../../base/json.ts'
import {
  type Delivery,
  type Document,
  isPlain,
  type Reference,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'
import { internalise } from './internalise.ts'

/** Only references that override nothing are shared: most clusters have them alike. */
export class SharedReferences {
  readonly #types: Types
  readonly #byType = new Map<string, Map<string, Reference>>()

  constructor(types: Types) {
    this.#types = types
  }

  /** Returns an equal cluster document with the shared references in its lists; the one given stays as it is. */
  share(cluster: Document): Document {
    let copy: Record<string, Json> | undefined
    for (const { name, delivery } of this.#types.delivered) {
      const references = referencesOf(cluster, delivery)
      const shared = this.#shareList(name, delivery, references)
      if (shared === references) continue
      copy ??= { ...cluster }
      copy[delivery.assignedBy] = shared
    }
    return (copy as Document | undefined) ?? cluster
  }

  #shareList(type: string, delivery: Delivery, references: readonly Reference[]): readonly Reference[] {
    if (references.length === 0) return references
    const known = getOrSet(this.#byType, type, () => new Map<string, Reference>())
    let copy: Reference[] | undefined
    for (let i = 0; i < references.length; i++) {
      const reference = references[i] as Reference
      const shared = known.get(reference.id)
      if (shared === reference || !isPlain(reference, delivery.referenceDefaults)) continue
      copy ??= references.slice()
      copy[i] =
        shared ?? getOrSet(known, reference.id, () => ({ ...reference, id: internalise(reference.id) }))
    }
    return copy ?? references
  }
}

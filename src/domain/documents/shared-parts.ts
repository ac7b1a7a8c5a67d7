// Equal parts of many documents as one object: a large fleet then fits in memory.
import type { Json, JsonObject } from '../../base/json.ts'
import {
  type DeliveredType,
  type Document,
  isPlain,
  type Reference,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'
import { internalise } from './internalise.ts'

/** Values that no other document has would pile up: a full table is emptied, and what is common returns to it soon. */
const MAX_KNOWN = 20_000

class Table<T> {
  readonly #known = new Map<string, T>()

  /** The value known under a key; the given one becomes known where there is none. */
  share(key: string, given: T): T {
    const known = this.#known.get(key)
    if (known !== undefined) return known
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(key, given)
    return given
  }
}

/** What clusters share of one type that is assigned to them. */
class SharedAssignments {
  /** References that override nothing, by their id: most clusters have them alike. */
  readonly plain = new Map<string, Reference>()
  /** Others by their JSON: versions are pinned, and components switched off, in a few ways. */
  readonly others = new Table<Reference>()
  /** Lists of plain references, by their ids. */
  readonly #lists = new Table<readonly Reference[]>()

  list(ids: string, references: readonly Reference[]): readonly Reference[] {
    const known = this.#lists.share(ids, references)
    // Whatever ids look like: two lists are the same only where their references are.
    const isSame = known.length === references.length && known.every((each, i) => each === references[i])
    return isSame ? known : references
  }
}

export class SharedParts {
  readonly #types: Types
  readonly #assignments: readonly (readonly [DeliveredType, SharedAssignments])[]
  readonly #labels = new Table<JsonObject>()

  constructor(types: Types) {
    this.#types = types
    this.#assignments = types.delivered.map((type) => [type, new SharedAssignments()])
  }

  /**
   * Puts shared parts in the place of equal ones of a cluster. This is the one place where a document is edited, before it
   * is published and without changing its value: a copy of it would make the preparation of a revision cost a quarter
   * more. What it has of the version before it is shared already.
   */
  share(cluster: Document, before?: Document): void {
    const document = cluster as Record<string, unknown>
    for (const [type, shared] of this.#assignments) {
      const { assignedBy } = type.delivery
      if (before && cluster[assignedBy] === before[assignedBy]) continue
      shareAssignments(cluster, type, shared)
    }
    const { labels } = this.#types.cluster
    const given = labels === undefined ? undefined : document[labels]
    if (labels !== undefined && given && given !== before?.[labels])
      document[labels] = this.#labels.share(JSON.stringify(given), given as JsonObject)
    shareText(document, cluster.id)
  }
}

function shareAssignments(cluster: Document, { delivery }: DeliveredType, shared: SharedAssignments): void {
  const references = referencesOf(cluster, delivery) as Reference[]
  if (references.length === 0) return
  let ids = ''
  let areAllPlain = true
  for (let i = 0; i < references.length; i++) {
    const reference = references[i] as Reference
    const known = shared.plain.get(reference.id)
    if (known === reference) {
      ids += `${reference.id} `
    } else if (isPlain(reference, delivery.referenceDefaults)) {
      const plain = known ?? { ...reference, id: internalise(reference.id) }
      if (!known) shared.plain.set(plain.id, plain)
      references[i] = plain
      ids += `${plain.id} `
    } else {
      references[i] = shared.others.share(JSON.stringify(reference), reference)
      areAllPlain = false
    }
  }
  if (areAllPlain) (cluster as Record<string, unknown>)[delivery.assignedBy] = shared.list(ids, references)
}

/** Puts one string in the place of equal ones: names often repeat ids. */
export function shareText(document: Record<string, unknown>, text: string): void {
  for (const key in document) if (document[key] === text) document[key] = text
}

/**
 * Puts parts of the present version of a document in the place of equal ones of another version, which was just read: the
 * past of a whole fleet takes little room then. Equal to the byte: the order of fields counts.
 */
export function shareWith(current: Document | undefined, version: Document): Document {
  if (!current) return version
  const document = version as Record<string, Json>
  for (const key in document) {
    const part = current[key]
    if (isParted(part) && isParted(document[key]) && JSON.stringify(part) === JSON.stringify(document[key]))
      document[key] = part
  }
  return version
}

function isParted(value: Json | undefined): value is Json & object {
  return typeof value === 'object' && value !== null
}

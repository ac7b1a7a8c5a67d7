// Label keys of a selector that no cluster has, and definitions that do not exist: most likely they are misspelt.
import { isObject, own } from '../../base/json.ts'
import { didYouMean } from '../../base/near-names.ts'
import type { Steps } from '../../base/steps.ts'
import { unknownDocument } from '../documents/find-document.ts'
import type { View } from '../documents/view.ts'
import type { ClusterType, Document } from '../types/resource-type.ts'
import type { NamedDefinition, Selector } from './selector.ts'

/** Known keys to suggest similar ones from, at most. */
const MAX_KNOWN = 1000

/**
 * Finds the label keys of a selector that no cluster has. Its user passes all clusters to `see`, which costs nothing
 * once each key was seen.
 */
export class UnknownKeys {
  readonly #cluster: ClusterType
  readonly #unknown: Set<string>
  readonly #known: Set<string>
  readonly #definitions: readonly NamedDefinition[]
  #isEmpty = true

  constructor(cluster: ClusterType, { labels, definitions }: Selector) {
    this.#cluster = cluster
    this.#unknown = new Set(labels)
    this.#definitions = definitions
    this.#known = new Set(['id', ...cluster.list])
  }

  see(document: Document): void {
    this.#isEmpty = false
    if (this.#unknown.size === 0) return
    const { labels: property } = this.#cluster
    const labels = property === undefined ? undefined : document[property]
    if (!isObject(labels)) return
    for (const key of this.#unknown) if (own(labels, key) !== undefined) this.#unknown.delete(key)
    if (this.#known.size < MAX_KNOWN) for (const key of Object.keys(labels)) this.#known.add(key)
  }

  /** In a fleet without clusters no key is wrong. Definitions are those of the view. */
  warnings(view: View): string[] {
    if (this.#isEmpty) return []
    return [
      ...[...this.#unknown].map((key) => `no cluster has the label "${key}"${didYouMean(key, this.#known)}`),
      ...this.#definitions.flatMap((named) => missing(view, named) ?? []),
    ]
  }
}

function missing(view: View, { id, types }: NamedDefinition): string | undefined {
  const [type] = types
  if (!type || types.some(({ name }) => view.get(name, id))) return undefined
  return unknownDocument(view, type, id)
}

/** Returns the warnings of `UnknownKeys` for a caller that does not go through all clusters itself. */
export function* warnOfUnknownKeys(cluster: ClusterType, view: View, selector: Selector): Steps<string[]> {
  const keys = new UnknownKeys(cluster, selector)
  const isAsked = selector.labels.length + selector.definitions.length > 0
  for (const { document } of isAsked ? view.all(cluster.type.name) : []) {
    yield
    keys.see(document)
  }
  return keys.warnings(view)
}

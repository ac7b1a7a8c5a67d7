// Upper bounds over all clusters that were ever in a state: raised by every version, never lowered.
import { identityLength, referencesOf, type Types } from '../types/resource-type.ts'
import type { Ceilings, Entry } from './view.ts'

export class ClusterCeilings implements Ceilings {
  size = 0
  identity = 0
  readonly references = new Map<string, number>()
  readonly #types: Types

  constructor(types: Types) {
    this.#types = types
  }

  raise({ document, size }: Entry): void {
    const { cluster, delivered } = this.#types
    this.size = Math.max(this.size, size)
    this.identity = Math.max(this.identity, identityLength(cluster, document))
    for (const { name, delivery } of delivered) {
      const count = referencesOf(document, delivery).length
      if (count > (this.references.get(name) ?? 0)) this.references.set(name, count)
    }
  }
}

// Upper bounds of what clusters may be given while rollouts go on: rollouts that edit the same document add up.
import { type JsonObject, own } from '../../base/json.ts'
import type { Steps } from '../../base/steps.ts'
import type { Entry, View } from '../documents/view.ts'
import type { ActiveRollout } from '../rollouts/active-rollout.ts'
import type { FieldEdit } from '../rollouts/edits.ts'
import { type DeliveredType, referencesOf, type Types } from '../types/resource-type.ts'

/** Quotes, colon and comma of a field. */
const PUNCTUATION = 4

interface Bounds {
  /** How many inputs of the type. */
  readonly references: number
  /** Length of the cluster's JSON. */
  readonly size: number
}

export class StagedBounds {
  readonly #types: Types
  readonly #view: View
  readonly #type: DeliveredType
  readonly #active: readonly ActiveRollout[]
  #largest: number | undefined
  #growth: Bounds | undefined

  constructor(types: Types, view: View, type: DeliveredType, active: readonly ActiveRollout[]) {
    this.#types = types
    this.#view = view
    this.#type = type
    this.#active = active
  }

  /** Length of the JSON of the largest definition, whichever rollouts are laid over it. */
  get largest(): number {
    this.#largest ??= this.#findLargest()
    return this.#largest
  }

  /** How much all rollouts together add to any cluster. */
  *growth(): Steps<Bounds> {
    this.#growth ??= yield* this.#findGrowth()
    return this.#growth
  }

  boundsOf(cluster: Entry, reaching: readonly ActiveRollout[]): Bounds {
    let references = referencesOf(cluster.document, this.#type.delivery).length
    let { size } = cluster
    for (const each of reaching) {
      const added = this.#addedBy(each, cluster)
      references += added.references
      size += added.size
    }
    return { references, size }
  }

  #addedBy({ overlay }: ActiveRollout, cluster: Entry): Bounds {
    const { name } = this.#types.cluster.type
    const laid = overlay.edited(name).has(cluster.id) ? overlay.lay(name, cluster.id, cluster) : cluster
    if (!laid || laid === cluster) return { references: 0, size: 0 }
    const count = ({ document }: Entry): number => referencesOf(document, this.#type.delivery).length
    return {
      references: Math.max(0, count(laid) - count(cluster)),
      size: Math.max(0, laid.size - cluster.size),
    }
  }

  #findLargest(): number {
    let largest = 0
    for (const { size } of this.#view.all(this.#type.name)) if (size > largest) largest = size
    const growths = new Map<string, number>()
    for (const { overlay } of this.#active)
      for (const id of overlay.edited(this.#type.name).keys()) {
        const base = this.#view.get(this.#type.name, id)
        const laid = overlay.lay(this.#type.name, id, base)
        const more = Math.max(0, (laid?.size ?? 0) - (base?.size ?? 0))
        const growth = (growths.get(id) ?? 0) + more
        growths.set(id, growth)
        largest = Math.max(largest, (base?.size ?? 0) + growth)
      }
    return largest
  }

  *#findGrowth(): Steps<Bounds> {
    const growth = { references: 0, size: 0 }
    for (const { overlay } of this.#active) {
      const most = { references: 0, size: 0 }
      for (const edit of new Set(overlay.edited(this.#types.cluster.type.name).values())) {
        yield
        const added = 'fields' in edit ? this.#addedByFields(edit.fields) : most
        most.references = Math.max(most.references, added.references)
        most.size = Math.max(most.size, added.size)
      }
      growth.references += most.references
      growth.size += most.size
    }
    return growth
  }

  /** By the fields alone: to lay them over every cluster would take too long. */
  #addedByFields(fields: readonly FieldEdit[]): Bounds {
    const { assignedBy } = this.#type.delivery
    let [references, size] = [0, 0]
    for (const { path, before, after } of fields) {
      size += path.length + PUNCTUATION + (after === undefined ? 0 : JSON.stringify(after).length)
      const list = path === '' ? own(after as JsonObject, assignedBy) : after
      if (path === '' || path === `/${assignedBy}`) references += Array.isArray(list) ? list.length : 0
      else if (path.startsWith(`/${assignedBy}/`) && before === undefined) references++
    }
    return { references, size }
  }
}

// What clusters are served differently between two views, cluster by cluster.
import { diffFields, type FieldChange } from '../../base/diff.ts'
import { getOrSet } from '../../base/get-or-set.ts'
import { equalJson } from '../../base/json.ts'
import type { Overlay } from '../documents/overlay.ts'
import type { Entry, View } from '../documents/view.ts'
import {
  type DeliveredType,
  type Document,
  idsIn,
  isOn,
  patchesOf,
  type Reference,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'
import { absentFor, type Holding, resolveInput, switchedOn } from './render-inputs.ts'

export interface InputChange {
  readonly id: string
  readonly fields: readonly FieldChange[]
}

/** What one cluster receives differently at one endpoint. The order of inputs does not count. */
export interface EndpointDifference {
  readonly type: DeliveredType
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly InputChange[]
  /** Of those that changed. */
  readonly switchedOff: readonly string[]
}

/** Whether a cluster is there before and after, or comes or goes. */
export type Passage = 'joins' | 'stays' | 'leaves'

/** A view, and the same with something laid over it, compared cluster by cluster. */
export class Comparison {
  readonly types: Types
  readonly before: View
  readonly after: Overlay
  readonly #clusters: ReadonlyMap<string, unknown>
  readonly #definitions = new Map<string, ReadonlyMap<string, unknown>>()
  readonly #touched = new Map<string, ReadonlySet<string>>()
  /**
   * Most clusters share the object of a plain reference: what a definition's change means for it is told once, for each
   * set of others that its input cannot wait for before and after.
   */
  readonly #known = new Map<Reference, Map<string, readonly FieldChange[]>>()
  /** Clusters with something laid over them are asked for by the brake and again for the impact. */
  readonly #compared = new Map<string, readonly EndpointDifference[]>()

  constructor(types: Types, before: View, after: Overlay) {
    this.types = types
    this.before = before
    this.after = after
    this.#clusters = after.laid(types.cluster.type.name)
    for (const { name } of types.delivered) {
      const laid = after.laid(name)
      if (laid.size > 0) this.#definitions.set(name, laid)
    }
  }

  /** The clusters that may receive something else, ordered by id. */
  *candidates(): Generator<string> {
    const type = this.types.cluster.type.name
    if (this.#definitions.size === 0) {
      yield* [...this.#clusters.keys()].sort()
      return
    }
    const others = [...this.#clusters.keys()].filter((id) => !this.before.get(type, id)).sort()
    let next = 0
    for (const { id } of this.before.all(type)) {
      for (let first = others[next]; first !== undefined && first < id; first = others[++next]) yield first
      yield id
    }
    yield* others.slice(next)
  }

  compare(id: string): readonly EndpointDifference[] {
    if (!this.#clusters.has(id)) return this.#compare(id)
    return getOrSet(this.#compared, id, () => this.#compare(id))
  }

  /** The deleted clusters that might receive something else if they were restored. */
  restorable(): Iterable<Entry> {
    return this.#definitions.size === 0 ? [] : this.before.tombstones(this.types.cluster.type.name)
  }

  /** What one of them would receive differently, restored as it is. */
  compareRestored(tombstone: Entry): readonly EndpointDifference[] {
    return this.types.delivered.flatMap((type) => this.#compareDefinitions(type, tombstone) ?? [])
  }

  #compare(id: string): EndpointDifference[] {
    const type = this.types.cluster.type.name
    const before = this.before.get(type, id)
    const after = this.#clusters.has(id) ? this.after.get(type, id) : before
    if (!before && !after) return []
    const differences: EndpointDifference[] = []
    for (const delivered of this.types.delivered) {
      const found =
        before === after
          ? this.#compareDefinitions(delivered, before as Entry)
          : this.#compareInputs(delivered, before?.document, after?.document)
      if (found) differences.push(found)
    }
    return differences
  }

  /** Whether the cluster's own document is another. */
  isTouched(id: string): boolean {
    const type = this.types.cluster.type.name
    return this.#clusters.has(id) && this.before.get(type, id) !== this.after.get(type, id)
  }

  passageOf(id: string): Passage {
    if (!this.#clusters.has(id)) return 'stays'
    const type = this.types.cluster.type.name
    if (!this.before.get(type, id)) return 'joins'
    return this.after.get(type, id) ? 'stays' : 'leaves'
  }

  environmentOf(id: string): string {
    const { type, environment } = this.types.cluster
    const entry = this.after.get(type.name, id) ?? this.before.get(type.name, id)
    return String((environment && entry?.document[environment]) ?? '')
  }

  /** For a cluster that is itself as it was. */
  #compareDefinitions(type: DeliveredType, cluster: Entry): EndpointDifference | undefined {
    const definitions = this.#definitions.get(type.name)
    if (!definitions) return undefined
    const found = new Difference(type)
    const on = switchedOn(cluster.document, type.delivery)
    const touched = getOrSet(this.#touched, type.name, () => this.#withWaiting(type, definitions))
    const { waitsFor, overrides } = type.delivery
    const byOverride = waitsFor.filter((field) => overrides.includes(field))
    for (const reference of referencesOf(cluster.document, type.delivery)) {
      const { id } = reference
      if (!touched.has(id) && !isNamedBy(reference, byOverride, definitions)) continue
      const had = this.before.get(type.name, id) !== undefined
      const has = this.after.get(type.name, id) !== undefined
      if (!had || !has) {
        if (has) found.added.push(id)
        if (had) found.removed.push(id)
        continue
      }
      const holding: Holding = [cluster.document, reference, on]
      const left = this.#absent(this.before, type, holding)
      const leaves = this.#absent(this.after, type, holding)
      const fields = getOrSet(
        getOrSet(this.#known, reference, () => new Map<string, readonly FieldChange[]>()),
        left.length + leaves.length === 0 ? '' : `${left} ${leaves}`,
        () => this.#diff(type, holding, holding),
      )
      if (fields.length > 0) found.changed.push({ id, fields })
    }
    return found.orNothing()
  }

  /** Definitions that something is laid over, and those that wait for one of them. */
  #withWaiting({ name, delivery }: DeliveredType, laid: ReadonlyMap<string, unknown>): ReadonlySet<string> {
    const touched = new Set(laid.keys())
    if (delivery.waitsFor.length === 0) return touched
    for (const { id, document } of this.after.all(name)) {
      const waits = delivery.waitsFor.some((field) => idsIn(document[field]).some((other) => laid.has(other)))
      if (waits) touched.add(id)
    }
    return touched
  }

  #compareInputs(
    type: DeliveredType,
    before: Document | undefined,
    after: Document | undefined,
  ): EndpointDifference | undefined {
    if (before && after && this.#receivesSame(type, before, after)) return undefined
    const had = before ? receivedBy(this.before, type, before) : NONE
    const has = after ? receivedBy(this.after, type, after) : NONE
    const found = new Difference(type)
    for (const [i, { id }] of had.entries()) if (!at(has, i, id)) found.removed.push(id)
    const onBefore = before && switchedOn(before, type.delivery)
    const onAfter = after && switchedOn(after, type.delivery)
    for (const [i, reference] of has.entries()) {
      const { id } = reference
      const old = at(had, i, id)
      if (!old || !onBefore || !onAfter) {
        found.added.push(id)
        continue
      }
      const was: Holding = [before, old, onBefore]
      const is: Holding = [after, reference, onAfter]
      const fields = this.#isSame(type, was, is) ? [] : this.#diff(type, was, is)
      if (fields.length === 0) continue
      found.changed.push({ id, fields })
      if (isOn(type.delivery, old) && !isOn(type.delivery, reference)) found.switchedOff.push(id)
    }
    return found.orNothing()
  }

  /** A cheap look at all that the inputs of a type are made of. */
  #receivesSame(type: DeliveredType, before: Document, after: Document): boolean {
    const { assignedBy, patches } = type.delivery
    const { cluster } = this.types
    const same = (field: string): boolean => equalJson(before[field] ?? null, after[field] ?? null)
    return (
      !this.#definitions.has(type.name) &&
      same(assignedBy) &&
      (!patches || same(cluster.patches)) &&
      cluster.input.every(([, property]) => before[property] === after[property])
    )
  }

  /** The same for one of them. */
  #isSame(type: DeliveredType, had: Holding, has: Holding): boolean {
    const { cluster } = this.types
    const [before, old] = had
    const [after, reference] = has
    return (
      !this.#definitions.get(type.name)?.has(reference.id) &&
      equalJson(old, reference) &&
      equalJson(this.#absent(this.before, type, had), this.#absent(this.after, type, has)) &&
      cluster.input.every(([, property]) => before[property] === after[property]) &&
      (!type.delivery.patches ||
        equalJson(patchesOf(cluster, before, reference.id), patchesOf(cluster, after, reference.id)))
    )
  }

  #diff(type: DeliveredType, old: Holding, now: Holding): FieldChange[] {
    return diffFields(
      resolveInput(this.types, this.before, type, this.#definition(this.before, type, old[1]), old),
      resolveInput(this.types, this.after, type, this.#definition(this.after, type, now[1]), now),
    )
  }

  #absent(view: View, type: DeliveredType, [, reference, on]: Holding): readonly string[] {
    return absentFor(view, type, this.#definition(view, type, reference), reference, on)
  }

  #definition(view: View, { name }: DeliveredType, { id }: Reference): Document {
    return view.get(name, id)?.document as Document
  }
}

/** Whether fields of a reference name one of these. */
function isNamedBy(
  reference: Reference,
  fields: readonly string[],
  named: ReadonlyMap<string, unknown>,
): boolean {
  return fields.length > 0 && fields.some((field) => idsIn(reference[field]).some((id) => named.has(id)))
}

const NONE: readonly Reference[] = []

/** A reference whose definition is not there makes no input. */
export function receivedBy(
  view: View,
  { name, delivery }: DeliveredType,
  cluster: Document,
): readonly Reference[] {
  const references = referencesOf(cluster, delivery)
  const isThere = ({ id }: Reference): boolean => view.get(name, id) !== undefined
  return references.every(isThere) ? references : references.filter(isThere)
}

/** Found by its id; mostly it stands where it stood. */
function at(references: readonly Reference[], i: number, id: string): Reference | undefined {
  const same = references[i]
  return same?.id === id ? same : references.find((reference) => reference.id === id)
}

class Difference {
  readonly type: DeliveredType
  readonly added: string[] = []
  readonly removed: string[] = []
  readonly changed: InputChange[] = []
  readonly switchedOff: string[] = []

  constructor(type: DeliveredType) {
    this.type = type
  }

  orNothing(): this | undefined {
    return this.added.length + this.removed.length + this.changed.length > 0 ? this : undefined
  }
}

// What one cluster receives differently when it is served from another view.
import { diffFields, type FieldChange } from '../../base/diff.ts'
import { getOrSet } from '../../base/get-or-set.ts'
import { equalJson } from '../../base/json.ts'
import {
  type DeliveredType,
  type Document,
  findReference,
  idsIn,
  isEnabled,
  patchesOf,
  type Reference,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'
import {
  type Dependent,
  dependentOf,
  enabledReferences,
  type FindEnabled,
  unmetAmong,
  unmetDependencies,
} from './dependencies.ts'
import { type Assignment, resolveInput } from './render-inputs.ts'
import type { ServedView } from './served-view.ts'

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
  /** Those of `changed` that were enabled and are no longer. */
  readonly disabled: readonly string[]
}

/** Definitions that may differ between two views, by type and id: what is laid over the first one. */
export type ChangedDefinitions = ReadonlyMap<string, ReadonlyMap<string, unknown>>

/** What is learned of a reference: most clusters share the objects of equal ones, so it is learned once for all of them. */
interface Known {
  /** Whether its input may differ at all. */
  readonly isAffected: boolean
  /**
   * The changed definitions that it depends on, where its own is the same: its input differs only if one of these is met in
   * one view and not in the other. Undefined where its own may differ.
   */
  readonly watches: readonly string[] | undefined
  /** What it depends on in either view; undefined where it has no definition. */
  readonly before: Dependent | undefined
  readonly after: Dependent | undefined
  /** What the change of definitions means for it, by the dependencies that are unmet before and after. */
  readonly differences: Map<string, EndpointDifference | undefined>
}

/** Clusters could override definitions in any number of ways: a full table is emptied, and what is common returns soon. */
const MAX_KNOWN = 50_000

/**
 * Compares the inputs of clusters that are all served from the same two views. What it learns of a definition holds for
 * these two views only.
 */
export class InputComparison {
  readonly before: ServedView
  readonly after: ServedView
  readonly #types: Types
  /** Undefined where any definition may differ. */
  readonly #changed: ChangedDefinitions | undefined
  readonly #affected = new Map<string, (reference: Reference) => boolean>()
  readonly #known = new Map<Reference, Known>()

  constructor(types: Types, before: ServedView, after: ServedView, changed: ChangedDefinitions | undefined) {
    this.#types = types
    this.before = before
    this.after = after
    this.#changed = changed
  }

  /** Whether it is known which definitions can differ: a cluster whose own document is the same differs by these alone. */
  get isPlain(): boolean {
    return this.#changed !== undefined
  }

  /** For a cluster whose own document is the same in both views. */
  compareDefinitions(type: DeliveredType, cluster: Document): EndpointDifference | undefined {
    if (!this.#mayDiffer(type)) return undefined
    let found: EndpointDifference | undefined
    for (const reference of referencesOf(cluster, type.delivery)) {
      const known = this.#know(type, reference)
      if (!known.isAffected) continue
      if (known.watches?.every((id) => this.#isSteady(type, cluster, id))) continue
      const difference = this.#differenceOf(type, cluster, reference, known)
      // Mostly it is the only one: then clusters share it.
      if (difference) found = found ? joined(found, difference) : difference
    }
    return found
  }

  /** What the change of definitions means for one reference of a cluster. */
  #differenceOf(
    type: DeliveredType,
    cluster: Document,
    reference: Reference,
    { before, after, differences }: Known,
  ): EndpointDifference | undefined {
    if (!before && !after) return undefined
    const { id } = reference
    if (!before || !after) {
      const passing = after ? { added: [id] } : { removed: [id] }
      return getOrSet(differences, '', () => ({ ...new Difference(type), ...passing }))
    }
    const isAlone = before.dependsOn.length + after.dependsOn.length === 0
    const enabled = isAlone ? NOTHING_ENABLED : enabledReferences(cluster, type.delivery)
    const left = unmetAmong(before, (other) => this.#knowEnabled(type, enabled, other)?.before)
    const leaves = unmetAmong(after, (other) => this.#knowEnabled(type, enabled, other)?.after)
    const key = left.length + leaves.length === 0 ? '' : `${left} ${leaves}`
    if (differences.has(key)) return differences.get(key)
    const assignment: Assignment = { cluster, reference, enabled }
    const fields = this.#diff(type, assignment, assignment)
    const difference = { ...new Difference(type), changed: [{ id, fields }] }
    differences.set(key, fields.length > 0 ? difference : undefined)
    return differences.get(key)
  }

  /** For a cluster whose own document changes, comes or goes. */
  compareDocuments(
    type: DeliveredType,
    before: Document | undefined,
    after: Document | undefined,
  ): EndpointDifference | undefined {
    if (before && after && this.#receivesSame(type, before, after)) return undefined
    const { delivery } = type
    const had = before ? receivedBy(this.before, type, before) : NONE
    const has = after ? receivedBy(this.after, type, after) : NONE
    const found = new Difference(type)
    for (const [i, { id }] of had.entries()) if (!at(has, i, id)) found.removed.push(id)
    const enabledBefore = before && enabledReferences(before, delivery)
    const enabledAfter = after && enabledReferences(after, delivery)
    for (const [i, reference] of has.entries()) {
      const { id } = reference
      const old = at(had, i, id)
      if (!old || !enabledBefore || !enabledAfter) {
        found.added.push(id)
        continue
      }
      const was: Assignment = { cluster: before, reference: old, enabled: enabledBefore }
      const is: Assignment = { cluster: after, reference, enabled: enabledAfter }
      const fields = this.#isSame(type, was, is) ? [] : this.#diff(type, was, is)
      if (fields.length === 0) continue
      found.changed.push({ id, fields })
      if (isEnabled(delivery, old) && !isEnabled(delivery, reference)) found.disabled.push(id)
    }
    return found.orUndefined()
  }

  #know(type: DeliveredType, reference: Reference): Known {
    const known = this.#known.get(reference)
    if (known) return known
    const isAffected = getOrSet(this.#affected, type.name, () => this.#affectedBy(type))(reference)
    const dependentIn = (view: ServedView): Dependent | undefined => {
      const definition = view.get(type.name, reference.id)?.document
      return definition && dependentOf(type.delivery, definition, reference)
    }
    const [before, after] = [dependentIn(this.before), dependentIn(this.after)]
    const changed = this.#changed?.get(type.name)
    const isSame = changed && before && after && !changed.has(reference.id)
    const watches = isSame ? after.dependsOn.filter((id) => changed.has(id)) : undefined
    const learned: Known = { isAffected, watches, before, after, differences: new Map() }
    if (this.#known.size === MAX_KNOWN) this.#known.clear()
    this.#known.set(reference, learned)
    return learned
  }

  /** Whether what a cluster has of a definition is met, or unmet, in both views. */
  #isSteady(type: DeliveredType, cluster: Document, id: string): boolean {
    const reference = findReference(cluster, type.delivery, id)
    if (!reference || !isEnabled(type.delivery, reference)) return true
    const { before, after } = this.#know(type, reference)
    return before?.deliveryClass === after?.deliveryClass
  }

  #knowEnabled(type: DeliveredType, enabled: FindEnabled, id: string): Known | undefined {
    const reference = enabled(id)
    return reference && this.#know(type, reference)
  }

  #mayDiffer({ name }: DeliveredType): boolean {
    return this.#changed === undefined || this.#changed.has(name)
  }

  /** Returns whether an input may differ: its definition may, or one that it depends on. */
  #affectedBy(type: DeliveredType): (reference: Reference) => boolean {
    const changed = this.#changed?.get(type.name)
    if (!changed) return () => true
    const { waitsFor, overrides } = type.delivery
    const affected = this.#withDependents(type, changed)
    const byOverride = waitsFor.filter((field) => overrides.includes(field))
    return (reference) => affected.has(reference.id) || isNamedBy(reference, byOverride, changed)
  }

  /** Definitions that may differ, and those that depend on one of them. */
  #withDependents(
    { name, delivery }: DeliveredType,
    changed: ReadonlyMap<string, unknown>,
  ): ReadonlySet<string> {
    const affected = new Set(changed.keys())
    if (delivery.waitsFor.length === 0) return affected
    for (const { id, document } of this.after.all(name)) {
      const waits = delivery.waitsFor.some((field) =>
        idsIn(document[field]).some((other) => changed.has(other)),
      )
      if (waits) affected.add(id)
    }
    return affected
  }

  /** Whether the inputs of a type are the same, by what they are made of: cheaper than rendering them. */
  #receivesSame(type: DeliveredType, before: Document, after: Document): boolean {
    const { assignedBy, patches } = type.delivery
    const { cluster } = this.#types
    const same = (field: string): boolean => equalJson(before[field] ?? null, after[field] ?? null)
    return (
      !this.#mayDiffer(type) &&
      same(assignedBy) &&
      (!patches || same(cluster.patches)) &&
      cluster.input.every(([, property]) => before[property] === after[property])
    )
  }

  /** Whether one input is the same, by what it is made of: cheaper than rendering it. */
  #isSame(type: DeliveredType, had: Assignment, has: Assignment): boolean {
    const { cluster } = this.#types
    const { id } = has.reference
    return (
      this.#isSameDefinition(type, id) &&
      equalJson(had.reference, has.reference) &&
      equalJson(this.#unmet(this.before, type, had), this.#unmet(this.after, type, has)) &&
      cluster.input.every(([, property]) => had.cluster[property] === has.cluster[property]) &&
      (!type.delivery.patches ||
        equalJson(patchesOf(cluster, had.cluster, id), patchesOf(cluster, has.cluster, id)))
    )
  }

  #isSameDefinition({ name }: DeliveredType, id: string): boolean {
    if (this.#changed) return !this.#changed.get(name)?.has(id)
    return this.before.get(name, id) === this.after.get(name, id)
  }

  #diff(type: DeliveredType, had: Assignment, has: Assignment): FieldChange[] {
    return diffFields(this.#input(this.before, type, had), this.#input(this.after, type, has))
  }

  #input(view: ServedView, type: DeliveredType, assignment: Assignment) {
    return resolveInput(this.#types, view, type, definitionIn(view, type, assignment), assignment)
  }

  #unmet(view: ServedView, type: DeliveredType, assignment: Assignment): readonly string[] {
    const { reference, enabled } = assignment
    return unmetDependencies(view, type, definitionIn(view, type, assignment), reference, enabled)
  }
}

function definitionIn(view: ServedView, { name }: DeliveredType, { reference }: Assignment): Document {
  return view.get(name, reference.id)?.document as Document
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

/** Returns the references that make inputs: those whose definition exists. */
export function receivedBy(
  view: ServedView,
  { name, delivery }: DeliveredType,
  cluster: Document,
): readonly Reference[] {
  const references = referencesOf(cluster, delivery)
  const isThere = ({ id }: Reference): boolean => view.get(name, id) !== undefined
  return references.every(isThere) ? references : references.filter(isThere)
}

/** Finds a reference by its id; mostly it stands at the same index in both lists. */
function at(references: readonly Reference[], i: number, id: string): Reference | undefined {
  const same = references[i]
  return same?.id === id ? same : references.find((reference) => reference.id === id)
}

const NOTHING_ENABLED: FindEnabled = () => undefined

function joined(one: EndpointDifference, other: EndpointDifference): EndpointDifference {
  return {
    type: one.type,
    added: [...one.added, ...other.added],
    removed: [...one.removed, ...other.removed],
    changed: [...one.changed, ...other.changed],
    disabled: [...one.disabled, ...other.disabled],
  }
}

class Difference {
  readonly type: DeliveredType
  readonly added: string[] = []
  readonly removed: string[] = []
  readonly changed: InputChange[] = []
  readonly disabled: string[] = []

  constructor(type: DeliveredType) {
    this.type = type
  }

  orUndefined(): this | undefined {
    return this.added.length + this.removed.length + this.changed.length > 0 ? this : undefined
  }
}

// Who may change an applied set: callers who may delete all that it holds, since the next prune of it may do so.

import { getOrSet } from '../../base/get-or-set.ts'
import { forbidden, type Problem } from '../../base/problem.ts'
import { named } from '../../base/sentences.ts'
import type { Steps } from '../../base/steps.ts'
import type { Selector } from '../access/selector.ts'
import type { Comparison } from '../delivery/compare-served.ts'
import { findVersion } from '../documents/find-document.ts'
import type { Change, Entry, View } from '../documents/view.ts'
import { type DocumentName, idsIn, referencesOf, type Types } from '../types/resource-type.ts'
import { typesTouched } from '../types/types-touched.ts'

interface Scope {
  readonly selector: Selector | undefined
  readonly types: readonly string[] | undefined
}

/** A document that a set holds before the write, after it, or both. */
interface Held extends DocumentName {
  readonly set: DocumentName
  readonly wasHeld: boolean
  isHeld: boolean
}

/** Returns why a changed set holds more than the scope covers; undefined when none does. */
export function* refuseHeld(
  scope: Scope,
  comparison: Comparison,
  changes: readonly Change[],
): Steps<Problem | undefined> {
  if (!scope.selector && !scope.types) return undefined
  const held = yield* heldIn(comparison.types, changes)
  const reasons = new Map<Held, string>()
  const definitions: Held[] = []
  for (const entry of held) {
    yield
    const reason = reasonAgainst(scope, comparison, entry)
    if (reason) reasons.set(entry, reason)
    else if (entry.type !== comparison.types.cluster.type.name) definitions.push(entry)
  }
  if (scope.selector && definitions.length > 0) {
    for (const [entry, user] of yield* usersOutside(scope.selector, comparison, definitions))
      reasons.set(entry, `is used by ${user} outside your scope`)
  }
  if (reasons.size === 0) return undefined
  const sets = [...new Set([...reasons.keys()].map(({ set }) => nameOf(set)))]
  const documents = named([...reasons.keys()].map(nameOf))
  return forbidden(
    'held',
    `this changes ${named(sets)}, which holds what is outside your scope: ${documents}. A set may be changed by those who may delete all that it holds`,
    [...reasons].map(([entry, reason]) => ({
      path: `/${nameOf(entry.set)}`,
      message: `holds ${nameOf(entry)}, which ${reason}`,
    })),
  )
}

function nameOf({ type, id }: DocumentName): string {
  return `${type}/${id}`
}

function* heldIn(types: Types, changes: readonly Change[]): Steps<Held[]> {
  const all: Held[] = []
  for (const { type, id, before, after } of changes) {
    yield
    const holds = types.system.get(type)?.holds
    if (!holds) continue
    const found = new Map<string, Held>()
    for (const entry of before && !before.deleted ? holds(before.document) : []) {
      yield
      found.set(nameOf(entry), { ...entry, set: { type, id }, wasHeld: true, isHeld: false })
    }
    for (const entry of after && !after.deleted ? holds(after.document) : []) {
      yield
      const known = getOrSet(found, nameOf(entry), () => {
        return { ...entry, set: { type, id }, wasHeld: false, isHeld: true }
      })
      known.isHeld = true
    }
    for (const entry of found.values()) all.push(entry)
  }
  return all
}

/** Why an entry is outside the scope, whatever uses it; undefined where it is not. */
function reasonAgainst(
  { selector, types: allowed }: Scope,
  { types, before, after }: Comparison,
  entry: Held,
): string | undefined {
  const { type, id } = entry
  const known = types.get(type)
  // A prune cannot delete documents of a type that no longer exists.
  if (!known) return entry.isHeld ? 'is of an unknown type' : undefined
  if (types.system.get(type)?.holds) return 'is a set itself'
  const standings = [before, after].flatMap((view) => findVersion(view, type, id) ?? [])
  const foreign = allowed && foreignTypes(types, allowed, entry, standings)
  if (foreign?.includes(type)) return `is of the type ${type}`
  if (foreign && foreign.length > 0) return `is assigned what is of the types ${foreign.join(', ')}`
  // A later creator of the document would not know that the set holds it.
  if (!entry.wasHeld && !after.get(type, id)) return 'does not exist: create it in the same write'
  if (type !== types.cluster.type.name || !selector) return undefined
  const stranger = standings.find(({ document }) => !selector.matches(document))
  return stranger && `is a ${stranger.deleted ? 'deleted ' : ''}${known.singular} outside your scope`
}

/** The types that deleting the document would touch and that are not allowed. */
function foreignTypes(
  types: Types,
  allowed: readonly string[],
  { type }: DocumentName,
  standings: readonly Entry[],
): string[] {
  const touched = standings.flatMap(({ document }) =>
    typesTouched(types, { type, before: { document, deleted: false }, after: undefined }),
  )
  return [...new Set([type, ...touched])].filter((name) => !allowed.includes(name))
}

/**
 * Returns a cluster outside the scope for each entry that one uses: live or deleted, directly or through a definition
 * that names the entry.
 */
function* usersOutside(
  selector: Selector,
  { types, before }: Comparison,
  entries: readonly Held[],
): Steps<Map<Held, string>> {
  const found = new Map<Held, string>()
  const wanted = yield* wantedBy(types, before, entries)
  const { name } = types.cluster.type
  for (const view of [before.all(name), before.tombstones(name)]) {
    for (const { id, document, deleted } of view) {
      yield
      if (found.size === entries.length) return found
      if (selector.matches(document)) continue
      for (const { name: type, delivery } of types.delivered) {
        for (const reference of wanted.has(type) ? referencesOf(document, delivery) : [])
          for (const entry of wanted.at(type, reference.id))
            if (!found.has(entry)) found.set(entry, deleted ? `deleted cluster ${id}` : id)
      }
    }
  }
  return found
}

/**
 * Returns entries by the type and id of what brings them to a cluster: the entry itself, or a definition that names it.
 * A definition that only waits for an entry does not bring it: a cluster without the entry does not wait.
 */
function* wantedBy(types: Types, before: View, entries: readonly Held[]): Steps<Index> {
  const held = new Index()
  const wanted = new Index()
  for (const entry of entries) {
    held.add(entry, entry)
    wanted.add(entry, entry)
  }
  for (const user of types.delivered) {
    for (const { field, type } of user.references) {
      if (!held.has(type) || user.delivery.waitsFor.includes(field)) continue
      for (const { id, document } of before.all(user.name)) {
        yield
        for (const target of idsIn(document[field]))
          for (const entry of held.at(type, target)) wanted.add({ type: user.name, id }, entry)
      }
    }
  }
  return wanted
}

/** Entries by the type and id of a document. */
class Index {
  readonly #byType = new Map<string, Map<string, Held[]>>()

  add({ type, id }: DocumentName, entry: Held): void {
    const byId = getOrSet(this.#byType, type, () => new Map<string, Held[]>())
    getOrSet(byId, id, () => []).push(entry)
  }

  has(type: string): boolean {
    return this.#byType.has(type)
  }

  at(type: string, id: string): readonly Held[] {
    return this.#byType.get(type)?.get(id) ?? []
  }
}

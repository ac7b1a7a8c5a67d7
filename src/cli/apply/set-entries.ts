// The entries of a set: which documents it holds, as a list and as its inventory has them.
import type { DocumentName } from '../server/nouns.ts'

/** Ids by type, in order. */
export type Inventory = Readonly<Record<string, readonly string[]>>

export function inventoryOf(set: readonly DocumentName[]): Inventory {
  const ids = new Map<string, Set<string>>()
  for (const { type, id } of set) ids.set(type, (ids.get(type) ?? new Set()).add(id))
  return Object.fromEntries([...ids].sort().map(([type, all]) => [type, [...all].sort()]))
}

export function entriesOf(inventory: Inventory): DocumentName[] {
  return Object.entries(inventory).flatMap(([type, ids]) => ids.map((id) => ({ type, id })))
}

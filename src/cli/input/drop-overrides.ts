// Operations that give up what clusters set themselves for a definition.
import type { JsonObject } from '../../base/json.ts'
import type { Noun } from '../server/nouns.ts'

/** The fields of a definition that a cluster can set itself. */
export function overridableFields({ delivery }: Noun): string[] {
  const names = Object.keys(delivery?.reference.properties ?? {})
  return names.filter((name) => name !== 'id' && name !== delivery?.enabled_by)
}

/** Gives up these fields; the clusters are still to be added to it. */
export function dropOperation(
  { name }: Pick<Noun, 'name'>,
  id: string,
  fields: readonly string[],
): JsonObject {
  const nothing = Object.fromEntries(fields.map((field) => [field, null]))
  return { op: 'assign', type: name, merge: true, ref: { id, ...nothing } }
}

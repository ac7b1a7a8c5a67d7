// A page of what clusters set themselves, and who has set it.
import type { ShownOwnValue } from '../../api/own-values-schema.ts'
import type { Steps } from '../../base/steps.ts'
import { type OwnKind, type OwnValue, ownValuesOf } from '../../domain/delivery/own-values.ts'
import type { View } from '../../domain/documents/view.ts'
import type { Document, Types } from '../../domain/types/resource-type.ts'
import { settersOf } from '../../engine/audit.ts'
import type { Past } from '../../engine/past.ts'
import { environmentOf } from './list-status.ts'

export interface OverridesQuery {
  matches(cluster: Document, view: View): boolean
  readonly type: string | undefined
  readonly id: string | undefined
  readonly kind: OwnKind | undefined
  readonly redundant: boolean | undefined
  readonly limit: number
  readonly offset: number
}

interface Line {
  readonly cluster: string
  readonly environment: string | null
  readonly own: OwnValue
}

export interface OverridesPage {
  readonly lines: readonly Line[]
  /** On all pages. */
  readonly total: number
  readonly revision: number
}

export function* listOverrides(types: Types, view: View, query: OverridesQuery): Steps<OverridesPage> {
  const { type, id, kind, redundant, limit, offset } = query
  const lines: Line[] = []
  let total = 0
  for (const entry of view.all(types.cluster.type.name)) {
    yield
    if (!query.matches(entry.document, view)) continue
    const environment = environmentOf(types.cluster, entry)
    for (const own of ownValuesOf(types, view, entry.document)) {
      if (type !== undefined && own.type !== type) continue
      if (id !== undefined && own.id !== id) continue
      if (kind !== undefined && own.kind !== kind) continue
      if (redundant !== undefined && own.redundant !== redundant) continue
      if (total >= offset && total < offset + limit) lines.push({ cluster: entry.id, environment, own })
      total++
    }
  }
  return { lines, total, revision: view.revision }
}

export function shownLine({ cluster, environment, own }: Line): ShownOwnValue {
  const { type, id, kind, field, value, catalog, redundant } = own
  return { cluster, environment, type, id, kind, field, value, catalog, redundant }
}

/** The lines with the revision that set each, as the log knows it. */
export async function explainLines(
  types: Types,
  past: Past,
  { lines, revision }: OverridesPage,
): Promise<ShownOwnValue[]> {
  const { name } = types.cluster.type
  const shown: ShownOwnValue[] = []
  for (const [cluster, own] of Map.groupBy(lines, (line) => line.cluster)) {
    const readers = own.map((line) => line.own.read)
    const setters = await settersOf(past, { type: name, id: cluster }, readers, revision)
    for (const [i, line] of own.entries()) {
      const { revision: set = null, time = null, actor = null, message = null } = setters[i] ?? {}
      shown.push({ ...shownLine(line), revision: set, time, actor, message })
    }
  }
  return shown
}

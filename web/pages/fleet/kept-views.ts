// What somebody keeps of the fleet in this browser: favourite clusters, views by name, and columns to leave out.
import { isObject, type Json } from '../../../src/base/json.ts'
import { filterOf, parseFleetSearch } from '../../api/fleet-search.ts'
import type { FleetFilter } from '../../api/queries.ts'
import { createKept } from '../../session/kept.ts'

export interface SavedView {
  readonly name: string
  readonly filter: FleetFilter
}

export const favourites = createKept('favourites', textsIn)
export const hiddenColumns = createKept('hidden-columns', textsIn)
export const savedViews = createKept('views', (stored): readonly SavedView[] =>
  listIn(stored).flatMap((view) =>
    isObject(view) && typeof view.name === 'string' && isObject(view.filter)
      ? [{ name: view.name, filter: filterOf(parseFleetSearch(view.filter)) }]
      : [],
  ),
)

function listIn(stored: Json | undefined): readonly Json[] {
  return Array.isArray(stored) ? stored : []
}

function textsIn(stored: Json | undefined): readonly string[] {
  return listIn(stored).filter((each) => typeof each === 'string')
}

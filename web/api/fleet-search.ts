// The filters of the fleet in the URL, shared by the list and by a cluster that was opened from it.
import type { FleetFilter } from './queries.ts'

export interface FleetSearch extends FleetFilter {
  /** The place in the filtered list that a cluster was opened from. */
  readonly at?: number | undefined
  /** Environments and states instead of the list. */
  readonly map?: true | undefined
  /** The label that the map splits environments by. */
  readonly by?: string | undefined
}

const NAMES = ['q', 'selector', 'environment', 'contact', 'delivery', 'health', 'sort'] as const

/** What anybody may type into the address bar; the service checks the values. */
export function parseFleetSearch(search: Readonly<Record<string, unknown>>): FleetSearch {
  const given = NAMES.filter((name) => search[name] !== undefined && search[name] !== '')
  const at = Number(search.at)
  return {
    ...Object.fromEntries(given.map((name) => [name, String(search[name])])),
    ...(search.at !== undefined && Number.isInteger(at) && at >= 0 && { at }),
    ...(String(search.map) === 'true' && { map: true as const }),
    ...(search.by !== undefined && search.by !== '' && { by: String(search.by) }),
  }
}

/** Without what is no filter, and without names that say nothing. */
export function filterOf(search: FleetSearch): FleetFilter {
  return Object.fromEntries(
    NAMES.flatMap((name) => (search[name] === undefined ? [] : [[name, search[name]]])),
  )
}

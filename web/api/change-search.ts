// The filters of the timeline of changes in the URL, and the page of one change's documents.
import { REVISION_FILTERS, type RevisionFilter } from './queries.ts'

type Search = Readonly<Record<string, unknown>>

/** What anybody may type into the address bar; the service checks the values. */
export function parseChangeSearch(search: Search): RevisionFilter {
  const given = REVISION_FILTERS.filter((name) => search[name] !== undefined && search[name] !== '')
  return Object.fromEntries(given.map((name) => [name, String(search[name])]))
}

/** The place of the first document that is shown. */
export interface ChangePageSearch {
  readonly offset?: number
}

export function parseChangePage({ offset }: Search): ChangePageSearch {
  const place = Number(offset)
  return Number.isInteger(place) && place > 0 ? { offset: place } : {}
}

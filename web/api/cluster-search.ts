// What the page of a cluster shows, in the URL, beside the filtered list that it was opened from.
import { type FleetSearch, parseFleetSearch } from './fleet-search.ts'

export const CLUSTER_VIEWS = ['status', 'inputs', 'values', 'compare', 'setup'] as const
export type ClusterView = (typeof CLUSTER_VIEWS)[number]

export interface ClusterSearch extends FleetSearch {
  /** The status where it is left out. */
  readonly view?: ClusterView
  /** The endpoint whose inputs are shown; the first one by default. */
  readonly endpoint?: string
  /** A revision or a time, for inputs as they were and for comparing with then. */
  readonly past?: string
  /** The cluster to compare with. */
  readonly other?: string
}

export function parseClusterSearch(search: Readonly<Record<string, unknown>>): ClusterSearch {
  const view = CLUSTER_VIEWS.find((each) => each === search.view)
  const texts = (['endpoint', 'past', 'other'] as const).filter((name) => search[name] !== undefined)
  return {
    ...parseFleetSearch(search),
    ...(view && view !== 'status' && { view }),
    ...Object.fromEntries(
      texts.map((name) => [name, String(search[name])]).filter(([, text]) => text !== ''),
    ),
  }
}

// What the page of a cluster can show, as links that keep the filtered list it was opened from.
import { getRouteApi, Link } from '@tanstack/react-router'
import { CLUSTER_VIEWS, type ClusterSearch, type ClusterView } from '../../api/cluster-search.ts'
import { parseFleetSearch } from '../../api/fleet-search.ts'
import classes from './cluster-views.module.css'

const NAMES: Readonly<Record<ClusterView, string>> = {
  status: 'Status',
  inputs: 'Inputs',
  values: 'Own values',
  compare: 'Compare',
  setup: 'Setup and hold',
}
const route = getRouteApi('/clusters/$cluster')

export function ClusterViews() {
  const params = route.useParams()
  const search = route.useSearch()
  const { view: shown = 'status' } = search
  const kept = parseFleetSearch({ ...search })
  const searchOf = (view: ClusterView): ClusterSearch => (view === 'status' ? kept : { ...kept, view })
  return (
    <nav className={classes.views} aria-label="Views of the cluster">
      {CLUSTER_VIEWS.map((view) => (
        <Link
          key={view}
          to="/clusters/$cluster"
          params={params}
          search={searchOf(view)}
          className={classes.view}
          activeOptions={{ exact: true, includeSearch: true }}
          aria-current={view === shown ? 'page' : undefined}
        >
          {NAMES[view]}
        </Link>
      ))}
    </nav>
  )
}

// The way to a cluster, with the filtered list that it was found in, if any.
import { Link } from '@tanstack/react-router'
import type { FleetSearch } from '../api/fleet-search.ts'
import classes from './cluster-link.module.css'

export function ClusterLink({
  cluster,
  search = {},
  text = cluster,
}: {
  readonly cluster: string
  readonly search?: FleetSearch
  readonly text?: string
}) {
  return (
    <Link to="/clusters/$cluster" params={{ cluster }} search={search} className={classes.link}>
      {text}
    </Link>
  )
}

// How many clusters are in each state: one bar, and a legend whose entries lead to exactly those clusters.
import { Link } from '@tanstack/react-router'
import type { FleetSearch } from '../api/fleet-search.ts'
import classes from './state-bar.module.css'
import { STATES, type State } from './state-words.ts'

interface StateBarProps {
  readonly column: 'contact' | 'delivery' | 'health'
  readonly counts: Readonly<Partial<Record<State, number>>>
  /** The filter that the counts are of. */
  readonly search?: FleetSearch
}

export function StateBar({ column, counts, search = {} }: StateBarProps) {
  const shown = Object.entries(counts).filter(([, count]) => count > 0) as [State, number][]
  const total = shown.reduce((sum, [, count]) => sum + count, 0)
  return (
    <div className={classes.row}>
      <div className={classes.name}>{column}</div>
      <div className={classes.bar} aria-hidden="true">
        {shown.map(([state, count]) => (
          <div key={state} data-tone={STATES[state].tone} style={{ flexGrow: count / total }} />
        ))}
      </div>
      <ul className={classes.legend}>
        {shown.map(([state, count]) => (
          <li key={state} title={STATES[state].meaning}>
            <Link
              to="/fleet"
              search={{ ...search, [column]: state }}
              className={classes.entry}
              data-tone={STATES[state].tone}
            >
              <b>{count.toLocaleString('en')}</b> {state}
            </Link>
          </li>
        ))}
      </ul>
    </div>
  )
}

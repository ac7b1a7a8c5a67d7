// How many clusters are in each state: one bar, and a legend whose entries lead to exactly those clusters.
import { Link } from '@tanstack/react-router'
import type { FleetSearch } from '../api/fleet-search.ts'
import classes from './state-bar.module.css'
import { lastKnown, STATES, type State } from './state-words.ts'

interface StateBarProps {
  readonly column: 'contact' | 'delivery' | 'health'
  readonly counts: Readonly<Partial<Record<State, number>>>
  /** How many of them are of clusters that are silent. */
  readonly past?: Readonly<Partial<Record<State, number>>>
  /** The filter that the counts are of. */
  readonly search?: FleetSearch
}

export function StateBar({ column, counts, past = {}, search = {} }: StateBarProps) {
  const shown = (Object.entries(counts) as [State, number][])
    .flatMap(([state, count]) => {
      const silent = past[state] ?? 0
      return [
        { state, count: count - silent, words: state, ...STATES[state] },
        { state, count: silent, words: `${state}, now silent`, ...lastKnown(STATES[state]) },
      ]
    })
    .filter(({ count }) => count > 0)
  const total = shown.reduce((sum, { count }) => sum + count, 0)
  return (
    <div className={classes.row}>
      <div className={classes.name}>{column}</div>
      <div className={classes.bar} aria-hidden="true">
        {shown.map(({ words, tone, count }) => (
          <div key={words} data-tone={tone} style={{ flexGrow: count / total }} />
        ))}
      </div>
      <ul className={classes.legend}>
        {shown.map(({ state, words, tone, meaning, count }) => (
          <li key={words} title={meaning}>
            <Link
              to="/fleet"
              search={{ ...search, [column]: state }}
              className={classes.entry}
              data-tone={tone}
            >
              <b>{count.toLocaleString('en')}</b> {words}
            </Link>
          </li>
        ))}
      </ul>
    </div>
  )
}

// Environments and states: how many clusters of each environment are in each state, and the way to exactly those.
import { Link } from '@tanstack/react-router'
import type { FleetStatus } from '../../../src/api/status-schema.ts'
import type { FleetFilter } from '../../api/queries.ts'
import { STATES, type State } from '../../parts/state-words.ts'
import classes from './heat-map.module.css'

const COLUMNS = ['contact', 'delivery', 'health'] as const

interface HeatMapProps {
  readonly status: FleetStatus
  /** That the counts are of. */
  readonly filter: FleetFilter
}

export function HeatMap({ status: { counts, environments }, filter }: HeatMapProps) {
  const columns = COLUMNS.map((column) => ({
    column,
    states: (Object.keys(counts[column]) as State[]).filter((state) => countOf(counts[column], state) > 0),
  }))
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the arrow keys
    <section className={classes.scroller} aria-label="Environments and states" tabIndex={0}>
      <table className={classes.table}>
        <thead>
          <tr>
            <th rowSpan={2} scope="col">
              Environment
            </th>
            {columns.map(({ column, states }) => (
              <th key={column} colSpan={states.length} scope="colgroup">
                {column}
              </th>
            ))}
          </tr>
          <tr>
            {columns.flatMap(({ column, states }) =>
              states.map((state) => (
                <th key={`${column} ${state}`} scope="col" title={STATES[state].meaning}>
                  {state}
                </th>
              )),
            )}
          </tr>
        </thead>
        <tbody>
          {Object.entries(environments).map(([environment, found]) => (
            <tr key={environment}>
              <th scope="row">{environment || 'none'}</th>
              {columns.flatMap(({ column, states }) =>
                states.map((state) => (
                  <Cell
                    key={`${column} ${state}`}
                    state={state}
                    count={countOf(found[column], state)}
                    total={Object.values(found[column]).reduce((sum, count) => sum + count, 0)}
                    search={environment === '' ? undefined : { ...filter, environment, [column]: state }}
                  />
                )),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

interface CellProps {
  readonly state: State
  readonly count: number
  readonly total: number
  /** Undefined where no filter means it: of clusters without an environment. */
  readonly search: FleetFilter | undefined
}

/** The larger its share of the environment, the fuller its colour. */
function Cell({ state, count, total, search }: CellProps) {
  if (count === 0) return <td className={classes.none}>0</td>
  const { tone } = STATES[state]
  const share = `${Math.ceil((count / total) * 100)}%`
  return (
    <td
      data-tone={tone}
      style={{ background: `color-mix(in srgb, var(--tone-${tone}-back) ${share}, var(--panel))` }}
    >
      {search ? (
        <Link to="/fleet" search={search} className={classes.count}>
          {count.toLocaleString('en')}
        </Link>
      ) : (
        <span className={classes.count}>{count.toLocaleString('en')}</span>
      )}
    </td>
  )
}

function countOf(counts: Readonly<Partial<Record<State, number>>>, state: State): number {
  return counts[state] ?? 0
}

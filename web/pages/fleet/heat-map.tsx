// Environments and states: how many clusters of each environment, and of each value of a label in it, are in each state.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { FleetStatus } from '../../../src/api/status-schema.ts'
import type { StatusCounts } from '../../../src/domain/status/status-tally.ts'
import { type FleetFilter, queries } from '../../api/queries.ts'
import { lastKnown, STATES, type State } from '../../parts/state-words.ts'
import { TextFilter } from '../../parts/text-filter.tsx'
import classes from './heat-map.module.css'

const COLUMNS = ['contact', 'delivery', 'health'] as const

interface HeatMapProps {
  readonly status: FleetStatus
  /** That the counts are of. */
  readonly filter: FleetFilter
  /** The label that environments are split by. */
  readonly by: string | undefined
  readonly onSplit: (by: string | undefined) => void
}

export function HeatMap({ status: { counts, environments }, filter, by, onSplit }: HeatMapProps) {
  const split = useQuery({ ...queries.fleetGroups(filter, by ?? ''), enabled: by !== undefined })
  const groups = by === undefined ? undefined : split.data?.groups
  const columns = COLUMNS.map((column) => ({
    column,
    states: (Object.keys(counts[column]) as State[]).filter((state) => countOf(counts[column], state) > 0),
  }))
  const rows: readonly Row[] =
    groups ??
    Object.entries(environments).map(([environment, found]) => ({
      environment,
      value: undefined,
      counts: found,
    }))
  return (
    <div className={classes.map}>
      <div className={classes.split}>
        <TextFilter label="Split by label" placeholder="region" value={by} onChange={onSplit} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the arrow keys */}
      <section className={classes.scroller} aria-label="Environments and states" tabIndex={0}>
        <table className={classes.table}>
          <thead>
            <tr>
              <th rowSpan={2} scope="col">
                Environment
              </th>
              {groups && (
                <th rowSpan={2} scope="col">
                  {by}
                </th>
              )}
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
            {rows.map(({ environment, value, counts: found }) => (
              <tr key={`${environment} ${value}`}>
                <th scope="row">{environment || 'none'}</th>
                {groups && <th scope="row">{value || 'none'}</th>}
                {columns.flatMap(({ column, states }) =>
                  states.map((state) => (
                    <Cell
                      key={`${column} ${state}`}
                      state={state}
                      count={countOf(found[column], state)}
                      silent={column === 'delivery' ? countOf(found.past, state) : 0}
                      total={Object.values(found[column]).reduce((sum, count) => sum + count, 0)}
                      search={searchOf(
                        filter,
                        environment,
                        value === undefined ? undefined : [by ?? '', value],
                        column,
                        state,
                      )}
                    />
                  )),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </div>
  )
}

interface Row {
  readonly environment: string
  /** Of the label; an empty text where it is missing. */
  readonly value: string | undefined
  readonly counts: StatusCounts
}

/** Undefined where no filter means exactly these: of clusters without an environment. */
function searchOf(
  filter: FleetFilter,
  environment: string,
  label: readonly [name: string, value: string] | undefined,
  column: (typeof COLUMNS)[number],
  state: State,
): FleetFilter | undefined {
  if (environment === '') return undefined
  const [name = '', value = ''] = label ?? []
  const own = label && (value === '' ? `!${name}` : `${name}=${value}`)
  const selector = [filter.selector, own].filter(Boolean).join(',')
  return { ...filter, ...(selector && { selector }), environment, [column]: state }
}

interface CellProps {
  readonly state: State
  readonly count: number
  /** How many of them are of clusters that are silent: no colour says that all is well there. */
  readonly silent: number
  readonly total: number
  /** Undefined where no filter means it: of clusters without an environment. */
  readonly search: FleetFilter | undefined
}

/** The larger its share of the environment, the fuller its colour. */
function Cell({ state, count, silent, total, search }: CellProps) {
  if (count === 0) return <td className={classes.none}>0</td>
  const isPast = silent === count
  const { tone } = isPast ? lastKnown(STATES[state]) : STATES[state]
  const shown = isPast || tone !== 'good' ? count : count - silent
  const share = `${Math.ceil((shown / total) * 100)}%`
  return (
    <td
      data-tone={tone}
      title={
        silent > 0
          ? `${silent.toLocaleString('en')} of them silent: as when they were last heard of`
          : undefined
      }
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

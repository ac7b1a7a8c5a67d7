// The words that the list can be narrowed to, each with how many clusters would be left: other filters count, its own does not.
import { useQuery } from '@tanstack/react-query'
import type { FleetStatus } from '../../../src/api/status-schema.ts'
import { FLEET_PAGE, type FleetFilter, queries } from '../../api/queries.ts'
import { STATES, type State } from '../../parts/state-words.ts'
import classes from './facets.module.css'

const COLUMNS = ['contact', 'delivery', 'health', 'environment'] as const
type Column = (typeof COLUMNS)[number]

interface FacetsProps {
  readonly filter: FleetFilter
  readonly onChange: (next: FleetFilter) => void
}

export function Facets({ filter, onChange }: FacetsProps) {
  return (
    <nav aria-label="Filters" className={classes.facets}>
      {COLUMNS.map((column) => (
        <Facet key={column} column={column} filter={filter} onChange={onChange} />
      ))}
    </nav>
  )
}

function Facet({ column, filter, onChange }: FacetsProps & { readonly column: Column }) {
  const chosen = filter[column]
  const { data } = useQuery(countedFor(filter, column))
  const counts = data ? countsOf(data, column) : []
  return (
    <fieldset className={classes.facet}>
      <legend>{column}</legend>
      {counts
        .filter(([word, count]) => count > 0 || word === chosen)
        .map(([word, count]) => (
          <button
            key={word}
            type="button"
            className={classes.word}
            aria-pressed={word === chosen}
            data-tone={column === 'environment' ? undefined : STATES[word as State].tone}
            onClick={() => onChange({ [column]: word === chosen ? undefined : word })}
          >
            <span>{word}</span>
            <span className={classes.count}>{count.toLocaleString('en')}</span>
          </button>
        ))}
    </fieldset>
  )
}

/** A word that is not chosen narrows nothing: the list itself has its counts. */
function countedFor(filter: FleetFilter, column: Column) {
  if (filter[column] === undefined) return queries.fleet(filter, { offset: 0, limit: FLEET_PAGE })
  const { sort: _, [column]: __, ...others } = filter
  return queries.fleet(others, { offset: 0, limit: 1 })
}

function countsOf({ counts, environments }: FleetStatus, column: Column): [string, number][] {
  if (column !== 'environment') return Object.entries(counts[column])
  return Object.entries(environments).map(([name, { contact }]) => [
    name,
    Object.values(contact).reduce((sum, count) => sum + count, 0),
  ])
}

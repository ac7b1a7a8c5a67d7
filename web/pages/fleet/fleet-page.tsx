// The fleet: a server-paged list of all clusters, its filters in the URL, and what each further filter would leave.
import { Button, Group, TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import type { FleetStatus, StatusLine } from '../../../src/api/status-schema.ts'
import { type FleetSearch, filterOf } from '../../api/fleet-search.ts'
import { FLEET_PAGE as PAGE_SIZE, queries, STATUS_REFRESH_MS } from '../../api/queries.ts'
import { CopyAs, inShell } from '../../parts/copy-as.tsx'
import { AsOf, Loaded } from '../../parts/loaded.tsx'
import { Empty, Page } from '../../parts/page.tsx'
import { PagedTable, type Placed } from '../../parts/paged-table.tsx'
import { SelectorBox } from '../../parts/selector-box.tsx'
import { BulkActions } from './bulk-actions.tsx'
import { ColumnChoice } from './column-choice.tsx'
import { Facets } from './facets.tsx'
import { columnsFor, SORTABLE, WIDE_ONLY, WIDTHS } from './fleet-columns.tsx'
import classes from './fleet-page.module.css'
import { HeatMap } from './heat-map.tsx'
import { hiddenColumns } from './kept-views.ts'
import { SavedViews } from './saved-views.tsx'

const TYPING_MS = 250
const route = getRouteApi('/fleet')

export function FleetPage() {
  const { at: _, ...search } = route.useSearch()
  const navigate = route.useNavigate()
  const filter = filterOf(search)
  const first = useQuery(queries.fleet(filter, { offset: 0, limit: PAGE_SIZE }))
  const change = (next: Partial<FleetSearch>, replace = false): void => {
    void navigate({ search: { ...search, ...next }, replace })
  }
  const { sort = 'cluster', ...narrowing } = filter
  const kept = { ...(search.sort && { sort }), ...(search.map && { map: search.map, by: search.by }) }
  const hidden = hiddenColumns.use()
  const isNarrowed = Object.keys(narrowing).length > 0
  return (
    <Page
      title="Fleet"
      aside={
        <Group gap="sm" fz="sm" c="dimmed">
          {first.data && (
            <output>
              {first.data.total.toLocaleString('en')} {first.data.total === 1 ? 'cluster' : 'clusters'}
            </output>
          )}
          <AsOf query={first} staleAfterMs={4 * STATUS_REFRESH_MS} />
        </Group>
      }
      actions={
        <>
          {first.data && <BulkActions filter={narrowing} total={first.data.total} />}
          <Button variant="default" onClick={() => change({ map: search.map ? undefined : true })}>
            {search.map ? 'List' : 'Heat map'}
          </Button>
          <SavedViews filter={filter} />
          <ColumnChoice />
          <CopyAs call={{ method: 'GET', path: '/status', query: { ...filter } }} cli={cliOf(filter)} />
        </>
      }
    >
      <Group gap="xs" align="flex-start">
        <NameBox value={filter.q ?? ''} onChange={(q) => change({ q: q || undefined }, true)} />
        <SelectorBox
          value={filter.selector ?? ''}
          error={first.error}
          onChange={(selector) => change({ selector: selector || undefined })}
        />
        {isNarrowed && (
          <Button variant="subtle" h={36} onClick={() => void navigate({ search: kept })}>
            Clear all filters
          </Button>
        )}
      </Group>
      <div className={classes.columns}>
        <Facets filter={filter} onChange={change} />
        <div className={classes.table}>
          <Loaded query={first} lines={12}>
            {(status) =>
              status.total === 0 ? (
                <NoClusters isNarrowed={isNarrowed} />
              ) : search.map ? (
                <HeatMap status={status} filter={filter} by={search.by} onSplit={(by) => change({ by })} />
              ) : (
                <PagedTable<FleetStatus, StatusLine>
                  key={JSON.stringify(filter)}
                  label="Clusters"
                  total={status.total}
                  pageSize={PAGE_SIZE}
                  pageAt={(offset) => queries.fleet(filter, { offset, limit: PAGE_SIZE }) as never}
                  rowsOf={({ clusters }) => clusters as readonly Placed<StatusLine>[]}
                  columns={columnsFor(filter, hidden)}
                  widths={WIDTHS}
                  wideOnly={WIDE_ONLY}
                  sort={{
                    by: sort,
                    columns: SORTABLE,
                    onSort: (by) => change({ sort: by === 'cluster' ? undefined : by }),
                  }}
                />
              )
            }
          </Loaded>
        </div>
      </div>
    </Page>
  )
}

function NoClusters({ isNarrowed }: { readonly isNarrowed: boolean }) {
  if (isNarrowed) return <Empty title="No cluster fits">Take a filter away, or correct the selector.</Empty>
  return (
    <Empty title="No clusters yet">
      <code>flux-resourceset-cli cluster create --help</code> says what one needs.
    </Empty>
  )
}

function NameBox({ value, onChange }: { readonly value: string; readonly onChange: (text: string) => void }) {
  const [typed, setTyped] = useState(value)
  useEffect(() => setTyped(value), [value])
  const tell = useDebouncedCallback(onChange, TYPING_MS)
  return (
    <TextInput
      aria-label="Part of the name"
      placeholder="Part of the name"
      value={typed}
      onChange={({ currentTarget }) => {
        setTyped(currentTarget.value)
        tell(currentTarget.value.trim())
      }}
      w={180}
    />
  )
}

function cliOf({ selector, environment, contact, delivery, health, sort }: FleetSearch): string {
  const all = [
    selector,
    ...Object.entries({ environment, contact, delivery, health }).map(
      ([key, value]) => value && `${key}=${value}`,
    ),
  ].filter(Boolean)
  return [
    'cluster list',
    ...(all.length > 0 ? [`--selector ${inShell(all.join(','))}`] : []),
    ...(sort ? [`--sort ${sort}`] : []),
  ].join(' ')
}

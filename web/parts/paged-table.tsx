// A table over a list that the server pages: only rows in sight are in the page, and only their pages are asked for.
import { Text } from '@mantine/core'
import { type QueryKey, type UseQueryOptions, useQueries } from '@tanstack/react-query'
import { type ColumnDef, tableFeatures, useTable } from '@tanstack/react-table'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useMemo, useRef } from 'react'
import classes from './paged-table.module.css'
import { ProblemNotice } from './problem-notice.tsx'

/** The server filters, sorts and pages, so the table itself needs no feature. */
const FEATURES = tableFeatures({})
export type PagedColumn<R extends object> = ColumnDef<typeof FEATURES, R, unknown>

const ROW_PX = 33
const OVERSCAN = 8

interface PagedTableProps<T, R extends object> {
  readonly label: string
  readonly total: number
  readonly pageSize: number
  /** The query of the page that begins at this row. */
  readonly pageAt: (offset: number) => UseQueryOptions<T, Error, T, QueryKey>
  readonly rowsOf: (page: T) => readonly R[]
  readonly columns: PagedColumn<R>[]
  /** By column; the others share what is left. */
  readonly widths: Readonly<Record<string, string>>
  /** Columns that leave a narrow screen to the others. */
  readonly wideOnly?: readonly string[]
  readonly sort?: {
    readonly by: string
    readonly columns: readonly string[]
    readonly onSort: (id: string) => void
  }
}

/** A row with its place in the whole list, for columns that link to it. */
export type Placed<R> = R & { readonly index: number }

export function PagedTable<T, R extends object>(props: PagedTableProps<T, Placed<R>>) {
  const { label, total, columns, widths, wideOnly = [], sort } = props
  const scroller = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: total,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
  })
  const items = virtual.getVirtualItems()
  const { rows, error, refetch } = usePages(props, items[0]?.index ?? 0, items.at(-1)?.index ?? 0)
  const table = useTable({ features: FEATURES, columns, data: rows })
  const shown = new Map(table.getRowModel().rows.map((row) => [row.original.index, row]))
  const classOf = (id: string) => (wideOnly.includes(id) ? classes.wide : undefined)
  const before = items[0]?.start ?? 0
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0)
  return (
    <>
      {error && <ProblemNotice error={error} onRetry={refetch} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the arrow keys */}
      <section ref={scroller} className={classes.scroller} aria-label={label} tabIndex={0}>
        <table className={classes.table} aria-rowcount={total + 1}>
          <colgroup>
            {table.getAllColumns().map(({ id }) => (
              <col key={id} style={{ width: widths[id] }} className={classOf(id)} />
            ))}
          </colgroup>
          <thead>
            {table.getHeaderGroups().map((group) => (
              <tr key={group.id} aria-rowindex={1}>
                {group.headers.map((header) => {
                  const { id } = header.column
                  const name = <table.FlexRender header={header} />
                  const isSorted = sort?.by === id
                  return (
                    <th
                      key={id}
                      scope="col"
                      className={classOf(id)}
                      aria-sort={isSorted ? 'descending' : undefined}
                    >
                      {sort?.columns.includes(id) ? (
                        <button type="button" className={classes.sort} onClick={() => sort.onSort(id)}>
                          {name}
                          <span aria-hidden="true">{isSorted ? ' ↓' : ''}</span>
                        </button>
                      ) : (
                        name
                      )}
                    </th>
                  )
                })}
              </tr>
            ))}
          </thead>
          <tbody>
            <Space height={before} />
            {items.map(({ index }) => {
              const row = shown.get(index)
              return (
                <tr key={index} aria-rowindex={index + 2} className={classes.row}>
                  {row ? (
                    row.getAllCells().map((cell) => (
                      <td key={cell.id} className={classOf(cell.column.id)}>
                        <table.FlexRender cell={cell} />
                      </td>
                    ))
                  ) : (
                    <td colSpan={columns.length}>
                      <Text size="xs" c="dimmed">
                        reading…
                      </Text>
                    </td>
                  )}
                </tr>
              )
            })}
            <Space height={after} />
          </tbody>
        </table>
      </section>
    </>
  )
}

/** Stands for the rows above or below those in sight. */
function Space({ height }: { readonly height: number }) {
  if (height <= 0) return null
  return (
    <tr>
      <td style={{ height, padding: 0 }} />
    </tr>
  )
}

/** The rows from `first` to `last` that have been read, and the first failure to read any. */
function usePages<T, R extends object>(
  { pageAt, pageSize, rowsOf }: PagedTableProps<T, Placed<R>>,
  first: number,
  last: number,
) {
  const firstPage = Math.floor(first / pageSize)
  const lastPage = Math.floor(last / pageSize)
  const offsets = Array.from({ length: lastPage - firstPage + 1 }, (_, page) => (firstPage + page) * pageSize)
  const pages = useQueries({ queries: offsets.map(pageAt) })
  const read = pages.map(({ data, isPlaceholderData }) => (isPlaceholderData ? undefined : data))
  // biome-ignore lint/correctness/useExhaustiveDependencies: the pages themselves, not the list that is made anew each time
  const rows = useMemo(
    () =>
      read.flatMap((page, p) =>
        page === undefined
          ? []
          : rowsOf(page).map((row, i) => ({ ...row, index: (offsets[p] as number) + i }) as Placed<R>),
      ),
    [firstPage, lastPage, ...read],
  )
  const failed = pages.find(({ error }) => error)
  return { rows, error: failed?.error, refetch: () => void failed?.refetch() }
}

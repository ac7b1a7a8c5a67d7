// A plain table of few rows. Where the screen is narrow, a row of many columns is a list of its cells, each below its name.
import type { ReactNode } from 'react'
import classes from './facts.module.css'

interface FactsProps {
  readonly label: string
  readonly head: readonly string[]
  /** The cells of each row; the first one names the row. */
  readonly rows: readonly { readonly id: string; readonly cells: readonly ReactNode[] }[]
}

/** Tables of more columns have no room beside each other on a narrow screen. */
const NARROW_COLUMNS = 3

export function Facts({ label, head, rows }: FactsProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the arrow keys
    <section className={classes.scroller} aria-label={label} tabIndex={0}>
      <table className={classes.table} data-stacks={head.length > NARROW_COLUMNS || undefined}>
        <thead>
          <tr>
            {head.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, cells: [first, ...rest] }) => (
            <tr key={id}>
              <th scope="row">{first}</th>
              {rest.map((cell, i) => (
                <td key={head[i + 1]} data-head={head[i + 1]}>
                  <div>{cell}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

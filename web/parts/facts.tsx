// A plain table of few rows that scrolls sideways where the screen is narrow.
import type { ReactNode } from 'react'
import classes from './facts.module.css'

interface FactsProps {
  readonly label: string
  readonly head: readonly string[]
  /** The cells of each row; the first one names the row. */
  readonly rows: readonly { readonly id: string; readonly cells: readonly ReactNode[] }[]
}

export function Facts({ label, head, rows }: FactsProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the arrow keys
    <section className={classes.scroller} aria-label={label} tabIndex={0}>
      <table className={classes.table}>
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
                <td key={head[i + 1]}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

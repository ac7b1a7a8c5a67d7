// Rows in aligned columns, fitted to the terminal.
import { cut, widthOf } from './terminal.ts'

export interface TableOptions {
  /** Columns of the terminal; without it nothing is cut. */
  readonly width?: number | undefined
  readonly headers?: boolean
}

const GAP = '  '
const NARROWEST = 6

export function renderTable(
  headers: readonly string[],
  rows: readonly (readonly string[])[],
  { width, headers: withHeaders = true }: TableOptions = {},
): string {
  const lines = withHeaders ? [headers, ...rows] : rows
  if (lines.length === 0) return ''
  const natural = headers.map((_header, i) =>
    lines.reduce((widest, cells) => Math.max(widest, widthOf(cells[i] ?? '')), 0),
  )
  const widths = width === undefined ? natural : fit(natural, width)
  return lines.map((cells) => `${renderLine(cells, widths)}\n`).join('')
}

function renderLine(cells: readonly string[], widths: readonly number[]): string {
  return widths
    .map((width, i) => {
      const cell = cut(cells[i] ?? '', width)
      return i === widths.length - 1 ? cell : cell + ' '.repeat(width - widthOf(cell))
    })
    .join(GAP)
    .trimEnd()
}

/** Takes from the widest columns first; when all are at their narrowest, the last ones go. */
function fit(natural: readonly number[], width: number): number[] {
  const widths = [...natural]
  const total = (): number => widths.reduce((sum, each) => sum + each, GAP.length * (widths.length - 1))
  while (widths.length > 1 && total() > width) {
    const widest = Math.max(...widths)
    if (widest <= NARROWEST) {
      widths.pop()
      continue
    }
    const second = Math.max(NARROWEST, ...widths.filter((each) => each < widest))
    const same = widths.filter((each) => each === widest).length
    const excess = Math.ceil((total() - width) / same)
    const next = Math.max(second, widest - excess)
    for (const [i, each] of widths.entries()) if (each === widest) widths[i] = next
  }
  if (widths.length === 1) widths[0] = Math.min(widths[0] as number, width)
  return widths
}

// Rows in aligned columns, fitted to the terminal.
import { cut, widthOf } from './terminal.ts'

export interface TableOptions {
  /** Columns of the terminal; without it nothing is cut. */
  readonly width?: number | undefined
  readonly headers?: boolean
}

const GAP = '  '
/** The least width of a column that is cut. */
const NARROWEST = 12

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

/** Fits columns into a width: drops the last ones until the others have room, then cuts the widest. The first is kept. */
function fit(natural: readonly number[], width: number): number[] {
  const [first = 0, ...others] = natural
  const roomFor = (columns: readonly number[]): number => width - first - GAP.length * columns.length
  const least = (columns: readonly number[]): number =>
    columns.reduce((sum, each) => sum + Math.min(each, NARROWEST), 0)
  while (others.length > 0 && least(others) > roomFor(others)) others.pop()
  return [Math.min(first, width), ...(others.length > 0 ? shrink(others, roomFor(others)) : [])]
}

/** Cuts the widest columns down to the next widest, until all fit. */
function shrink(natural: readonly number[], room: number): number[] {
  const widths = [...natural]
  for (;;) {
    const excess = widths.reduce((sum, each) => sum + each, -room)
    if (excess <= 0) return widths
    const widest = Math.max(...widths)
    const next = Math.max(NARROWEST, ...widths.filter((each) => each < widest))
    const same = widths.filter((each) => each === widest).length
    const target = Math.max(next, widest - Math.ceil(excess / same))
    for (const [i, each] of widths.entries()) if (each === widest) widths[i] = target
  }
}

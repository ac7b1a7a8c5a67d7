// Rows in aligned columns, fitted to the terminal.
import { cut, cutStart, widthOf } from './terminal.ts'

export interface TableOptions {
  /** Columns of the terminal; without it nothing is cut. */
  readonly width?: number | undefined
  readonly headers?: boolean
  /** Told of the columns that there was no room for. */
  onHidden?(headers: readonly string[]): void
}

const GAP = '  '
/** The least width of a column that is cut. */
const NARROWEST = 12
/** What says nothing when it is cut. */
const WHOLE = /^(?:AGE|CHANGES|CLUSTERS|ENV|EXPIRES|REVISION|SEEN|TIME|UPDATED)$/
/** Where the end says more than the beginning. */
const CUT_AT_START = /PATH$/

export function renderTable(
  headers: readonly string[],
  rows: readonly (readonly string[])[],
  { width, headers: withHeaders = true, onHidden }: TableOptions = {},
): string {
  const lines = withHeaders ? [headers, ...rows] : rows
  if (lines.length === 0) return ''
  const natural = headers.map((_header, i) =>
    lines.reduce((widest, cells) => Math.max(widest, widthOf(cells[i] ?? '')), 0),
  )
  const least = natural.map((each, i) => (WHOLE.test(headers[i] ?? '') ? each : Math.min(each, NARROWEST)))
  const widths = width === undefined ? natural : fit(natural, least, width)
  const hidden = headers.slice(widths.length)
  if (hidden.length > 0) onHidden?.(hidden)
  const cuts = headers.map((header) => (CUT_AT_START.test(header) ? cutStart : cut))
  return lines.map((cells) => `${renderLine(cells, widths, cuts)}\n`).join('')
}

function renderLine(
  cells: readonly string[],
  widths: readonly number[],
  cuts: readonly (typeof cut)[],
): string {
  return widths
    .map((width, i) => {
      const cell = (cuts[i] ?? cut)(cells[i] ?? '', width)
      return i === widths.length - 1 ? cell : cell + ' '.repeat(width - widthOf(cell))
    })
    .join(GAP)
    .trimEnd()
}

/** Fits columns into a width: drops the last ones until the others have room, then cuts the widest. The first is kept. */
function fit(natural: readonly number[], least: readonly number[], width: number): number[] {
  const [first = 0, ...others] = natural
  const room = (): number => width - first - GAP.length * others.length
  const needed = (): number => least.slice(1, others.length + 1).reduce((sum, each) => sum + each, 0)
  while (others.length > 0 && needed() > room()) others.pop()
  return [Math.min(first, width), ...(others.length > 0 ? shrink(others, least.slice(1), room()) : [])]
}

/** Cuts the widest columns down to the next widest, until all fit. */
function shrink(natural: readonly number[], least: readonly number[], room: number): number[] {
  const widths = [...natural]
  for (;;) {
    const excess = widths.reduce((sum, each) => sum + each, -room)
    if (excess <= 0) return widths
    const canShrink = widths.map((each, i) => each > (least[i] ?? 0))
    const widest = Math.max(...widths.filter((_each, i) => canShrink[i]))
    const same = widths.flatMap((each, i) => (canShrink[i] && each === widest ? [i] : []))
    const next = Math.max(0, ...widths.filter((each, i) => canShrink[i] && each < widest))
    const target = Math.max(next, widest - Math.ceil(excess / same.length))
    for (const i of same) widths[i] = Math.max(target, least[i] ?? 0)
  }
}

// A text on the terminal that is drawn anew in the same place.
import { stripVTControlCharacters } from 'node:util'
import { type Look, lookOf } from './print.ts'
import { hasCursor, type Terminal, widthOf } from './terminal.ts'

export interface Screen {
  show(render: (look: Look) => string): void
}

/** Undefined where stdout has no cursor to move. */
export function openScreen(terminal: Terminal): Screen | undefined {
  const { stdout } = terminal
  if (!hasCursor(terminal, stdout)) return undefined
  let drawn = 0
  return {
    show(render) {
      const lines = render(lookOf(terminal, { wide: false, headers: true }))
        .trimEnd()
        .split('\n')
      const { shown, rows } = fitting(lines, stdout.columns || 80, (stdout.rows || 24) - 1)
      const up = drawn > 0 ? `\u001b[${drawn}A` : ''
      stdout.write(`${up}\r\u001b[J${shown.map((line) => `${line}\n`).join('')}`)
      drawn = rows
    },
  }
}

/** The first lines, as many as there are rows for: what has scrolled off the top cannot be drawn over. */
function fitting(
  lines: readonly string[],
  columns: number,
  most: number,
): { readonly shown: readonly string[]; readonly rows: number } {
  let rows = 0
  for (const [i, line] of lines.entries()) {
    const taken = Math.max(1, Math.ceil(widthOf(stripVTControlCharacters(line)) / columns))
    if (rows + taken > most) return { shown: lines.slice(0, i), rows }
    rows += taken
  }
  return { shown: lines, rows }
}

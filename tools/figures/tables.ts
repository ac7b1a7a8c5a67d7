// docs/figures.json: what the benchmarks measured, one table for each kind of run. Pages show nothing that is not in it.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')
const FILE = join(ROOT, 'docs/figures.json')

export interface Table {
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

export type Tables = Readonly<Record<string, Table>>

export function loadTables(): Tables {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Tables
}

/** Rows that were measured take the place of those with the same first cells; a run of one part keeps the other rows. */
export function withMeasured(old: Table | undefined, measured: Table, keys: number): Table {
  const keyOf = (row: readonly string[]): string => row.slice(0, keys).join('\n')
  const fresh = new Map(measured.rows.map((row) => [keyOf(row), row]))
  const kept = (old?.rows ?? []).map((row) => {
    const found = fresh.get(keyOf(row))
    fresh.delete(keyOf(row))
    return found ?? row
  })
  return { head: measured.head, rows: [...kept, ...fresh.values()] }
}

/** Without `keys` the table is replaced as a whole. */
export function saveTable(name: string, measured: Table, keys?: number): void {
  const tables = loadTables()
  const table = keys === undefined ? measured : withMeasured(tables[name], measured, keys)
  const sorted = Object.entries({ ...tables, [name]: table }).sort(([a], [b]) => (a < b ? -1 : 1))
  writeFileSync(FILE, `${linesOf(sorted).join('\n')}\n`)
}

/** A line for each row, so that changes of figures can be read. */
function linesOf(tables: readonly (readonly [string, Table])[]): string[] {
  const lines = tables.map(([name, { head, rows }]) => {
    const written = rows.map((row) => `      ${JSON.stringify(row)}`).join(',\n')
    return `  ${JSON.stringify(name)}: {\n    "head": ${JSON.stringify(head)},\n    "rows": [\n${written}\n    ]\n  }`
  })
  return ['{', lines.join(',\n'), '}']
}

export function markdownOf({ head, rows }: Table): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const lines = [
    line(head),
    line(
      head.map((_, i) =>
        i > 0 && rows.every((row) => /^(?:[\d≤]|not measured|$)/.test(row[i] ?? '')) ? '---:' : '---',
      ),
    ),
    ...rows.map(line),
  ]
  return lines.join('\n').replaceAll(/ {2,}\|/g, ' |')
}

/** The cell of the row that begins with these cells; undefined when it was not measured. */
export function findCell(
  tables: Tables,
  name: string,
  row: readonly string[],
  column: string,
): string | undefined {
  const table = tables[name]
  const found = table?.rows.find((cells) => row.every((cell, i) => cells[i] === cell))
  return found?.[table?.head.indexOf(column) ?? -1]
}

export function cellOf(tables: Tables, name: string, row: readonly string[], column: string): string {
  const cell = findCell(tables, name, row, column)
  if (cell === undefined)
    throw new Error(`docs/figures.json has no ${column} of ${row.join(', ')} in ${name}`)
  return cell
}

/** `1,810 MB` is 1810. */
export function numberOf(cell: string): number {
  const number = Number.parseFloat(cell.replaceAll(',', ''))
  if (Number.isNaN(number)) throw new Error(`${cell} is no number`)
  return number
}

// Renders a result in the format of --output.
import { usage } from '../failure.ts'
import { renderTable } from './table.ts'
import { type Paint, painter, plain, type Terminal } from './terminal.ts'

export type Format =
  | { readonly kind: 'human'; readonly wide: boolean }
  | { readonly kind: 'json' | 'yaml' | 'name' | 'csv' }
  | { readonly kind: 'jsonpath' | 'custom-columns'; readonly render: (value: unknown) => string }

export const FORMATS = [
  ...['table', 'wide', 'json', 'yaml', 'name', 'csv'],
  ...['jsonpath=TEMPLATE', 'custom-columns=NAME:PATH,…'],
]

export interface Printable {
  /** The value for JSON, YAML and JSONPath: mostly a document of the API. */
  readonly value: unknown
  /** The value for YAML, where that is another one: documents with their type, as files hold them. */
  readonly file?: unknown
  /** Renders text for people. */
  human(look: Look): string
  /** Whether a text that is longer than the terminal goes through a pager. */
  readonly isPaged?: boolean
  /** The names for -o name: `type/id`. */
  readonly names?: readonly string[]
}

/** How text for people is laid out. */
export interface Look {
  readonly wide: boolean
  readonly headers: boolean
  /** Columns of the terminal; undefined where nothing is cut. */
  readonly width: number | undefined
  /** Whether a person sees it at once. */
  readonly isTerminal: boolean
  readonly paint: Paint
  table(headers: readonly string[], rows: readonly (readonly string[])[]): string
  /** Renders names with their values, one on each line. */
  pairs(rows: readonly (readonly [name: string, value: string])[]): string
}

/** Parses --output. Commands do so first: a change must not be made and then fail for its output format. */
export async function parseFormat(given: string | undefined): Promise<Format> {
  // -o=yaml, as with kubectl.
  const text = given?.replace(/^=/, '')
  if (text === undefined || text === 'table') return { kind: 'human', wide: false }
  if (text === 'wide') return { kind: 'human', wide: true }
  if (text === 'json' || text === 'yaml' || text === 'name' || text === 'csv') return { kind: text }
  const template = /^jsonpath=([\s\S]+)$/.exec(text)?.[1]
  if (template !== undefined) {
    const { compileJsonpath } = await import('./jsonpath.ts')
    return { kind: 'jsonpath', render: compileJsonpath(template) }
  }
  const columns = /^custom-columns=([\s\S]+)$/.exec(text)?.[1]
  if (columns !== undefined) {
    const { compileColumns } = await import('./custom-columns.ts')
    return { kind: 'custom-columns', render: compileColumns(columns) }
  }
  throw usage(`--output must be one of ${FORMATS.join(', ')}, not "${text}"`)
}

/** Throws for -o name, where a result has no names. */
export function refuseNameOutput({ format }: { readonly format: Format }): void {
  if (format.kind === 'name') throw usage('there are no names to print here: use another --output')
}

interface LookOptions {
  readonly wide: boolean
  readonly headers: boolean
  onHidden?(headers: readonly string[]): void
}

export function lookOf(terminal: Terminal, options: LookOptions): Look {
  const { stdout } = terminal
  const width = stdout.isTTY && !options.wide ? stdout.columns || 80 : undefined
  const clean = (cells: readonly string[]): string[] => cells.map(plain)
  return {
    wide: options.wide,
    headers: options.headers,
    width,
    isTerminal: Boolean(stdout.isTTY),
    paint: painter(terminal, stdout),
    table: (headers, rows) => renderTable(headers, rows.map(clean), { ...options, width }),
    pairs: (rows) => renderTable(['', ''], rows.map(clean), { width, headers: false }),
  }
}

export async function render(
  terminal: Terminal,
  format: Format,
  headers: boolean,
  { value, file = value, human, names }: Printable,
  onHidden?: (headers: readonly string[]) => void,
): Promise<string> {
  switch (format.kind) {
    case 'human':
      return human(lookOf(terminal, { wide: format.wide, headers, ...(onHidden && { onHidden }) }))
    case 'csv':
      return harmless(terminal, csvOf(terminal, headers, human))
    case 'json':
      return harmless(terminal, `${JSON.stringify(value, null, 2)}\n`)
    case 'yaml':
      return harmless(terminal, await toYaml(file))
    case 'name':
      if (!names) throw usage('this has no names to print: use another --output')
      return harmless(terminal, names.map((name) => `${name}\n`).join(''))
    case 'jsonpath':
    case 'custom-columns':
      return harmless(terminal, format.render(value))
  }
}

/** The one table of a result as comma-separated values (RFC 4180). */
function csvOf(terminal: Terminal, headers: boolean, human: Printable['human']): string {
  const tables: string[] = []
  const table: Look['table'] = (names, rows) => {
    const lines = headers ? [names, ...rows] : rows
    const text = lines.map((cells) => `${names.map((_name, i) => csvCell(cells[i] ?? '')).join(',')}\n`)
    tables.push(text.join(''))
    return tables.at(-1) as string
  }
  const text = human({
    ...lookOf(terminal, { wide: true, headers }),
    width: undefined,
    isTerminal: false,
    table,
  })
  if (tables.length > 1 || text !== (tables[0] ?? ''))
    throw usage('this is no single table, so it cannot be csv: use another --output')
  return text
}

function csvCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Renders YAML without block scalars, which would lose strings of nothing but spaces and line breaks. */
export async function toYaml(value: unknown): Promise<string> {
  const { stringify } = await import('yaml')
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false, blockQuote: false })
}

/** Text for stdout; on a terminal, control characters that move the cursor or reorder lines are escaped. */
export function harmless({ stdout }: Terminal, text: string): string {
  return stdout.isTTY ? text.split('\n').map(plain).join('\n') : text
}

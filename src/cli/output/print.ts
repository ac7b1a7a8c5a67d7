// Renders a result in the format of --output.
import { usage } from '../failure.ts'
import { renderTable } from './table.ts'
import { type Paint, painter, plain, type Terminal } from './terminal.ts'

export type Format =
  | { readonly kind: 'human'; readonly wide: boolean }
  | { readonly kind: 'json' | 'yaml' | 'name' }
  | { readonly kind: 'jsonpath'; readonly render: (value: unknown) => string }

export const FORMATS = ['table', 'wide', 'json', 'yaml', 'name', 'jsonpath=TEMPLATE']

export interface Printable {
  /** The value for JSON, YAML and JSONPath: mostly a document of the API. */
  readonly value: unknown
  /** Renders text for people. */
  human(look: Look): string
  /** The names for -o name: `type/id`. */
  readonly names?: readonly string[]
}

/** How text for people is laid out. */
export interface Look {
  readonly wide: boolean
  readonly headers: boolean
  /** Columns of the terminal; undefined where nothing is cut. */
  readonly width: number | undefined
  readonly paint: Paint
  table(headers: readonly string[], rows: readonly (readonly string[])[]): string
  /** Renders names with their values, one on each line. */
  pairs(rows: readonly (readonly [name: string, value: string])[]): string
}

/** Parses --output. Commands do so first: a change must not be made and then fail for its output format. */
export async function parseFormat(text: string | undefined): Promise<Format> {
  if (text === undefined || text === 'table') return { kind: 'human', wide: false }
  if (text === 'wide') return { kind: 'human', wide: true }
  if (text === 'json' || text === 'yaml' || text === 'name') return { kind: text }
  const template = /^jsonpath=([\s\S]+)$/.exec(text)?.[1]
  if (template !== undefined) {
    const { compileJsonpath } = await import('./jsonpath.ts')
    return { kind: 'jsonpath', render: compileJsonpath(template) }
  }
  throw usage(`--output must be one of ${FORMATS.join(', ')}, not "${text}"`)
}

/** Throws for -o name, where a result has no names. */
export function refuseNameOutput({ format }: { readonly format: Format }): void {
  if (format.kind === 'name') throw usage('there are no names to print here: use another --output')
}

export function lookOf(terminal: Terminal, options: { wide: boolean; headers: boolean }): Look {
  const { stdout } = terminal
  const width = stdout.isTTY && !options.wide ? stdout.columns || 80 : undefined
  const clean = (cells: readonly string[]): string[] => cells.map(plain)
  return {
    ...options,
    width,
    paint: painter(terminal, stdout),
    table: (headers, rows) => renderTable(headers, rows.map(clean), { width, headers: options.headers }),
    pairs: (rows) => renderTable(['', ''], rows.map(clean), { width, headers: false }),
  }
}

export async function render(
  terminal: Terminal,
  format: Format,
  headers: boolean,
  { value, human, names }: Printable,
): Promise<string> {
  switch (format.kind) {
    case 'human':
      return human(lookOf(terminal, { wide: format.wide, headers }))
    case 'json':
      return harmless(terminal, `${JSON.stringify(value, null, 2)}\n`)
    case 'yaml':
      return harmless(terminal, await toYaml(value))
    case 'name':
      if (!names) throw usage('this has no names to print: use another --output')
      return harmless(terminal, names.map((name) => `${name}\n`).join(''))
    case 'jsonpath':
      return harmless(terminal, format.render(value))
  }
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

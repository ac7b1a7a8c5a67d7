// Which columns a table of documents has: fixed for each type, chosen from its schema, the same whatever its documents hold.
import type { Json, JsonObject } from '../../base/json.ts'
import { isObject, own } from '../../base/json.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import { usage } from '../failure.ts'
import { parsePath } from '../input/field-values.ts'
import { fieldsOf, type Noun } from '../server/nouns.ts'

export interface Column {
  readonly title: string
  /** Whether it is of wide tables only. */
  readonly wide: boolean
  read(document: JsonObject): string
  /** What it is ordered by, where that is not its text; NaN where there is nothing. */
  order?(document: JsonObject): number
}

/** Which columns somebody wants to see. */
export interface ColumnChoice {
  /** Titles and fields, in this order. */
  readonly columns?: readonly string[] | undefined
  /** Keys of labels with a column each. */
  readonly labels?: readonly string[] | undefined
}

/** Short titles of fields that are shown often. */
const TITLES: Readonly<Record<string, string>> = {
  environment: 'ENV',
  cluster_dns: 'DNS',
  cluster_name: 'NAME',
  component_path: 'PATH',
  component_version: 'VERSION',
  oci_tag: 'TAG',
  oci_url: 'URL',
  namespaces: 'NS',
  platform_components: 'COMP',
  rolebindings: 'RB',
}

/** What one looks for comes first: on a narrow terminal the last columns are left out. */
const FIRST = [
  'ID',
  'ENV',
  'TAG',
  'VERSION',
  'CONTACT',
  'DELIVERY',
  'HEALTH',
  'SEEN',
  'LABELS',
  'PATH',
  'ROLE',
]
const LAST = ['DNS', 'URL']

export function titleOf(name: string): string {
  return TITLES[name] ?? name.replaceAll('_', '-').toUpperCase()
}

/** The columns of tables of a type, those of wide tables included; `more` are about documents without being of them. */
export function columnsOf(noun: Noun, nouns: readonly Noun[], more: readonly Column[] = []): Column[] {
  const shown = fieldsOf(noun, nouns).filter(([name]) => name !== noun.cluster?.patches)
  const fields = shown.map(
    ([name, schema]): Column => ({
      title: titleOf(name),
      wide: !isShown(noun, name, schema),
      read: (document) => cell(document[name]),
    }),
  )
  const isAllWide = fields.every(({ wide }) => wide)
  const narrow = isAllWide ? fields.map((column) => ({ ...column, wide: false })) : fields
  const lists = noun.cluster ? nouns.flatMap(({ delivery }) => delivery?.assigned_by ?? []) : []
  const counts = lists.map(
    (list): Column => ({
      title: titleOf(list),
      wide: true,
      read: (document) => String(sizeOf(document[list])),
    }),
  )
  const id: Column = { title: 'ID', wide: false, read: ({ id }) => String(id) }
  return [id, ...narrow, ...more, ...counts].toSorted((one, two) => rankOf(one) - rankOf(two))
}

/** Required fields, simple ones, and the labels of clusters; but no names beside ids. Of what tools keep, everything. */
function isShown({ schema: whole, cluster, bookkeeping }: Noun, name: string, schema: SchemaObject): boolean {
  if (name === cluster?.labels || bookkeeping) return true
  if (cluster && titleOf(name) === 'NAME') return false
  if (whole.required?.includes(name)) return true
  const isSimple = schema.type !== 'object' || !schema.additionalProperties
  return isSimple && schema.default !== undefined && schema.type !== 'boolean'
}

/** Where a column stands among others: what one looks for first, long addresses last. */
export function rankOf({ title }: Pick<Column, 'title'>): number {
  if (LAST.includes(title)) return 2000 + LAST.indexOf(title)
  return FIRST.includes(title) ? FIRST.indexOf(title) : 1000
}

/** The columns that are shown: those that were chosen, or those of the type with the labels that were asked for. */
export function chooseColumns(
  noun: Noun,
  all: readonly Column[],
  { columns, labels = [] }: ColumnChoice,
  wide: boolean,
): readonly Column[] {
  const ofLabels = labels.map((key) => labelColumn(noun, key))
  if (columns) return [...columns.map((name) => columnNamed(noun, all, name)), ...ofLabels]
  const shown = all.filter((column) => wide || !column.wide)
  const whole = labels.length > 0 ? shown.filter(({ title }) => title !== 'LABELS') : shown
  const at = whole.findIndex(({ title }) => LAST.includes(title))
  return whole.toSpliced(at < 0 ? whole.length : at, 0, ...ofLabels)
}

function labelColumn(noun: Noun, key: string): Column {
  const field = noun.cluster?.labels ?? 'labels'
  return {
    title: key.toUpperCase(),
    wide: false,
    read: (document) => cell(own((document[field] ?? {}) as JsonObject, key)),
  }
}

/** A column by its title, or one of a field, such as `labels.region`. */
export function columnNamed(noun: Noun, all: readonly Column[], name: string): Column {
  const path = parsePath(name.replace(/^\./, ''), 'a column')
  const [field = ''] = path
  const known = all.find(({ title }) => title === titleOf(name) || title === name.toUpperCase())
  if (known) return known
  const fields = ['id', ...Object.keys(noun.schema.properties ?? {})]
  if (typeof field !== 'string' || !fields.includes(field)) {
    const titles = all.map(({ title }) => title.toLowerCase())
    throw usage(
      `there is no column "${name}": there are ${titles.join(', ')}, and fields such as ${fields.slice(1, 4).join(', ')}`,
    )
  }
  return {
    title: name.toUpperCase(),
    wide: false,
    read: (document) => cell(path.reduce<Json | undefined>(childAt, document)),
  }
}

function childAt(value: Json | undefined, step: string | number): Json | undefined {
  if (Array.isArray(value)) return typeof step === 'number' ? value[step] : undefined
  return isObject(value) && typeof step === 'string' ? own(value, step) : undefined
}

function sizeOf(value: Json | undefined): number {
  return Array.isArray(value) ? value.length : 0
}

/** Renders a value in a table. */
export function cell(value: Json | undefined): string {
  if (value === undefined || value === null) return ''
  if (Array.isArray(value)) return value.map(inList).join(',')
  if (isObject(value))
    return Object.entries(value)
      .map(([key, each]) => `${key}=${inList(each)}`)
      .join(',')
  return String(value)
}

function inList(value: Json): string {
  if (!isObject(value)) return String(value)
  const { kind, name, id } = value
  return kind && name ? `${kind}/${name}` : id ? String(id) : JSON.stringify(value)
}

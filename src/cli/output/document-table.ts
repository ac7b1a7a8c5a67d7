// Documents of any type as a table: the columns come from the schema.
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { fieldsOf, type Noun } from '../server/nouns.ts'
import type { Look, Printable } from './print.ts'

export interface Column {
  readonly title: string
  /** Whether it is of wide tables only. */
  readonly wide: boolean
  read(document: JsonObject): string
}

/** The columns of a type: scalars and required fields, and all others in wide tables; more after the fields. */
function columnsOf(noun: Noun, nouns: readonly Noun[], more: readonly Column[]): Column[] {
  const required = noun.schema.required ?? []
  const fields = fieldsOf(noun, nouns).map(([name, schema]): Column => {
    const isSimple = schema.type !== 'object' || !schema.additionalProperties
    const isRequired = required.includes(name)
    return {
      title: title(name),
      wide: !(isRequired || (isSimple && schema.default !== undefined && schema.type !== 'boolean')),
      read: (document) => cell(document[name]),
    }
  })
  const lists = noun.cluster
    ? nouns.flatMap(({ name, noun: of, delivery }): Column[] => {
        const list = delivery?.assigned_by
        return list
          ? [
              {
                title: title(plural(of)),
                wide: false,
                read: (document) => String(sizeOf(document[list] ?? name)),
              },
            ]
          : []
      })
    : []
  const maps = fields.every(({ wide }) => wide)
    ? fields.map((column) => ({ ...column, wide: false }))
    : fields
  return [{ title: 'ID', wide: false, read: ({ id }) => String(id) }, ...maps, ...more, ...lists]
}

function plural(noun: string): string {
  return noun.endsWith('y') ? `${noun.slice(0, -1)}ies` : `${noun}s`
}

function title(name: string): string {
  return name.replaceAll('_', '-').toUpperCase()
}

function sizeOf(value: Json): number {
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

export function printableList(
  noun: Noun,
  nouns: readonly Noun[],
  documents: readonly JsonObject[],
  more: readonly Column[] = [],
): Printable {
  return {
    value: documents,
    names: documents.map(({ id }) => `${noun.name}/${id}`),
    human: (look) => (documents.length === 0 ? '' : table(columnsOf(noun, nouns, more), documents, look)),
  }
}

function table(all: readonly Column[], documents: readonly JsonObject[], look: Look): string {
  const columns = all.filter(
    (column, i) =>
      look.wide || (!column.wide && !(i > 0 && documents.every((each) => column.read(each) === each.id))),
  )
  return look.table(
    columns.map((column) => column.title),
    documents.map((document) => columns.map((column) => column.read(document))),
  )
}

export function printableDocument(noun: Noun, nouns: readonly Noun[], document: JsonObject): Printable {
  return { ...printableList(noun, nouns, [document]), value: document }
}

// Documents of any type, as they are printed: a table for people, and the documents themselves.
import type { JsonObject } from '../../base/json.ts'
import { type Noun, withType } from '../server/nouns.ts'
import { type Column, type ColumnChoice, chooseColumns, columnsOf } from './document-columns.ts'
import type { Printable } from './print.ts'

export function printableList(
  noun: Noun,
  nouns: readonly Noun[],
  documents: readonly JsonObject[],
  more: readonly Column[] = [],
  choice: ColumnChoice = {},
): Printable {
  return {
    value: documents,
    file: documents.map((document) => withType(noun, document)),
    names: documents.map(({ id }) => `${noun.name}/${id}`),
    human(look) {
      if (documents.length === 0) return ''
      const columns = chooseColumns(noun, columnsOf(noun, nouns, more), choice, look.wide)
      return look.table(
        columns.map(({ title }) => title),
        documents.map((document) => columns.map((column) => column.read(document))),
      )
    },
  }
}

export function printableDocument(noun: Noun, nouns: readonly Noun[], document: JsonObject): Printable {
  return { ...printableList(noun, nouns, [document]), value: document, file: withType(noun, document) }
}

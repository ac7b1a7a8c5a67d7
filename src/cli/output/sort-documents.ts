// The order of a list by one of its columns.
import type { Document } from '../../domain/types/resource-type.ts'
import type { Noun } from '../server/nouns.ts'
import { type Column, columnNamed, columnsOf } from './document-columns.ts'

/** Documents ordered by a column; those with nothing there come last. */
export function sortDocuments(
  noun: Noun,
  nouns: readonly Noun[],
  documents: readonly Document[],
  more: readonly Column[],
  name: string,
): Document[] {
  const column = columnNamed(noun, columnsOf(noun, nouns, more), name)
  const order = new Intl.Collator('en', { numeric: true })
  const keys = new Map(documents.map((document) => [document, column.read(document)]))
  return documents.toSorted((one, two) => {
    const [first = '', second = ''] = [keys.get(one), keys.get(two)]
    return Number(first === '') - Number(second === '') || order.compare(first, second)
  })
}

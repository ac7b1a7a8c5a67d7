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
  const { read, order } = column
  if (order) {
    const last = (value: number): number => (Number.isNaN(value) ? Number.POSITIVE_INFINITY : value)
    return documents.toSorted((one, two) => compare(last(order(one)), last(order(two))))
  }
  const collator = new Intl.Collator('en', { numeric: true })
  const keys = new Map(documents.map((document) => [document, read(document)]))
  return documents.toSorted((one, two) => {
    const [first = '', second = ''] = [keys.get(one), keys.get(two)]
    return Number(first === '') - Number(second === '') || collator.compare(first, second)
  })
}

function compare(one: number, other: number): number {
  return one < other ? -1 : Number(one > other)
}

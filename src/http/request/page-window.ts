// Which of the documents that a query matches are on the page that it asks for.
import type { View } from '../../domain/documents/view.ts'
import type { Document } from '../../domain/types/resource-type.ts'
import type { ListQuery } from './list-query.ts'

export class PageWindow {
  /** How many documents have matched so far, on this page or not. */
  total = 0
  readonly #query: ListQuery

  constructor(query: ListQuery) {
    this.#query = query
  }

  /** Whether no later document can be on the page. */
  get isFull(): boolean {
    const { limit, offset } = this.#query
    return this.total >= offset + limit
  }

  /** Counts the next document if it matches, and returns whether it is on the page. */
  takes(document: Document, view: View): boolean {
    if (!this.#query.matches(document, view)) return false
    const isOnPage = this.total >= this.#query.offset && !this.isFull
    this.total++
    return isOnPage
  }
}

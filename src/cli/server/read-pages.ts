// Paging: reads a list of the API page by page.
import type { ApiResponse } from './api.ts'

/** Where a page begins: by offset, or after the last item of the page before. */
export interface PageStart<T> {
  readonly limit: number
  readonly offset: number
  readonly last: T | undefined
}

export interface Page<T> {
  readonly items: readonly T[]
  /** How many items the whole list has, where the API says so. */
  readonly total: number | undefined
  readonly response: ApiResponse
}

interface Options {
  /** Items in a page. */
  readonly size: number
  /** Items to read at most. */
  readonly limit?: number | undefined
}

/**
 * Yields the pages of a list, at least one, up to `limit` items. The list ends with its total, or with a page that is
 * not full where the API gives no total.
 */
export async function* readPages<T>(
  readPage: (start: PageStart<T>) => Promise<ApiResponse>,
  { size, limit = Number.POSITIVE_INFINITY }: Options,
): AsyncGenerator<Page<T>> {
  let offset = 0
  let last: T | undefined
  for (;;) {
    const wanted = Math.min(size, limit - offset)
    const response = await readPage({ limit: wanted, offset, last })
    const items: readonly T[] = response.body
    const header = response.headers['x-total-count']
    const total = header === undefined ? undefined : Number(header)
    yield { items, total, response }
    offset += items.length
    last = items.at(-1)
    const isEnd = total === undefined ? items.length < wanted : items.length === 0 || offset >= total
    if (isEnd || offset >= limit) return
  }
}

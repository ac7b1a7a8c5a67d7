// Reading the log: revisions, newest first, and the changes of one.

import { CHANGE_PAGES, REVISION_PAGES } from '../../api/limits.ts'
import type { Revision } from '../../api/wire-types.ts'
import type { DescribedChange } from '../../domain/documents/describe-change.ts'
import type { Session } from '../session.ts'
import type { Call } from './api.ts'
import { readPages } from './read-pages.ts'

interface Options {
  readonly query?: Call['query']
  readonly limit?: number
  /** Revisions to request at once. */
  readonly pageSize?: number
}

/** The revisions at a path of the API, newest first. */
export async function* revisionsAt(
  { api }: Pick<Session, 'api'>,
  path: string,
  { query, limit, pageSize = REVISION_PAGES.max }: Options = {},
): AsyncGenerator<Revision> {
  const pages = readPages<Revision>(
    ({ limit: size, last }) => api.get(path, { query: { ...query, limit: size, before: last?.revision } }),
    { size: pageSize, limit },
  )
  for await (const { items } of pages) yield* items
}

/** The changes of revisions that were just made, up to a limit. */
export async function changesIn(
  { api }: Pick<Session, 'api'>,
  revisions: readonly { readonly revision: number; readonly changes: number }[],
  limit: number,
): Promise<DescribedChange[]> {
  const found: DescribedChange[] = []
  for (const { revision, changes } of revisions) {
    const wanted = Math.min(changes, limit - found.length)
    if (wanted === 0) continue
    const pages = readPages<DescribedChange>(
      async ({ limit: size, offset }) => {
        const query = { limit: size, offset, impact_limit: 0 }
        const response = await api.get(`/revisions/${revision}`, { query })
        return { ...response, body: response.body.changes }
      },
      { size: CHANGE_PAGES.max, limit: wanted },
    )
    for await (const { items } of pages) found.push(...items)
  }
  return found
}

// What revisions changed, read from the log.
import { CHANGE_PAGES } from '../../api/limits.ts'
import type { DescribedChange } from '../../domain/documents/describe-change.ts'
import type { Session } from '../session.ts'

/** The changes of revisions that were just made, as many as are wanted. */
export async function changesIn(
  { api }: Session,
  revisions: readonly { readonly revision: number; readonly changes: number }[],
  limit: number,
): Promise<DescribedChange[]> {
  const found: DescribedChange[] = []
  for (const { revision, changes } of revisions) {
    for (let offset = 0; offset < changes && found.length < limit; offset += CHANGE_PAGES.max) {
      const query = { limit: Math.min(CHANGE_PAGES.max, limit - found.length), offset, impact_limit: 0 }
      const { body } = await api.get(`/revisions/${revision}`, { query })
      found.push(...body.changes)
    }
  }
  return found
}

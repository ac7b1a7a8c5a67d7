// Revisions as a table.

import type { Revision } from '../../api/wire-types.ts'
import type { Call } from '../server/api.ts'
import { revisionsAt } from '../server/read-revisions.ts'
import type { Session } from '../session.ts'

export const REVISION_HEADERS = ['REVISION', 'TIME', 'ACTOR', 'CHANGES', 'MESSAGE', 'OPERATION']

export function revisionRow({ revision, time, actor, change_count, message, operation }: Revision): string[] {
  return [
    String(revision),
    time.replace(/\.\d+Z$/, 'Z'),
    actor,
    String(change_count),
    message ?? '',
    operation,
  ]
}

/** Prints the newest revisions at a path, up to a limit. */
export async function printRevisions(
  session: Session,
  path: string,
  query: Call['query'],
  limit: number,
): Promise<void> {
  const revisions: Revision[] = []
  // One more than is shown tells whether there are more.
  for await (const revision of revisionsAt(session, path, { query, limit: limit + 1 }))
    revisions.push(revision)
  const shown = revisions.slice(0, limit)
  await session.print({
    value: shown,
    names: shown.map(({ revision }) => `revisions/${revision}`),
    human: ({ table }) => (shown.length === 0 ? '' : table(REVISION_HEADERS, shown.map(revisionRow))),
  })
  if (shown.length < revisions.length) session.note(`the newest ${shown.length}; --limit shows more`)
  if (shown.length === 0 && session.format.kind === 'human') session.note('No revisions found.')
}

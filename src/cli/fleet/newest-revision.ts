// Revisions on the command line by number, or as the last one.

import { unmet } from '../failure.ts'
import { needRevision } from '../input/moments.ts'
import { revisionsAt } from '../server/read-revisions.ts'
import type { Session } from '../session.ts'

export const LAST = 'last'

/** The revision that a text means: a number, or `last`. */
export async function revisionNamed(session: Session, text: string): Promise<number> {
  if (text !== LAST) return needRevision(text)
  for await (const { revision } of revisionsAt(session, '/revisions', { limit: 1 })) return revision
  throw unmet('there is no revision yet')
}

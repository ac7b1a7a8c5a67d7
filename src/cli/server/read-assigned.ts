// Reading which clusters have a definition, and in which version.
import { STATUS_PAGES } from '../../api/limits.ts'
import type { AssignedCluster } from '../../api/versions-schema.ts'
import { getNew } from '../fleet/read-status.ts'
import type { Session } from '../session.ts'
import type { Noun } from './nouns.ts'
import { pathOf } from './read-documents.ts'
import { readPages } from './read-pages.ts'

interface Options {
  readonly selector?: string | undefined
  /** Clusters to read at most. */
  readonly limit?: number | undefined
}

export async function readAssigned(
  session: Pick<Session, 'api'>,
  noun: Noun,
  id: string,
  { selector, limit }: Options = {},
): Promise<{ readonly clusters: AssignedCluster[]; readonly total: number }> {
  const clusters: AssignedCluster[] = []
  let listed = 0
  const pages = readPages<AssignedCluster>(
    ({ limit: size, offset }) =>
      getNew(session, pathOf(noun, id, 'clusters'), { selector, limit: size, offset }),
    { size: STATUS_PAGES.max, limit },
  )
  for await (const { items, total = items.length } of pages) {
    for (const line of items) clusters.push(line)
    listed = total
  }
  return { clusters, total: listed }
}

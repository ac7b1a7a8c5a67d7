// Documents for one cluster alone, such as its token, are removed with it: a later cluster of its id inherits none.

import type { Steps } from '../../base/steps.ts'
import type { Draft } from '../documents/draft.ts'
import { dnsOf, type SystemType, type Types } from '../types/resource-type.ts'
import type { Outcome } from './command.ts'

/**
 * Removes the documents of purged clusters, and those that a new cluster would inherit. A deleted cluster keeps its
 * documents until it is restored, and so does one that is created again under the same DNS name.
 */
export function* revokeOrphans(types: Types, draft: Draft, outcomes: readonly Outcome[]): Steps<void> {
  const owned = types.system.all.filter((type) => type.clusterOf && draft.count(type.name) > 0)
  if (owned.length === 0) return
  const { name } = types.cluster.type
  const gone = new Set<string>()
  for (const { type, id, after } of draft.touched()) if (type === name && !after) gone.add(id)
  for (const { type, id, former } of outcomes) {
    const document = type === name && former !== undefined ? draft.get(name, id)?.document : undefined
    if (document && !(former && dnsOf(types.cluster, former) === dnsOf(types.cluster, document))) gone.add(id)
  }
  if (gone.size === 0) return
  for (const type of owned) yield* removeOwned(draft, type, gone)
}

function* removeOwned(draft: Draft, type: SystemType, gone: ReadonlySet<string>): Steps<void> {
  const orphans: string[] = []
  for (const { id, document } of draft.all(type.name)) {
    yield
    const cluster = type.clusterOf?.(document)
    if (cluster !== undefined && gone.has(cluster)) orphans.push(id)
  }
  for (const id of orphans) draft.remove(type.name, id, { path: '' })
}

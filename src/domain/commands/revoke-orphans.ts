// A token for one cluster goes with it: whoever gets the id later is another cluster.

import type { Steps } from '../../base/steps.ts'
import { asToken, TOKENS } from '../access/token.ts'
import type { Draft } from '../documents/draft.ts'
import { dnsOf, type Types } from '../types/resource-type.ts'
import type { Outcome } from './command.ts'

/**
 * Revokes the tokens of clusters that are gone without a trace, and those that a new cluster would inherit. A deleted
 * cluster keeps its own until it is restored, and so does one that is created again under the same DNS name.
 */
export function* revokeOrphans(types: Types, draft: Draft, outcomes: readonly Outcome[]): Steps<void> {
  if (draft.count(TOKENS) === 0) return
  const { name } = types.cluster.type
  const gone = new Set<string>()
  for (const { type, id, after } of draft.touched()) if (type === name && !after) gone.add(id)
  for (const { type, id, former } of outcomes) {
    const document = type === name && former !== undefined ? draft.get(name, id)?.document : undefined
    if (document && !(former && dnsOf(types.cluster, former) === dnsOf(types.cluster, document))) gone.add(id)
  }
  if (gone.size === 0) return
  const orphans: string[] = []
  for (const { id, document } of draft.all(TOKENS)) {
    yield
    const { cluster } = asToken(document)
    if (cluster !== undefined && gone.has(cluster)) orphans.push(id)
  }
  for (const id of orphans) draft.remove(TOKENS, id, { path: '' })
}

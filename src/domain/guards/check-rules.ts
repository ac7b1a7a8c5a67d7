// The rules of documents that mean something to the service itself, beyond what their schema says.
import { type Detail, invalid, MAX_DETAILS, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { type Draft, pointerTo } from '../documents/draft.ts'
import { checkFreeze } from '../rollouts/freeze.ts'
import { asStrategy, checkStrategy } from '../rollouts/strategy.ts'
import type { Document, DocumentRules, Types } from '../types/resource-type.ts'

/** Everything wrong with a document; paths are those of its fields. */
const RULES: Readonly<Record<DocumentRules, (types: Types, document: Document) => Detail[]>> = {
  strategy: (types, document) => checkStrategy(types, asStrategy(document)),
  freeze: checkFreeze,
}

/** Checks what a write made or changed, as it would stand in the end. */
export function* checkRules(types: Types, draft: Draft): Steps<Result<readonly string[]>> {
  const details: Detail[] = []
  for (const { type, after, origins } of draft.touched()) {
    yield
    const rules = types.get(type)?.rules
    if (!rules || !after || after.deleted) continue
    for (const { path, message } of RULES[rules](types, after.document)) {
      const isShown = details.length < MAX_DETAILS
      details.push({ path: isShown ? pointerTo(origins, path) : path, message })
    }
  }
  return details.length > 0 ? invalid(details) : succeed([])
}

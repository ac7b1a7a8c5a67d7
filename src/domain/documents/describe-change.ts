// A change as readers of the audit and of previews see it.
import { equalJson } from '../../base/json.ts'
import { asToken, TOKENS, withoutSecrets } from '../access/token.ts'
import type { Document } from '../types/resource-type.ts'
import type { Change } from './view.ts'

/** A document before and after; a tombstone is the document as it was when it was deleted. */
export interface BeforeAndAfter {
  readonly type: string
  readonly id: string
  readonly before: Document | null
  readonly before_deleted: boolean
  readonly after: Document | null
  readonly after_deleted: boolean
}

export interface DescribedChange {
  readonly type: string
  readonly id: string
  readonly op: 'create' | 'update' | 'delete' | 'restore' | 'purge'
  readonly before: Document | null
  readonly after: Document | null
}

/** Readers see no tombstones, except as what a purge removed. */
export function describeChange(change: BeforeAndAfter, clusterType: string): DescribedChange {
  const { type, id } = change
  const op = operationOf(change, clusterType)
  const before = change.before_deleted && op !== 'purge' ? null : change.before
  const after = change.after_deleted ? null : change.after
  return { type, id, op, before: shown(type, before), after: shown(type, after) }
}

/** Not even a digest of a secret leaves the store. */
function shown<T extends Document | null>(type: string, document: T): T {
  if (type !== TOKENS || document === null) return document
  return withoutSecrets(asToken(document)) as unknown as T
}

function operationOf(change: BeforeAndAfter, clusterType: string): DescribedChange['op'] {
  const { before, after } = change
  if (after === null) return change.type === clusterType ? 'purge' : 'delete'
  if (change.after_deleted) return 'delete'
  if (before === null) return 'create'
  if (change.before_deleted) return equalJson(before, after) ? 'restore' : 'create'
  return 'update'
}

export function beforeAndAfter({ type, id, before, after }: Change): BeforeAndAfter {
  return {
    type,
    id,
    before: before?.document ?? null,
    before_deleted: before?.deleted ?? false,
    after: after?.document ?? null,
    after_deleted: after?.deleted ?? false,
  }
}

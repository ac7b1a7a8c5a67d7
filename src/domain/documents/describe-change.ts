// A change as readers of the audit and of previews see it.

import type { JsonObject } from '../../base/json.ts'
import { equalJson } from '../../base/json.ts'
import type { Document, Types } from '../types/resource-type.ts'
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
  readonly before: JsonObject | null
  readonly after: JsonObject | null
}

/** Readers see no tombstones, except as what a purge removed. */
export function describeChange(types: Types, change: BeforeAndAfter): DescribedChange {
  const { type, id } = change
  const op = operationOf(change, types.cluster.type.name)
  const before = change.before_deleted && op !== 'purge' ? null : change.before
  const after = change.after_deleted ? null : change.after
  return { type, id, op, before: redacted(types, type, before), after: redacted(types, type, after) }
}

/** Not even a digest of a secret leaves the store. */
function redacted({ system }: Types, type: string, document: Document | null): JsonObject | null {
  return (document && system.get(type)?.redact?.(document)) ?? document
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

// Commands that restore earlier versions: one revision undone, or documents as they were at some time.

import { diffFields } from '../../base/diff.ts'
import { equalJson, excerpts, isObject, type Json, own } from '../../base/json.ts'
import { type Detail, fail, type Result, succeed } from '../../base/problem.ts'
import type { Draft } from '../documents/draft.ts'
import { checkProtection, findVersion } from '../documents/find-document.ts'
import { parseDocument } from '../documents/parse-document.ts'
import type { DocumentVersion } from '../documents/view.ts'
import type { Document, ResourceType, Types } from '../types/resource-type.ts'
import type { Outcome, Reset, Undo } from './command.ts'
import { type UndoConflict, undo } from './undo.ts'

export function reset(types: Types, draft: Draft, type: ResourceType, command: Reset): Result<Outcome> {
  return putVersion(types, draft, type, command, command.to)
}

export function undoChange(types: Types, draft: Draft, type: ResourceType, command: Undo): Result<Outcome> {
  const { id, before, after } = command
  const current = findVersion(draft, type.name, id)
  if (!before || !after || !current || before.deleted || after.deleted || current.deleted) {
    if (isSame(current, before)) return succeed({ type: type.name, id, created: false })
    if (isSame(current, after)) return putVersion(types, draft, type, command, before)
    return conflict(type, command, existenceConflicts(after, current))
  }
  const conflicts: UndoConflict[] = []
  const document = undo(before.document, after.document, current.document, conflicts)
  if (conflicts.length > 0) return conflict(type, command, conflicts)
  const isCluster = type === types.cluster.type
  const tidied = isCluster ? withoutEmptied(types, [before, current], document as Document) : document
  return putVersion(types, draft, type, command, { document: tidied as Document, deleted: false })
}

/** Removes the entries of components that an undo has left without values, unless they were empty before. */
function withoutEmptied(types: Types, others: readonly DocumentVersion[], undone: Document): Document {
  const field = types.cluster.patches
  const isEmpty = (values: Json | undefined): boolean => isObject(values) && Object.keys(values).length === 0
  const wasEmpty = (id: string): boolean =>
    others.some(({ document }) => isObject(document[field]) && isEmpty(own(document[field], id)))
  const is = undone[field]
  if (!isObject(is)) return undone
  const kept = Object.entries(is).filter(([id, values]) => !isEmpty(values) || wasEmpty(id))
  return kept.length === Object.keys(is).length ? undone : { ...undone, [field]: Object.fromEntries(kept) }
}

function isSame(a: DocumentVersion | undefined, b: DocumentVersion | undefined): boolean {
  if (!a || !b) return a === b
  return a.deleted === b.deleted && equalJson(a.document, b.document)
}

/** The conflicts of a change that created, deleted or restored the whole document. */
function existenceConflicts(
  left: DocumentVersion | undefined,
  current: DocumentVersion | undefined,
): UndoConflict[] {
  if (!left || !current || left.deleted !== current.deleted) {
    return [{ path: '', left: left?.document, current: current?.deleted ? undefined : current?.document }]
  }
  return diffFields(left.document, current.document).map(({ path, before, after }) => ({
    path,
    left: before,
    current: after,
  }))
}

function conflict(type: ResourceType, command: Undo, conflicts: readonly UndoConflict[]): Result<never> {
  const { id, revision } = command
  const details: Detail[] = conflicts.map(({ path, left, current }) => ({
    path: `/${type.name}/${id}${path}`,
    message:
      path === ''
        ? `${current === undefined ? 'is gone' : left === undefined ? 'is there again' : 'is not as it was'} since revision ${revision}`
        : `is ${excerpts(current, left).join(' now, not ')} as revision ${revision} left it`,
  }))
  const message = `${type.singular} "${id}" has been changed again since revision ${revision}: undo that first, or set the fields one by one`
  return fail({ code: 'conflict', reason: 'changed_since', message, details })
}

function putVersion(
  types: Types,
  draft: Draft,
  type: ResourceType,
  command: Reset | Undo,
  to: DocumentVersion | undefined,
): Result<Outcome> {
  const { id } = command
  const live = draft.get(type.name, id)
  const allowed = !to || to.deleted ? checkProtection(types, type, live) : succeed(undefined)
  if (!allowed.ok) return allowed
  if (!to) {
    draft.remove(type.name, id, command)
  } else {
    const parsed = to.deleted
      ? succeed(to.document)
      : parseDocument(type, to.document, id, command.path, to.document)
    if (!parsed.ok) return parsed
    draft.putExactly(type.name, parsed.value, command, to.deleted)
  }
  return succeed({ type: type.name, id, created: !live && to !== undefined && !to.deleted })
}

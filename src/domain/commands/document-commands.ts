// Commands on whole documents of any type.

import { equalJson, isObject, type Json } from '../../base/json.ts'
import { applyJsonPatch } from '../../base/json-patch.ts'
import { mergePatch } from '../../base/merge-patch.ts'
import { fail, invalid, notFound, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import type { Draft, Origin } from '../documents/draft.ts'
import { checkExpectation, checkProtection, findLive } from '../documents/find-document.ts'
import { parseDocument } from '../documents/parse-document.ts'
import type { Entry } from '../documents/view.ts'
import {
  type DeliveredType,
  type Document,
  findReference,
  idsIn,
  type ResourceType,
  type Types,
} from '../types/resource-type.ts'
import { withoutReference } from './assignment-commands.ts'
import type { Create, Delete, Outcome, Patch, Replace, Restore } from './command.ts'

export function create(draft: Draft, type: ResourceType, command: Create): Result<Outcome> {
  const parsed = parseDocument(type, command.document, undefined, command.path)
  if (!parsed.ok) return parsed
  const { id } = parsed.value
  const current = draft.get(type.name, id)
  const met = checkExpectation(type, id, current, command.expect)
  if (!met.ok) return met
  if (current) {
    return fail({
      code: 'conflict',
      reason: 'already_exists',
      message: `${type.singular} "${id}" exists already: replace or patch it`,
    })
  }
  const former = formerOf(draft, type, id)
  draft.put(type.name, parsed.value, command)
  return succeed({ type: type.name, id, created: true, former })
}

function formerOf(draft: Draft, type: ResourceType, id: string): Document | null {
  return draft.tombstone(type.name, id)?.document ?? null
}

export function replace(draft: Draft, type: ResourceType, command: Replace): Result<Outcome> {
  const { id, expect } = command
  const current = draft.get(type.name, id)
  const met = checkExpectation(type, id, current, expect)
  if (!met.ok) return met
  const creating = expect !== undefined && 'exists' in expect && !expect.exists
  if (!current && !creating) return notFound(type.singular, id)
  const parsed = parseDocument(type, command.document, id, command.path, current?.document)
  if (!parsed.ok) return parsed
  const former = current ? undefined : formerOf(draft, type, id)
  putIfChanged(draft, type, current, parsed.value, command)
  return succeed({ type: type.name, id, created: !current, ...(former !== undefined && { former }) })
}

/** What a patch may add, copy and move in all, as a multiple of the maximum size of a document. */
const PATCH_FACTOR = 3

export function* patch(draft: Draft, type: ResourceType, command: Patch): Steps<Result<Outcome>> {
  const { id } = command
  const found = findLive(draft, type, id, command.expect)
  if (!found.ok) return found
  const { document } = found.value
  const patched =
    command.format === 'merge'
      ? applyMergePatch(document, command)
      : yield* applyJsonPatch(document, command.patch, command.path, PATCH_FACTOR * type.maxSize)
  if (!patched.ok) return patched
  const parsed = parseDocument(type, patched.value, id, command.path, document)
  if (!parsed.ok) return parsed
  putIfChanged(draft, type, found.value, parsed.value, command)
  return succeed({ type: type.name, id, created: false })
}

function applyMergePatch(document: Document, command: Patch): Result<Json> {
  if (isObject(command.patch)) return succeed(mergePatch(document, command.patch))
  return invalid([{ path: command.path, message: 'must be an object: the fields to change' }])
}

export function* remove(
  types: Types,
  draft: Draft,
  type: ResourceType,
  command: Delete,
): Steps<Result<Outcome>> {
  const { id } = command
  const isCluster = type === types.cluster.type
  const current =
    draft.get(type.name, id) ?? (isCluster && command.purge ? draft.tombstone(type.name, id) : undefined)
  const met = checkExpectation(type, id, current, command.expect)
  if (!met.ok) return met
  if (!current) return notFound(type.singular, id)
  const allowed = checkProtection(types, type, current)
  if (!allowed.ok) return allowed
  if (command.cascade) yield* dropUses(types, draft, type, command)
  if (isCluster && !command.purge) draft.put(type.name, current.document, command, true)
  else draft.remove(type.name, id, command)
  return succeed({ type: type.name, id, created: false, removed: current.document })
}

/** Takes a definition out of every cluster and every definition that names it. */
function* dropUses(types: Types, draft: Draft, type: ResourceType, command: Delete): Steps<void> {
  const { id } = command
  const clusters = types.cluster.type
  if (type.delivery) {
    const delivered = type as DeliveredType
    for (const { document } of draft.all(clusters.name)) {
      yield
      if (!findReference(document, type.delivery, id)) continue
      draft.put(clusters.name, withoutReference(types, delivered, document, id), command)
    }
  }
  for (const user of types.all) {
    for (const { field } of user.references.filter((reference) => reference.type === type.name)) {
      for (const { document } of draft.all(user.name)) {
        yield
        const ids = idsIn(document[field])
        if (document.id === id || !ids.includes(id)) continue
        const { [field]: value, ...rest } = document
        const kept = Array.isArray(value)
          ? { ...document, [field]: ids.filter((other) => other !== id) }
          : rest
        draft.put(user.name, kept as Document, command)
      }
    }
  }
}

export function restore(draft: Draft, type: ResourceType, command: Restore): Result<Outcome> {
  const { id } = command
  const tombstone = draft.tombstone(type.name, id)
  if (tombstone) {
    draft.put(type.name, tombstone.document, command)
    return succeed({ type: type.name, id, created: false })
  }
  if (!draft.get(type.name, id))
    return fail({ code: 'not_found', reason: 'unknown_id', message: `no deleted ${type.singular} "${id}"` })
  return fail({
    code: 'conflict',
    reason: 'not_deleted',
    message: `${type.singular} "${id}" is not deleted: there is nothing to restore`,
  })
}

function putIfChanged(
  draft: Draft,
  type: ResourceType,
  current: Entry | undefined,
  next: Document,
  origin: Origin,
): void {
  if (!current || !equalJson(current.document, next)) draft.put(type.name, next, origin)
}

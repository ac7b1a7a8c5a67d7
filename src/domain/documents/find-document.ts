// Finds the document that a command is about, in the state that its caller expects.

import { didYouMean } from '../../base/near-names.ts'
import { fail, notFound, type Problem, type Result, succeed } from '../../base/problem.ts'
import type { Expectation } from '../commands/command.ts'
import type { ResourceType, Types } from '../types/resource-type.ts'
import type { Entry, View } from './view.ts'

/** A document as it stands: live, or the tombstone that deleting left of it. */
export function findVersion(view: View, type: string, id: string): Entry | undefined {
  return view.get(type, id) ?? view.tombstone(type, id)
}

export function findLive(
  view: View,
  type: Pick<ResourceType, 'name' | 'singular'>,
  id: string,
  expect: Expectation | undefined,
): Result<Entry> {
  const entry = view.get(type.name, id)
  if (!entry) return notFound(type.singular, id)
  const met = checkExpectation(type, id, entry, expect)
  return met.ok ? succeed(entry) : met
}

/** Returns a message about an unknown id, with similar ids that exist. */
export function unknownDocument(
  view: View,
  type: Pick<ResourceType, 'name' | 'singular'>,
  id: string,
): string {
  return `no ${type.singular} "${id}"${didYouMean(id, idsOf(view, type.name))}`
}

function* idsOf(view: View, type: string): Generator<string> {
  for (const { id } of view.all(type)) yield id
}

/** Returns the problem of a document that is not assigned to a cluster, or does not exist at all. */
export function notAssigned(
  view: View,
  type: Pick<ResourceType, 'name' | 'singular'>,
  id: string,
  cluster: string,
): { readonly ok: false; readonly problem: Problem } {
  if (!view.get(type.name, id))
    return fail({ code: 'not_found', reason: 'unknown_id', message: unknownDocument(view, type, id) })
  const message = `${type.singular} "${id}" is not assigned to cluster "${cluster}"`
  return fail({ code: 'not_found', reason: 'not_assigned', message })
}

export function checkExpectation(
  type: Pick<ResourceType, 'singular'>,
  id: string,
  entry: Entry | undefined,
  expect: Expectation | undefined,
): Result<void> {
  if (!expect) return succeed(undefined)
  const what = `${type.singular} "${id}"`
  if ('exists' in expect) {
    if (expect.exists === (entry !== undefined)) return succeed(undefined)
    return expect.exists
      ? fail({ code: 'precondition_failed', reason: 'unknown_id', message: `${what} does not exist` })
      : fail({ code: 'precondition_failed', reason: 'already_exists', message: `${what} exists already` })
  }
  if (entry && expect.revisions.includes(entry.revision)) return succeed(undefined)
  const now = entry ? `is at revision ${entry.revision}` : 'does not exist'
  const message = `${what} ${now}: read it again and retry`
  return fail({ code: 'precondition_failed', reason: 'revision_mismatch', message })
}

/** A protected cluster cannot be deleted, whatever is confirmed. */
export function checkProtection(types: Types, type: ResourceType, entry: Entry | undefined): Result<void> {
  const { deletionProtection } = types.cluster
  if (type !== types.cluster.type || entry?.deleted || entry?.document[deletionProtection] !== true) {
    return succeed(undefined)
  }
  const message = `${type.singular} "${entry.id}" is protected: set ${deletionProtection} to false first`
  return fail({ code: 'conflict', reason: 'protected', message })
}

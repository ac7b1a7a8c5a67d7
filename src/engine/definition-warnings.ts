// Warnings about definitions that a write brings to clusters: changed since a cluster's deletion, or new and by others.

import { diffFields } from '../base/diff.ts'
import { excerpts } from '../base/json.ts'
import { named } from '../base/sentences.ts'
import { SEEDER } from '../domain/access/token.ts'
import type { Decision } from '../domain/commands/decide.ts'
import type { View } from '../domain/documents/view.ts'
import { type FirstUse, newUsesOf, type Returning } from '../domain/guards/new-uses.ts'
import type { DocumentName, Types } from '../domain/types/resource-type.ts'
import { runTimeSliced } from '../runtime/run-time-sliced.ts'
import type { RecordedRevision } from '../store/store.ts'
import type { Past } from './past.ts'

/** Most definitions to report of each kind, and most revisions to read for the authors of first uses. */
const MAX_TOLD = 20
const MAX_REVISIONS = 100
const MAX_FIELDS = 10
const MAX_AUTHORS = 3
const MAX_NAMED = 50

interface Write {
  readonly decision: Decision
  readonly actor: string
  /** Whether the write is a revert or a rollback. */
  readonly isUndo: boolean
}

/** Reads nothing from the log when no cluster is restored and no reference is added. */
export async function warnOfDefinitions(
  types: Types,
  past: Past,
  before: View,
  { decision, actor, isUndo }: Write,
): Promise<string[]> {
  const { changes, after } = decision
  const { returning, first } = await runTimeSliced(newUsesOf({ types, before, after }, changes, isUndo))
  return [
    ...(await warnOfReturning(types, past, after, returning)),
    ...(await warnOfFirstUse(types, past, actor, first)),
  ]
}

async function warnOfReturning(
  types: Types,
  past: Past,
  after: View,
  returning: readonly Returning[],
): Promise<string[]> {
  const warnings: string[] = []
  for (const each of returning.slice(0, MAX_TOLD)) {
    const difference = await differenceOf(past, after, each)
    if (difference === undefined) continue
    const { clusters, since } = each
    const who = `${types.cluster.type.singular}${clusters.length === 1 ? '' : 's'} ${named(clusters)}`
    warnings.push(
      `${who}: ${called(types, each)} is not what it was at the deletion in revision ${since}: ${difference}; changed ${await authorsOf(past, each)}`,
    )
  }
  return [...warnings, ...rest(returning, 'changed since the clusters were deleted that use them')]
}

/** How a definition differs from what it was at the deletion; undefined when it does not. */
async function differenceOf(
  past: Past,
  after: View,
  { type, id, since }: Returning,
): Promise<string | undefined> {
  const known = await past.resolve({ revision: since }, 'the deletion')
  if (!known.ok) return 'the log does not reach back to what it was'
  const then = await past.entry(since, type, id)
  if (!then || then.deleted) return 'it did not exist then'
  const fields = diffFields(then.document, after.get(type, id)?.document)
  if (fields.length === 0) return undefined
  const told = fields
    .slice(0, MAX_FIELDS)
    .map(({ path, before, after: is }) => `${path} was ${excerpts(before, is).join(' and is ')}`)
  const more = fields.slice(MAX_FIELDS).map(({ path }) => path)
  return [...told, ...(more.length > 0 ? [`and ${named(more)} changed as well`] : [])].join(', ')
}

async function authorsOf(past: Past, { type, id, since }: Returning): Promise<string> {
  const documents = [{ type, id, from: since + 1 }]
  const found = await past.history({ documents, limit: MAX_AUTHORS + 1, changeLimit: 0 })
  if (found.length === 0) return 'in this write, or in a revision that the log no longer holds'
  const told = found.slice(0, MAX_AUTHORS).map(by)
  return `in ${[...told, ...(found.length > MAX_AUTHORS ? ['earlier ones'] : [])].join(', ')}`
}

function by({ revision, actor, time }: RecordedRevision): string {
  return `revision ${revision} by ${actor} (${time})`
}

/** Warns of definitions that others wrote and no cluster uses yet, unless the log no longer holds their author. */
async function warnOfFirstUse(
  types: Types,
  past: Past,
  actor: string,
  first: readonly FirstUse[],
): Promise<string[]> {
  const authors = new Map<number, RecordedRevision | undefined>()
  const foreign: FirstUse[] = []
  for (const each of first) {
    const { revision } = each
    if (!authors.has(revision) && authors.size < MAX_REVISIONS)
      authors.set(revision, (await past.history({ revision, limit: 1, changeLimit: 0 }))[0])
    const author = authors.get(revision)?.actor
    const isKnown = authors.has(revision) && (author === undefined || author === actor || author === SEEDER)
    if (!isKnown) foreign.push(each)
  }
  const warnings = foreign.slice(0, MAX_TOLD).map((each) => {
    const author = authors.get(each.revision)
    const last = author ? by(author) : `revision ${each.revision}`
    return `${called(types, each)}, which no cluster has yet, was last changed in ${last}: look at it first`
  })
  return [...warnings, ...rest(foreign, 'which no cluster has yet')]
}

function called(types: Types, { type, id }: DocumentName): string {
  return `${types.get(type)?.singular} "${id}"`
}

/** Names the definitions beyond MAX_TOLD. */
function rest(all: readonly DocumentName[], what: string): string[] {
  const more = all.slice(MAX_TOLD)
  if (more.length === 0) return []
  const names = more.slice(0, MAX_NAMED).map(({ type, id }) => `${type}/${id}`)
  return [`and ${more.length} more, ${what}: ${names.join(', ')}${more.length > MAX_NAMED ? ', …' : ''}`]
}

// Fields under a rollout are held: another write to them is refused, or it would be lost at the finish.
import { conflictOf, type Problem } from '../../base/problem.ts'
import { named } from '../../base/sentences.ts'
import type { Steps } from '../../base/steps.ts'
import type { Change, View } from '../documents/view.ts'
import type { ActiveRollout } from '../rollouts/active-rollout.ts'
import { type DocumentEdit, editsBetween, type FieldEdit, overlapOf } from '../rollouts/edits.ts'
import type { RolloutOverlay } from '../rollouts/rollout-overlay.ts'
import { stagingOf } from '../rollouts/staging.ts'
import { type Document, idsIn, type Types } from '../types/resource-type.ts'

export interface HeldWrite {
  readonly types: Types
  readonly before: View
  readonly changes: readonly Change[]
  /** Whether the changes are to be a rollout of their own: two of them may not add to the same list either. */
  readonly isStaged: boolean
  /** A rollout that holds nothing against this write: its own finish or amendment. */
  readonly except: string | undefined
}

interface HeldField {
  readonly rollout: string
  /** Type, id and JSON pointer. */
  readonly path: string
}

/** Returns why running rollouts do not let a write pass; undefined when they do. */
export function* checkHeldFields(write: HeldWrite): Steps<Problem | undefined> {
  const held: HeldField[] = []
  for (const { rollout, overlay } of rolloutsAround(write))
    for (const change of write.changes) {
      yield
      const path = heldField(write, overlay, change)
      if (path !== undefined) held.push({ rollout: rollout.id, path: `/${change.type}/${change.id}${path}` })
    }
  if (held.length === 0) return undefined
  const rollouts = [...new Set(held.map(({ rollout }) => rollout))]
  const ways = 'amend, supersede or abort it, wait for its end, or bypass it with a reason'
  return conflictOf(
    'held_by_rollout',
    `rollout ${named(rollouts)} is changing ${named(held.map(({ path }) => path))}: ${ways}`,
    held.map(({ rollout, path }) => ({ path, message: `is held by rollout ${rollout}` })),
  )
}

function rolloutsAround({ types, before, except }: HeldWrite): readonly ActiveRollout[] {
  return stagingOf(types, before).active.filter(({ rollout }) => rollout.id !== except)
}

/** The held field of a document that a change touches, as a JSON pointer. */
function heldField(
  { types, isStaged }: HeldWrite,
  overlay: RolloutOverlay,
  change: Change,
): string | undefined {
  const { type, id, before, after } = change
  const isCluster = type === types.cluster.type.name
  const isGone = !after || after.deleted
  // A member that is deleted is dropped from its rollout.
  if (isGone && isCluster) return undefined
  if (isGone && isUsed(types, overlay, type, id)) return ''
  const edit = overlay.edited(type).get(id)
  if (!edit) return undefined
  if (isGone || !('fields' in edit) || !before || before.deleted) return ''
  const normalise = types.get(type)?.normalise ?? ((document) => document)
  const written = editsBetween(before.document, after.document, normalise)
  return overlapOf(edit.fields, written) ?? (isStaged ? sharedContainer(edit.fields, written) : undefined)
}

/** Both add to the same list or map: the order of what they add would depend on which of them ends first. */
function sharedContainer(one: readonly FieldEdit[], other: readonly FieldEdit[]): string | undefined {
  const additions = (edits: readonly FieldEdit[]): string[] =>
    edits.filter(({ before }) => before === undefined).map(({ path }) => path.slice(0, path.lastIndexOf('/')))
  const containers = new Set(additions(one).filter((path) => path !== ''))
  return additions(other).find((path) => containers.has(path))
}

/** Whether the edits of a rollout bring references to a definition. */
function isUsed(types: Types, overlay: RolloutOverlay, type: string, id: string): boolean {
  const delivery = types.get(type)?.delivery
  const named = (edit: DocumentEdit, of: string): boolean => {
    if ('deleted' in edit) return false
    if ('created' in edit) return namesIn(types, edit.created, of, type, id)
    if (of === types.cluster.type.name && delivery)
      return edit.fields.some(
        ({ path, after }) => after !== undefined && isReference(path, delivery.assignedBy, id),
      )
    const fields = types.get(of)?.references.filter((reference) => reference.type === type) ?? []
    return edit.fields.some(
      ({ path, after }) =>
        after !== undefined && fields.some(({ field }) => path === `/${field}` && idsIn(after).includes(id)),
    )
  }
  for (const of of overlay.types)
    for (const edit of overlay.edited(of).values()) if (named(edit, of)) return true
  return false
}

function isReference(path: string, assignedBy: string, id: string): boolean {
  return (
    path === `/${assignedBy}` || path === `/${assignedBy}/${id}` || path.startsWith(`/${assignedBy}/${id}/`)
  )
}

function namesIn(types: Types, document: Document, of: string, type: string, id: string): boolean {
  const fields = types.get(of)?.references.filter((reference) => reference.type === type) ?? []
  return fields.some(({ field }) => idsIn(document[field]).includes(id))
}

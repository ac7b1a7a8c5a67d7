// A write past what a rollout holds: it changes the documents and what the rollout lays over them alike.
import { getOrSet } from '../../base/get-or-set.ts'
import { named } from '../../base/sentences.ts'
import type { Steps } from '../../base/steps.ts'
import type { Draft } from '../documents/draft.ts'
import type { Change, Entry, View } from '../documents/view.ts'
import type { Document, Types } from '../types/resource-type.ts'
import type { ActiveRollout } from './active-rollout.ts'
import { addEvent } from './advance.ts'
import { copyField } from './copy-field.ts'
import { type DocumentEdit, editsBetween, type FieldEdit, overlapOf } from './edits.ts'
import {
  asDocument,
  asPlan,
  ROLLOUT_PLANS,
  ROLLOUTS,
  type Rollout,
  type RolloutPlan,
  type Strategy,
} from './rollout.ts'
import { StagedView } from './staged-view.ts'
import { stagingOf } from './staging.ts'

export interface Bypassing {
  readonly by: string
  /** RFC 3339, UTC. */
  readonly at: string
  readonly reason: string
  /** The digest of a changed plan. */
  digest(plan: RolloutPlan, spec: Strategy): string
}

/** What the same commands change in another view; those that do not fit there change nothing. */
export type Rerun = (view: View) => Steps<readonly Change[]>

/**
 * Takes from the plans of running rollouts what the draft writes: clusters of open waves are served what was written at
 * once, and after the finish, and after an abort. What a rollout changes beside that it goes on changing.
 */
export function* bypassRollouts(
  types: Types,
  draft: Draft,
  before: View,
  rerun: Rerun,
  bypassing: Bypassing,
): Steps<void> {
  for (const active of stagingOf(types, before).active) {
    const written = yield* writtenOver(types, draft, before, active, rerun)
    if (written.size === 0) continue
    const plan = withoutWritten(asPlan(active.plan), written)
    draft.put(ROLLOUT_PLANS, asDocument(plan), { path: '' })
    draft.put(ROLLOUTS, asDocument(bypassed(active.rollout, plan, written, bypassing)), { path: '' })
  }
}

/** What is left of the edits of a document, and the field that was written. */
interface LeftEdits {
  readonly path: string
  readonly fields: readonly FieldEdit[]
}

/** By type and id. */
type Written = Map<string, Map<string, LeftEdits>>

function* writtenOver(
  types: Types,
  draft: Draft,
  before: View,
  { overlay }: ActiveRollout,
  rerun: Rerun,
): Steps<Written> {
  const staged = new StagedView(before, [overlay])
  // A field that is set to what it is without the rollout differs only in what the rollout makes of the document.
  const again = new Map((yield* rerun(staged)).map((change) => [`${change.type}/${change.id}`, change]))
  const written: Written = new Map()
  for (const { type, id } of draft.touched()) {
    yield
    const edit = overlay.edited(type).get(id)
    if (!edit) continue
    // A member that is deleted is dropped from its rollout.
    if (type === types.cluster.type.name && !draft.get(type, id)) continue
    const versions = { was: before.get(type, id), is: draft.get(type, id), laid: staged.get(type, id) }
    const left = leftOf(types, edit, versions, again.get(`${type}/${id}`))
    if (left) getOrSet(written, type, () => new Map()).set(id, left)
  }
  return written
}

/** A document before the write, after it, and before it as the rollout has it. */
interface Versions {
  readonly was: Entry | undefined
  readonly is: Entry | undefined
  readonly laid: Entry | undefined
}

/** Undefined where the write and the rollout change different fields. */
function leftOf(
  types: Types,
  edit: DocumentEdit,
  { was, is, laid }: Versions,
  again: Change | undefined,
): LeftEdits | undefined {
  // What the rollout makes or deletes as a whole is what was written.
  if (!('fields' in edit) || !was || !is || !laid) return { path: '', fields: [] }
  const normalise = types.get(edit.type)?.normalise ?? ((document) => document)
  const relaid = again?.after && !again.after.deleted ? again.after.document : laid.document
  const written = [
    ...editsBetween(was.document, is.document, normalise),
    ...editsBetween(laid.document, relaid, normalise),
  ]
  const path = overlapOf(edit.fields, written)
  if (path === undefined) return undefined
  const copied = written.reduce(
    (into: Document, each) => copyField(into, is.document, each.path),
    laid.document,
  )
  return { path, fields: editsBetween(is.document, normalise(copied) as Document, normalise) }
}

/** Documents that change in the same way share their edits again. */
function withoutWritten(plan: RolloutPlan, written: Written): RolloutPlan {
  const kept = plan.edits.flatMap((edit): DocumentEdit[] => {
    const ids = edit.ids.filter((id) => !written.get(edit.type)?.has(id))
    return ids.length === 0 ? [] : [{ ...edit, ids }]
  })
  const shared = new Map<string, { type: string; ids: string[]; fields: readonly FieldEdit[] }>()
  for (const [type, left] of written)
    for (const [id, { fields }] of left)
      if (fields.length > 0)
        getOrSet(shared, `${type} ${JSON.stringify(fields)}`, () => ({ type, ids: [], fields })).ids.push(id)
  return { ...plan, edits: [...kept, ...shared.values()] }
}

/** Approvals and answers of checks were about another plan. */
function bypassed(
  { checks: _, ...rollout }: Rollout,
  plan: RolloutPlan,
  written: Written,
  { by, at, reason, digest }: Bypassing,
): Rollout {
  const fields = [...written].flatMap(([type, left]) =>
    [...left].map(([id, { path }]) => `${type}/${id}${path}`),
  )
  const events = addEvent(rollout.events, { at, by, what: `bypassed: ${named(fields)}`, remark: reason })
  return { ...rollout, plan: digest(plan, rollout.spec), approvals: [], events }
}

// Who may act on a rollout: callers whose scope covers all that it changes, for its steps are theirs then too.
import { forbidden, type Problem } from '../../base/problem.ts'
import { named } from '../../base/sentences.ts'
import type { Selector } from '../access/selector.ts'
import type { Comparison } from '../delivery/compare-served.ts'
import { findVersion } from '../documents/find-document.ts'
import type { Change, View } from '../documents/view.ts'
import type { DocumentEdit } from '../rollouts/edits.ts'
import { HOLDS } from '../rollouts/hold.ts'
import { asPlan, ROLLOUT_PLANS, ROLLOUTS, type RolloutPlan } from '../rollouts/rollout.ts'
import type { Document, Types } from '../types/resource-type.ts'
import { typesTouched } from '../types/types-touched.ts'

interface Scope {
  readonly selector: Selector | undefined
  readonly types: readonly string[] | undefined
}

/**
 * Returns why changed rollouts and holds go beyond a scope; undefined when none does. `changes` are what is committed: a
 * rollout that takes the place of another changes that one too.
 */
export function refuseRollouts(
  scope: Scope,
  comparison: Comparison,
  changes: readonly Change[],
): Problem | undefined {
  if (!scope.selector && !scope.types) return undefined
  for (const change of changes) {
    const problem =
      change.type === HOLDS
        ? refuseHold(scope, comparison, change)
        : change.type === ROLLOUTS
          ? refuseRollout(scope, comparison, change)
          : undefined
    if (problem) return problem
  }
  return undefined
}

/** An amendment takes its clusters from the edits before, and gives them others. */
function refuseRollout(
  { selector, types: allowed }: Scope,
  { types, before, after }: Comparison,
  { id }: Change,
): Problem | undefined {
  const plans = [before, after].flatMap((view) => view.get(ROLLOUT_PLANS, id) ?? []).map(asPlan)
  const touched = allowed
    ? plans.flatMap(({ edits }) => edits.flatMap((edit) => typesEdited(types, edit)))
    : []
  const foreign = [...new Set(touched)].filter((name) => !allowed?.includes(name))
  const outside = selector ? membersOutside(types, before, plans, selector) : []
  if (foreign.length + outside.length === 0) return undefined
  const what =
    outside.length > 0 ? `clusters outside your scope: ${named(outside)}` : `documents of ${named(foreign)}`
  return forbidden('out_of_scope', `rollout "${id}" changes ${what}`, [
    { path: `/${ROLLOUTS}/${id}`, message: `changes ${what}` },
  ])
}

/** The types that an edit touches: of a cluster, those of what it is assigned and has values for. */
function typesEdited(types: Types, edit: DocumentEdit): string[] {
  const { type } = edit
  if (!('fields' in edit)) return [type]
  const version = (document: Document) => ({ document, deleted: false })
  return edit.fields.flatMap(({ path, before, after }) => {
    const [, field = ''] = path.split('/')
    // Only which of the fields differ matters, and the whole of a document is one edit where nothing finer is exact.
    const [was, is] = field === '' ? [before, after] : [{}, { [field]: [path] }]
    return typesTouched(types, {
      type,
      before: version((was ?? {}) as Document),
      after: version((is ?? {}) as Document),
    })
  })
}

/** Deleted clusters count too: they may be restored while the rollout goes on. */
function membersOutside(
  { cluster }: Types,
  view: View,
  plans: readonly RolloutPlan[],
  selector: Selector,
): string[] {
  const outside = new Set<string>()
  for (const id of plans.flatMap(({ members }) => members.flat())) {
    const entry = findVersion(view, cluster.type.name, id)
    if (entry && !selector.matches(entry.document)) outside.add(id)
  }
  return [...outside]
}

/** What holds a cluster keeps everything from it, of whatever type. */
function refuseHold(
  { selector, types: allowed }: Scope,
  { types: { cluster }, before }: Comparison,
  { id }: Change,
): Problem | undefined {
  const { name, singular } = cluster.type
  const document = findVersion(before, name, id)?.document
  const isOutside = selector && document && !selector.matches(document)
  if (!isOutside && (!allowed || allowed.includes(name))) return undefined
  const what = isOutside ? `${singular} "${id}" is outside your scope` : `holds are of the type ${name}`
  return forbidden('out_of_scope', `this changes the hold of ${singular} "${id}": ${what}`, [
    { path: `/${HOLDS}/${id}`, message: what },
  ])
}

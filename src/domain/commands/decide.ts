// The one place that says what a write changes: commands and a view in, changes or a problem out.

import { pointer } from '../../base/json.ts'
import {
  fail,
  invalid,
  MAX_DETAILS,
  MAX_FOUND,
  notFound,
  type Problem,
  type Result,
  succeed,
} from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { parseSelector } from '../access/selector.ts'
import type { StatusReader } from '../access/selector-subjects.ts'
import { UnknownKeys } from '../access/unknown-keys.ts'
import { servedVersions } from '../delivery/served-version.ts'
import { Draft } from '../documents/draft.ts'
import { unknownDocument } from '../documents/find-document.ts'
import type { Overlay } from '../documents/overlay.ts'
import type { Change, View } from '../documents/view.ts'
import { checkLimits } from '../guards/answer-limits.ts'
import { checkIntegrity } from '../guards/check-integrity.ts'
import { checkPatchNames } from '../guards/check-patch-names.ts'
import { checkRules } from '../guards/check-rules.ts'
import { findUnmetNeeds } from '../guards/unmet-needs.ts'
import { warnOfReserved } from '../guards/warn-of-reserved.ts'
import { type Bypassing, bypassRollouts } from '../rollouts/bypass.ts'
import {
  actOnRollout,
  finishRollout,
  holdCluster,
  putRollout,
  releaseCluster,
} from '../rollouts/rollout-commands.ts'
import { type DeliveredType, findReference, type ResourceType, type Types } from '../types/resource-type.ts'
import { assign, patchValues, unassign } from './assignment-commands.ts'
import { type Assign, type Command, type ForClusters, type Outcome, onCluster } from './command.ts'
import { create, patch, remove, replace, restore } from './document-commands.ts'
import { revokeOrphans } from './revoke-orphans.ts'
import { createToken, issueToken, revokeToken, rotateToken } from './token-commands.ts'
import { reset, undoChange } from './undo-commands.ts'

export interface Decision {
  readonly changes: readonly Change[]
  readonly warnings: readonly string[]
  /** One per command, in their order. */
  readonly outcomes: readonly Outcome[]
  /** The view with the changes in it. */
  readonly after: Overlay
}

/** A check of the outcome of all commands, whatever they are; returns its warnings. */
type Check = (types: Types, draft: Draft, before: View) => Steps<Result<readonly string[]>>
const CHECKS: readonly Check[] = [
  checkIntegrity,
  checkRules,
  checkPatchNames,
  checkLimits,
  warnOfReserved,
  findUnmetNeeds,
]

/**
 * Decides all commands or none. Later commands see what earlier ones did. Only previews have a reader of status. With
 * `bypassing`, running rollouts give up what is written.
 */
export function* decide(
  types: Types,
  view: View,
  commands: readonly Command[],
  status?: StatusReader,
  bypassing?: Bypassing,
): Steps<Result<Decision>> {
  const draft = new Draft(view, types.cluster)
  const assigned = new Map<string, Assign>()
  const work: Work = { types, draft, assigned, status }
  const outcomes: Outcome[] = []
  const problems: Problem[] = []
  for (const command of commands) {
    yield
    const outcome = yield* run(work, command)
    if (outcome.ok) outcomes.push(outcome.value)
    else problems.push(locate(outcome.problem, command))
    if (problems.length > MAX_FOUND) break
  }
  if (problems.length > 0) return fail(joined(problems))
  const contradicted = checkIntent(types, view, draft, assigned)
  if (!contradicted.ok) return contradicted
  yield* revokeOrphans(types, draft, outcomes)
  if (bypassing)
    yield* bypassRollouts(types, draft, view, (other) => rerun(types, other, commands, status), bypassing)
  const warnings = outcomes.flatMap((outcome) => outcome.warnings ?? [])
  for (const check of CHECKS) {
    const checked = yield* check(types, draft, view)
    if (!checked.ok) return asConflict(commands, checked)
    for (const warning of checked.value) warnings.push(warning)
  }
  return succeed({ changes: draft.changes(), warnings, outcomes, after: draft })
}

/** What commands change in another view, each for itself. A replaced document is compared with what it was instead. */
function* rerun(
  types: Types,
  view: View,
  commands: readonly Command[],
  status: StatusReader | undefined,
): Steps<readonly Change[]> {
  const draft = new Draft(view, types.cluster)
  const work: Work = { types, draft, assigned: new Map(), status }
  for (const { expect: _, ...command } of commands) {
    yield
    if (command.op !== 'replace') yield* run(work, command)
  }
  return draft.changes()
}

/** The first problem, with the details of all others of its code. Problems of other codes may be consequences of it. */
function joined([first, ...others]: readonly Problem[]): Problem {
  const problem = first as Problem
  const alike = others.filter((other) => other.code === problem.code)
  const more = alike.flatMap((other) => other.details ?? [])
  if (!problem.details || more.length === 0) return problem
  const all = [...problem.details, ...more]
  if (problem.code !== 'validation_error') return { ...problem, details: all.slice(0, MAX_DETAILS) }
  const isOne = alike.every(({ reason }) => reason === problem.reason)
  return invalid(all, isOne ? problem.reason : undefined).problem
}

/**
 * Turns a problem of undos, resets and restores into a conflict: their sender has nothing to correct, the fleet has
 * changed since.
 */
function asConflict(
  commands: readonly Command[],
  refused: { readonly ok: false; readonly problem: Problem },
): Result<never> {
  const returns = commands.every(({ op }) => op === 'undo' || op === 'reset' || op === 'restore')
  const { problem } = refused
  if (!returns || problem.code === 'conflict') return refused
  const { message, details = [] } = problem
  return fail({ code: 'conflict', reason: 'no_longer_valid', message, details })
}

/** Points a problem without details at the command as a whole. */
function locate(problem: Problem, { operation }: Pick<Command, 'operation'>): Problem {
  if (operation === undefined || problem.details) return problem
  const { message } = problem
  return { ...problem, message: `${operation}: ${message}`, details: [{ path: operation, message }] }
}

/** One write cannot both assign a document and delete it. */
function checkIntent(
  types: Types,
  view: View,
  draft: Draft,
  assigned: ReadonlyMap<string, Assign>,
): Result<void> {
  const details = [...assigned.values()]
    .filter(({ type, id }) => !draft.get(type, id) && (view.get(type, id) || draft.has(type, id)))
    .map(({ type, id, path }) => ({
      path: pointer(path, 'id'),
      message: `assigns ${types.get(type)?.singular} "${id}", which the same write deletes: do one or the other`,
    }))
  return details.length > 0 ? invalid(details) : succeed(undefined)
}

/** What all commands of a write work on. */
interface Work {
  readonly types: Types
  readonly draft: Draft
  /** What was assigned so far, by type and id. */
  readonly assigned: Map<string, Assign>
  readonly status: StatusReader | undefined
}

function* run(work: Work, command: Command): Steps<Result<Outcome>> {
  if (command.op === 'for_clusters') return yield* runForClusters(work, command)
  const { types, draft, assigned } = work
  if (command.op === 'patch_values') return patchValues(types, draft, command)
  if (command.op === 'create_token') return yield* createToken(types, draft, command)
  if (command.op === 'rotate_token') return rotateToken(draft, command)
  if (command.op === 'issue_token') return yield* issueToken(types, draft, command)
  if (command.op === 'revoke_token') return revokeToken(draft, command)
  if (command.op === 'put_rollout') return putRollout(draft, command)
  if (command.op === 'act_on_rollout') return actOnRollout(types, draft, command)
  if (command.op === 'finish_rollout') return yield* finishRollout(types, draft, command)
  if (command.op === 'hold_cluster') return holdCluster(types, draft, command)
  if (command.op === 'release_cluster') return releaseCluster(draft, command)
  const type = types.get(command.type)
  if (!type) return notFound('type', command.type)
  switch (command.op) {
    case 'create':
      return create(draft, type, command)
    case 'replace':
      return replace(draft, type, command)
    case 'patch':
      return yield* patch(draft, type, command)
    case 'delete':
      return yield* remove(types, draft, type, command)
    case 'restore':
      return restore(draft, type, command)
    case 'reset':
      return reset(types, draft, type, command)
    case 'undo':
      return undoChange(types, draft, type, command)
    case 'assign':
      assigned.set(`${command.type}/${command.id}`, command)
      return withDelivered(type, (delivered) => assign(types, draft, delivered, command))
    case 'unassign':
      return withDelivered(type, (delivered) => unassign(types, draft, delivered, command))
  }
}

function withDelivered(type: ResourceType, use: (type: DeliveredType) => Result<Outcome>): Result<Outcome> {
  return type.delivery ? use(type as DeliveredType) : notFound('assignable type', type.name)
}

function* runForClusters(work: Work, command: ForClusters): Steps<Result<Outcome>> {
  const { types, draft } = work
  const found = yield* findTargets(work, command)
  if (!found.ok) return found
  const { ids, warnings = [] } = found.value
  for (const [i, id] of ids.entries()) {
    yield
    const done = yield* run(work, onCluster(command.command, id))
    if (draft.excess) return invalid([{ path: command.path, message: draft.excess }])
    if (!done.ok) return 'ids' in command.targets ? fail(locate(done.problem, placed(command, i))) : done
  }
  const type = types.cluster.type.name
  return succeed({ type, id: ids[0] ?? '', created: false, warnings })
}

/** The place of one of the clusters that a command names. */
function placed({ path }: ForClusters, i: number): { readonly operation: string } {
  return { operation: pointer(path, i) }
}

function* findTargets(
  { types, draft, status }: Work,
  { targets, path }: ForClusters,
): Steps<Result<{ ids: readonly string[]; warnings?: readonly string[] }>> {
  if ('ids' in targets) return succeed(targets)
  const { having, allowEmpty } = targets
  const parsed = parseSelector(types, targets.selector, { status, version: servedVersions(types) })
  if (!parsed.ok) return invalid([{ path, message: parsed.message }])
  const { selector } = parsed
  const type = having && types.get(having.type)
  const delivery = type?.delivery
  const ids: string[] = []
  const keys = new UnknownKeys(types.cluster, selector)
  let without = 0
  for (const { id, document } of draft.all(types.cluster.type.name)) {
    yield
    keys.see(document)
    if (!selector.matches(document, draft)) continue
    if (having && !(delivery && findReference(document, delivery, having.id))) without++
    else ids.push(id)
  }
  // The id of the assigned document may be wrong, and not the selector.
  const unknown =
    type && !draft.get(type.name, having.id) ? unknownDocument(draft, type, having.id) : undefined
  if (ids.length === 0 && !allowEmpty) {
    const message =
      without > 0
        ? `matches ${without} clusters, none of which is assigned "${having?.id}"`
        : `matches no cluster`
    const [misspelt] = keys.warnings(draft)
    const [hint, reason] =
      without > 0 && unknown
        ? ([unknown, 'unknown_reference'] as const)
        : misspelt
          ? ([misspelt, 'unknown_label'] as const)
          : (['correct it, or set allow_empty to true', 'no_match'] as const)
    return invalid([{ path, message: `${message}: ${hint}` }], reason)
  }
  const warning =
    without > 0 &&
    `${without} of the clusters that match (${selector.text}) ${without === 1 ? 'does' : 'do'} not have "${having?.id}": ${unknown ?? 'nothing changes there'}`
  return succeed({ ids, warnings: [...keys.warnings(draft), ...(warning ? [warning] : [])] })
}

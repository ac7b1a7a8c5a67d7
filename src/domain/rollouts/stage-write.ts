// From a decided write to a rollout of it: edits of fields, members of waves, and the first wave opened.
import { getOrSet } from '../../base/get-or-set.ts'
import type { Json } from '../../base/json.ts'
import { type Detail, fail, invalid, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { type Grant, grantIn } from '../access/grant.ts'
import { Comparison } from '../delivery/compare-served.ts'
import type { ServedView } from '../delivery/served-view.ts'
import type { Change, View } from '../documents/view.ts'
import { type Document, dnsOf, type Types } from '../types/resource-type.ts'
import { addEvent, advance, type Surroundings } from './advance.ts'
import { type DocumentEdit, editsBetween, type FieldEdit } from './edits.ts'
import { keepWaves } from './keep-waves.ts'
import { type ResolvedWave, type ResolvedWaves, resolveWaves } from './resolve-waves.ts'
import type { Rollout, RolloutPlan, Strategy, Wave } from './rollout.ts'
import { stagingOf } from './staging.ts'

/** What is asked for beside the change itself. */
export interface RolloutRequest {
  readonly id: string
  /** The strategy's name; undefined where the waves came with the write. */
  readonly strategy: string | undefined
  readonly spec: Strategy
  /** Where the waves stand in what was sent; undefined where they are those of a rollout that goes on. */
  readonly path: string | undefined
  /** A rollout that goes on, whose members stay in their waves. */
  readonly keeps?: string
  readonly message: string | null
  readonly startedBy: string
  readonly grant: Grant | undefined
  /** Whether it passes the freezes that the grant may pass. */
  readonly bypass: boolean
  readonly operation: string
  readonly operations: readonly Json[]
  /** A running rollout that this one takes the place of. */
  readonly supersedes?: string
}

export interface StagedWrite {
  readonly rollout: Rollout
  readonly plan: RolloutPlan
  readonly waves: readonly ResolvedWave[]
  readonly warnings: readonly string[]
}

/** Everything but the digest of the plan, which `write` gives. */
export function* stageWrite(
  comparison: Comparison,
  changes: readonly Change[],
  request: RolloutRequest,
  { now, present }: Pick<Surroundings, 'now'> & { readonly present: View },
  digest: (members: RolloutPlan['members']) => Steps<string>,
): Steps<Result<StagedWrite>> {
  const { types, before } = comparison
  const edits = yield* editsOf(types, changes)
  if (!edits.ok) return edits
  const resolved = yield* resolveMembers(comparison, request, present)
  if (!resolved.ok) return resolved
  const { waves, warnings } = resolved.value
  const members = waves.map((wave) => wave.members)
  const plan: RolloutPlan = { id: request.id, edits: edits.value, operations: request.operations, members }
  const started = {
    at: now,
    by: request.startedBy,
    what: 'started',
    ...(request.message && { remark: request.message }),
  }
  const rollout: Rollout = {
    id: request.id,
    state: 'pending',
    ...(request.strategy !== undefined && { strategy: request.strategy }),
    message: request.message,
    started_by: request.startedBy,
    started_at: now,
    ...(request.grant && { grant: grantIn(request.grant) }),
    ...(request.bypass && { bypass: true }),
    plan: yield* digest(members),
    spec: { ...request.spec, waves: waves.map(({ spec }) => spec) },
    waves: waves.map(
      ({ spec, members: ids }): Wave => ({
        name: spec.name,
        state: 'waiting',
        members: ids.length,
        opened: 0,
      }),
    ),
    approvals: [],
    skipped: [],
    set_aside: [],
    waiting_for: null,
    events: addEvent([], started),
    operation: request.operation,
    base_revision: before.revision,
  }
  return succeed({ rollout, plan, waves, warnings })
}

/** Skips empty waves and opens the first one, unless something keeps it from that. */
export function openFirst(rollout: Rollout, around: Surroundings): Rollout {
  let next = rollout
  while (next.waves.every(({ opened }) => opened === 0)) {
    const done = advance(next, [], around)
    if (done.kind !== 'step') break
    next = done.rollout
  }
  return next
}

/**
 * The members are the clusters that would be served something else; held ones, once they are released. `present` has the
 * rollout that is amended, and what is compared has not.
 */
function* resolveMembers(
  comparison: Comparison,
  { spec, path, keeps }: Pick<RolloutRequest, 'spec' | 'path' | 'keeps'>,
  present: View,
): Steps<Result<ResolvedWaves>> {
  const { types, before } = comparison
  const clusters = types.cluster.type.name
  const affected: string[] = []
  const staging = stagingOf(types, before)
  const released = new Comparison(
    types,
    before,
    comparison.after,
    (_types, view, id) => stagingOf(types, view).unheldViewFor(id) as ServedView,
  )
  for (const { id } of comparison.candidates()) {
    yield
    if (!before.get(clusters, id)) continue
    const compared = staging.isHeld(id) ? released : comparison
    if (compared.compare({ id }).length > 0) affected.push(id)
  }
  if (affected.length === 0)
    return fail({
      code: 'conflict',
      reason: 'nothing_to_roll_out',
      message: 'no cluster would be served anything else: write it without a rollout',
    })
  const kept = stagingOf(types, present).active.find(({ rollout }) => rollout.id === keeps)
  if (kept) return succeed(yield* keepWaves(types, before, kept, affected))
  return yield* resolveWaves(types, before, spec, affected, path)
}

/** The edits of a write; documents that change in the same way share one. */
function* editsOf(types: Types, changes: readonly Change[]): Steps<Result<DocumentEdit[]>> {
  const shared = new Map<string, { type: string; ids: string[]; fields: readonly FieldEdit[] }>()
  const whole: DocumentEdit[] = []
  const details: Detail[] = []
  for (const change of changes) {
    yield
    const { type, id, before, after } = change
    const refused = refuse(types, change)
    if (refused !== undefined) details.push({ path: `/${type}/${id}`, message: refused })
    else if (!after) whole.push({ type, ids: [id], deleted: true })
    else if (!before || before.deleted) whole.push({ type, ids: [id], created: after.document })
    else {
      const normalise = types.get(type)?.normalise ?? ((document) => document)
      const fields = editsBetween(before.document, after.document, normalise)
      getOrSet(shared, `${type} ${JSON.stringify(fields)}`, () => ({ type, ids: [], fields })).ids.push(id)
    }
  }
  if (details.length > 0) return invalid(details, 'not_staged')
  return succeed([...whole, ...shared.values()])
}

/** What reaches no cluster by its polls, or decides which cluster polls, cannot be staged. */
function refuse(types: Types, { type, before, after }: Change): string | undefined {
  const { cluster } = types
  if (!types.get(type)) return `is of the type ${type}, which a rollout does not stage`
  if (type !== cluster.type.name) return undefined
  if (!before || before.deleted)
    return 'would be created or restored: a rollout stages changes of live clusters'
  if (!after || after.deleted) return 'would be deleted: delete clusters without a rollout'
  const [was, is]: readonly Document[] = [before.document, after.document]
  return dnsOf(cluster, was as Document) === dnsOf(cluster, is as Document)
    ? undefined
    : 'would get another DNS name: change that without a rollout'
}

/**
 * A rollout with other edits: approvals of the earlier ones are void, and open waves have to prove the new ones. What is
 * open of a wave stays open, and the rest of it waits for the waves before.
 */
export function amended(
  rollout: Rollout,
  staged: Rollout,
  waves: readonly (ResolvedWave & { readonly opened: number })[],
  {
    restart,
    keeps,
    by,
    around,
  }: {
    readonly restart: boolean
    /** Whether the waves are the same as before. */
    readonly keeps: boolean
    readonly by: string
    readonly around: Pick<Surroundings, 'now' | 'revision'>
  },
): Rollout {
  const what = restart ? 'amended, with its waves started again' : 'amended'
  const { now: opened_at, revision: opened_revision } = around
  const next = waves.map(({ spec, members, opened }, at): Wave => {
    const wave: Wave = { name: spec.name, state: 'waiting', members: members.length, opened }
    const former = keeps ? rollout.waves[at] : undefined
    if (former?.state === 'skipped' && former.members > 0) return { ...wave, state: 'skipped' }
    const isNext = waves.slice(0, at).every((each) => each.opened > 0 || each.members.length === 0)
    return opened === 0 ? wave : { ...wave, ...(isNext && { state: 'open' }), opened_at, opened_revision }
  })
  // It acts with what the one who amended it may do from here on, who may be allowed less than its starter.
  const { baking_since: _, joined: __, checks: ___, grant: ____, bypass: _____, ...rest } = rollout
  return {
    ...rest,
    ...(staged.grant && { grant: staged.grant }),
    ...(staged.bypass && { bypass: true }),
    amended_by: by,
    message: staged.message ?? rollout.message,
    plan: staged.plan,
    operation: staged.operation,
    spec: staged.spec,
    waves: next,
    approvals: [],
    set_aside: [],
    waiting_for: null,
    state: next.some(({ opened }) => opened > 0) ? 'running' : 'pending',
    events: addEvent(rollout.events, {
      ...{ at: around.now, by, what },
      ...(staged.message && { remark: staged.message }),
    }),
  }
}

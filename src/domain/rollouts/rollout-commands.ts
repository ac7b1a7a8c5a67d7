// Commands on rollouts: what people and the controller do to one that is there.
import { conflictOf, fail, invalid, type Result, succeed } from '../../base/problem.ts'
import { named } from '../../base/sentences.ts'
import type { Steps } from '../../base/steps.ts'
import { overProblem } from '../../base/time.ts'
import type {
  ActOnRollout,
  FinishRollout,
  HoldCluster,
  Outcome,
  PutRollout,
  ReleaseCluster,
  RolloutAction,
} from '../commands/command.ts'
import type { Draft } from '../documents/draft.ts'
import { checkExpectation, findLive } from '../documents/find-document.ts'
import type { Entry } from '../documents/view.ts'
import type { Document, Types } from '../types/resource-type.ts'
import { activeRolloutOf } from './active-rollout.ts'
import { actorOf, addEvent, type Surroundings } from './advance.ts'
import { answerCheck, otherPlan } from './answer-check.ts'
import { approve, nextToApprove } from './approvals.ts'
import { asHold, documentsOf, HOLDS, type Hold } from './hold.ts'
import {
  asDocument,
  asPlan,
  asRollout,
  isActive,
  ROLLOUT_PLANS,
  ROLLOUTS,
  type Rollout,
  type Wave,
} from './rollout.ts'
import { overlayOf } from './rollout-overlay.ts'
import { amended, type StagedWrite } from './stage-write.ts'
import { MAX_ACTIVE, stagingOf } from './staging.ts'

const TYPE = { name: ROLLOUTS, singular: 'rollout' }
const HOLD = { name: HOLDS, singular: 'hold' }
const HERE = { path: '' }

/** Where a staged write goes: a rollout of its own, one that takes the place of another, or another's new edits. */
interface StagedTarget {
  readonly supersedes?: string
  readonly amends?: { readonly id: string; readonly restart: boolean }
  /** The amended rollout, where its members stay in their waves. */
  readonly keeps?: string
}

/** Puts a staged write into a draft; returns it as it stands there. */
export function putStaged(
  types: Types,
  draft: Draft,
  staged: StagedWrite,
  { supersedes, amends, keeps }: StagedTarget,
  { by, around }: { readonly by: string; readonly around: Pick<Surroundings, 'now' | 'revision'> },
): Result<StagedWrite> {
  if (supersedes !== undefined) {
    const action = { kind: 'abort', remark: `superseded by ${staged.rollout.id}` } as const
    const ended = actOnRollout(types, draft, {
      op: 'act_on_rollout',
      id: supersedes,
      action,
      by,
      at: around.now,
      path: '',
    })
    if (!ended.ok && ended.problem.code === 'not_found')
      return invalid(
        [{ path: '/rollout/supersedes', message: `names no rollout "${supersedes}"` }],
        'unknown_reference',
      )
    if (!ended.ok) return ended
  }
  const target = amends
    ? amend(types, draft, staged, { ...amends, keeps: keeps !== undefined, by, around })
    : succeed(staged)
  if (!target.ok) return target
  const { rollout, plan } = target.value
  if (!amends && stagingOf(types, draft).active.length >= MAX_ACTIVE)
    return fail(
      conflictOf('too_many_rollouts', `${MAX_ACTIVE} rollouts are active already: wait for one to end`),
    )
  draft.put(ROLLOUTS, asDocument(rollout), HERE)
  draft.put(ROLLOUT_PLANS, asDocument(plan), HERE)
  return target
}

function amend(
  types: Types,
  draft: Draft,
  staged: StagedWrite,
  { id, ...how }: { readonly id: string } & Parameters<typeof amended>[3],
): Result<StagedWrite> {
  const found = findActive(draft, { id })
  if (!found.ok) return found
  const former = asRollout(found.value)
  const plan = how.restart ? undefined : draft.get(ROLLOUT_PLANS, id)
  const active = plan && activeRolloutOf(types, found.value, plan)
  const isOpen = (cluster: string): boolean => active?.isOpenFor(cluster) ?? false
  // What is open stays open: those members come first.
  const waves = staged.waves.map(({ spec, members }) => ({
    spec,
    members: [...members.filter(isOpen), ...members.filter((cluster) => !isOpen(cluster))],
    opened: members.filter(isOpen).length,
  }))
  const rollout = amended(former, staged.rollout, waves, how)
  return succeed({
    ...staged,
    waves,
    rollout,
    plan: { ...staged.plan, id, members: waves.map(({ members }) => members) },
  })
}

/** Writes a step that the controller has worked out. */
export function putRollout(draft: Draft, { rollout, assumed, expect }: PutRollout): Result<Outcome> {
  const found = findActive(draft, { id: rollout.id, ...(expect && { expect }) })
  if (!found.ok) return found
  // Other writes may have come in between.
  const actual = (revision: number): number => (revision === assumed ? draft.revision : revision)
  const waves = rollout.waves.map(({ opened_revision, widenings, ...wave }) => ({
    ...wave,
    ...(opened_revision !== undefined && { opened_revision: actual(opened_revision) }),
    ...(widenings && { widenings: widenings.map(([from, revision]) => [from, actual(revision)] as const) }),
  }))
  draft.put(ROLLOUTS, asDocument({ ...rollout, waves }), HERE)
  return done(rollout.id)
}

export function actOnRollout(types: Types, draft: Draft, command: ActOnRollout): Result<Outcome> {
  const found = findActive(draft, command)
  if (!found.ok) return found
  const changed = act(asRollout(found.value), command.action, command, (id) =>
    isMember(types, draft, found.value, id),
  )
  if (!changed.ok) return changed
  const { action, by, at } = command
  const remark = 'remark' in action && action.remark !== undefined ? { remark: action.remark } : {}
  const events = addEvent(changed.value.events, { at, by, what: wordFor(action), ...remark })
  draft.put(ROLLOUTS, asDocument({ ...changed.value, events }), HERE)
  if (!isActive(changed.value)) draft.remove(ROLLOUT_PLANS, command.id, HERE)
  return done(command.id)
}

/** Writes the edits into the documents and drops the overlay: members of open waves are served the same bytes. */
export function* finishRollout(types: Types, draft: Draft, command: FinishRollout): Steps<Result<Outcome>> {
  const found = findActive(draft, command)
  if (!found.ok) return found
  const { id, by, at, remark, absent } = command
  const rollout = asRollout(found.value)
  const plan = draft.get(ROLLOUT_PLANS, id)
  if (!plan) return done(id)
  const overlay = overlayOf(types, plan)
  draft.remove(ROLLOUT_PLANS, id, HERE)
  if (rollout.spec.stragglers === 'hold') yield* holdStragglers(types, draft, rollout, command)
  for (const { type, ids } of asPlan(plan).edits) {
    for (const document of ids) {
      yield
      const current = draft.get(type, document)
      const laid = overlay.lay(type, document, current)
      if (!laid && current) draft.remove(type, document, HERE)
      else if (laid && laid !== current) draft.putExactly(type, laid.document, HERE, false)
    }
  }
  const finished = { at, by, what: 'finished', ...(remark !== undefined && { remark }) }
  const ended: Rollout = {
    ...rollout,
    waiting_for: null,
    state: 'finished',
    ended_at: at,
    set_aside: absent,
    events: addEvent(rollout.events, finished),
  }
  draft.put(ROLLOUTS, asDocument(ended), HERE)
  return done(id)
}

/** Absent clusters that were never served the change keep what they would be served without it. */
function* holdStragglers(
  types: Types,
  draft: Draft,
  rollout: Rollout,
  { stragglers, at }: FinishRollout,
): Steps<void> {
  const clusters = types.cluster.type.name
  const staging = stagingOf(types, draft)
  for (const id of stragglers) {
    yield
    const served = staging.viewFor(id)
    const cluster = served.get(clusters, id)
    if (!cluster || staging.isHeld(id)) continue
    const reason = `was absent during rollout ${rollout.id}`
    const documents = documentsOf(types, served, cluster)
    const hold: Hold = { id, reason, held_by: actorOf(rollout), since: at, documents }
    draft.put(HOLDS, hold as unknown as Document, HERE)
  }
}

function findActive(draft: Draft, { id, expect }: Pick<ActOnRollout, 'id' | 'expect'>): Result<Entry> {
  const found = findLive(draft, TYPE, id, expect)
  if (!found.ok) return found
  const { state } = asRollout(found.value)
  if (isActive({ state })) return found
  return fail(conflictOf('rollout_ended', `rollout "${id}" is ${state}: it cannot be changed any more`))
}

function isMember(types: Types, draft: Draft, rollout: Entry, cluster: string): boolean {
  const plan = draft.get(ROLLOUT_PLANS, rollout.id)
  return plan !== undefined && activeRolloutOf(types, rollout, plan).placeOf(cluster) !== undefined
}

function act(
  rollout: Rollout,
  action: RolloutAction,
  { by, at }: Pick<ActOnRollout, 'by' | 'at'>,
  isMemberOf: (cluster: string) => boolean,
): Result<Rollout> {
  switch (action.kind) {
    case 'pause':
      return rollout.state === 'paused'
        ? refused(rollout, 'pause')
        : succeed({ ...rollout, state: 'paused', waiting_for: action.remark ?? `${by} paused it` })
    case 'resume':
      return rollout.state === 'paused' ? succeed(resumed(rollout)) : refused(rollout, 'resume')
    case 'retry':
      return succeed({ ...resumed(rollout), retried_at: at, set_aside: [] })
    case 'abort':
      return succeed({ ...rollout, state: 'aborted', ended_at: at, waiting_for: null })
    case 'approve':
      return approveWave(rollout, action, by, at)
    case 'check':
      return answerCheck(rollout, action, by, at)
    case 'skip':
      return 'wave' in action
        ? skipWave(rollout, action.wave, at)
        : skipClusters(rollout, action.clusters, isMemberOf)
  }
}

function resumed(rollout: Rollout): Rollout {
  const isUntouched = rollout.waves.every(({ state }) => state === 'waiting')
  const state = rollout.baking_since !== undefined ? 'baking' : isUntouched ? 'pending' : 'running'
  // Checks that did not answer in time are asked again.
  const waves = rollout.waves.map(({ checks_since: _, ...wave }) => wave)
  return { ...rollout, state, waves, waiting_for: null }
}

function approveWave(
  rollout: Rollout,
  { wave: name, when, remark, plan, role }: Extract<RolloutAction, { kind: 'approve' }>,
  by: string,
  at: string,
): Result<Rollout> {
  const wave =
    name === undefined
      ? nextToApprove(rollout, when, at)
      : rollout.waves.findIndex((each) => each.name === name)
  if (wave < 0 && name === undefined)
    return fail(
      conflictOf('wave_ended', `all waves of rollout "${rollout.id}" have ended: nothing waits for it`),
    )
  if (wave < 0) return unknownWave(rollout, name ?? '')
  if (plan !== undefined && plan !== rollout.plan) return otherPlan(rollout, 'approval')
  return approve(rollout, { wave, when, by, at, remark, role })
}

/** A wave that waits keeps the base until the finish; of one that is open the gates no longer count. */
function skipWave(rollout: Rollout, name: string, at: string): Result<Rollout> {
  const place = rollout.waves.findIndex((wave) => wave.name === name)
  const wave = rollout.waves[place]
  if (!wave) return unknownWave(rollout, name)
  if (wave.state === 'passed' || wave.state === 'skipped')
    return fail(conflictOf('wave_ended', `wave "${name}" is ${wave.state} already`))
  const skipped: Wave =
    wave.state === 'open' ? { ...wave, state: 'passed', passed_at: at } : { ...wave, state: 'skipped' }
  return succeed({ ...rollout, waves: rollout.waves.with(place, skipped) })
}

function skipClusters(
  rollout: Rollout,
  clusters: readonly string[],
  isMemberOf: (id: string) => boolean,
): Result<Rollout> {
  const unknown = clusters.flatMap((id, i) =>
    isMemberOf(id) ? [] : [{ path: `/clusters/${i}`, message: `"${id}" is in no wave of this rollout` }],
  )
  if (unknown.length > 0) return invalid(unknown)
  return succeed({ ...rollout, skipped: [...new Set([...rollout.skipped, ...clusters])] })
}

function unknownWave({ waves }: Rollout, name: string): Result<never> {
  const known = waves.map((wave) => wave.name)
  return invalid([{ path: '/wave', message: `names no wave: "${name}"; there are ${named(known)}` }])
}

function refused({ id, state }: Rollout, what: string): Result<never> {
  return fail(conflictOf('rollout_state', `rollout "${id}" is ${state}: there is nothing to ${what}`))
}

function wordFor(action: RolloutAction): string {
  switch (action.kind) {
    case 'skip':
      return 'wave' in action ? `skipped wave ${action.wave}` : `skipped ${named([...action.clusters])}`
    case 'approve':
      return `approved${action.wave === undefined ? '' : ` wave ${action.wave}`}`
    case 'check':
      return `check ${action.name} of wave ${action.wave}: ${action.ok ? 'ok' : 'not ok'}`
    case 'pause':
      return 'paused'
    case 'resume':
      return 'resumed'
    case 'retry':
      return 'retried'
    case 'abort':
      return 'aborted'
  }
}

function done(id: string): Result<Outcome> {
  return succeed({ type: ROLLOUTS, id, created: false })
}

/** Holds a cluster at what it is served now. A hold that is there keeps its documents: only its end and reason change. */
export function holdCluster(
  types: Types,
  draft: Draft,
  { cluster: id, until, reason, by, at, expect }: HoldCluster,
): Result<Outcome> {
  const clusters = types.cluster.type
  const found = findLive(draft, clusters, id, undefined)
  if (!found.ok) return found
  const over = until === undefined ? undefined : overProblem(until, at)
  if (over) return invalid([{ path: '/until', message: over }])
  const known = draft.get(HOLDS, id)
  const met = checkExpectation(HOLD, id, known, expect)
  if (!met.ok) return met
  const served = stagingOf(types, draft).viewFor(id)
  const cluster = served.get(clusters.name, id) ?? found.value
  const documents = known ? asHold(known).documents : documentsOf(types, served, cluster)
  const since = known ? asHold(known).since : at
  const hold: Hold = { id, ...(until !== undefined && { until }), reason, held_by: by, since, documents }
  draft.put(HOLDS, hold as unknown as Document, HERE)
  return succeed({ type: HOLDS, id, created: !known })
}

export function releaseCluster(
  draft: Draft,
  { cluster: id, expect, ifHeld = false }: ReleaseCluster,
): Result<Outcome> {
  if (ifHeld && !draft.get(HOLDS, id)) return succeed({ type: HOLDS, id, created: false })
  const found = findLive(draft, HOLD, id, expect)
  if (!found.ok) return found
  draft.remove(HOLDS, id, HERE)
  return succeed({ type: HOLDS, id, created: false, removed: found.value.document })
}

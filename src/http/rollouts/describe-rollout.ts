// A rollout as it is shown: what is stored of it, and how far its members are now.
import {
  type MissingApproval,
  SHOWN_EDITS,
  SHOWN_OPERATIONS,
  type ShownEdit,
  type ShownRollout,
  type ShownWave,
} from '../../api/rollout-schema.ts'
import type { Steps } from '../../base/steps.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import { advance } from '../../domain/rollouts/advance.ts'
import { authorsOf, missingApproval } from '../../domain/rollouts/approvals.ts'
import type { DocumentEdit } from '../../domain/rollouts/edits.ts'
import {
  asPlan,
  asRollout,
  type Rollout,
  specOf,
  type Wave,
  type WaveCounts,
} from '../../domain/rollouts/rollout.ts'
import { stagingOf } from '../../domain/rollouts/staging.ts'
import { surroundingsOf } from '../../domain/rollouts/wave-blocks.ts'
import { countsOf, evaluate, setAsideIn, type WaveTally } from '../../domain/rollouts/wave-gates.ts'
import type { Types } from '../../domain/types/resource-type.ts'
import type { Fleet } from '../../engine/fleet/fleet.ts'
import { tallyRollout } from '../../engine/rollouts/tally-rollout.ts'

const NO_COUNTS: WaveCounts = { served: 0, applied: 0, healthy: 0, failed: 0, set_aside: 0 }

export interface Seen {
  readonly types: Types
  readonly fleet: Fleet
  readonly view: View
  readonly now: Date
}

/** Of a rollout that has ended, what was kept at its last decision. */
export function* describeRollout({ types, fleet, view, now }: Seen, entry: Entry): Steps<ShownRollout> {
  const rollout = asRollout(entry)
  const active = stagingOf(types, view).active.find((each) => each.entry === entry)
  if (!active) return shown(rollout, rollout.waiting_for, storedWave)
  const tallies = yield* tallyRollout({ types, fleet, view }, active)
  const around = yield* surroundingsOf({ types, view, active, now })
  const next = advance(rollout, tallies, around)
  const waitingFor = next.kind === 'wait' ? next.waitingFor : rollout.waiting_for
  const described = shown(rollout, waitingFor, (wave, i) => {
    const missing_approvals = missingOf(rollout, wave, i, around.now)
    return {
      ...describeWave(rollout, wave, i, tallies[i], around.now),
      ...(missing_approvals.length > 0 && { missing_approvals }),
    }
  })
  // Those that have returned since are not set aside any more.
  const set_aside = tallies.flatMap((tally, i) => setAsideIn(rollout, i, tally, around.now))
  return { ...described, set_aside }
}

/** The same with what it changes. */
export function* describeInFull(seen: Seen, entry: Entry): Steps<ShownRollout> {
  const described = yield* describeRollout(seen, entry)
  const active = stagingOf(seen.types, seen.view).active.find((each) => each.entry === entry)
  if (!active) return described
  const { edits, operations } = asPlan(active.plan)
  return {
    ...described,
    edits: edits.slice(0, SHOWN_EDITS).map(shownEdit),
    ...(operations.length > 0 && operations.length <= SHOWN_OPERATIONS && { operations }),
  }
}

function shownEdit(edit: DocumentEdit): ShownEdit {
  const { type, ids } = edit
  const fields = 'fields' in edit ? edit.fields : []
  return {
    type,
    op: 'fields' in edit ? 'update' : 'created' in edit ? 'create' : 'delete',
    documents: ids.length,
    ids: ids.slice(0, SHOWN_EDITS),
    fields: fields
      .slice(0, SHOWN_EDITS)
      .map(({ path, before = null, after = null }) => ({ path, before, after })),
  }
}

/** As it is stored, without what its members have come to. */
export function storedRollout(rollout: Rollout): ShownRollout {
  return shown(rollout, rollout.waiting_for, storedWave)
}

function shown(
  rollout: Rollout,
  waitingFor: string | null,
  waveOf: (wave: Wave, i: number) => ShownWave,
): ShownRollout {
  const { id, state, strategy = null, message, started_by, started_at, ended_at } = rollout
  const { operation, plan, approvals, checks = [], events, skipped, set_aside, bypass } = rollout
  return {
    id,
    state,
    strategy,
    message,
    started_by,
    started_at,
    ...(ended_at !== undefined && { ended_at }),
    waiting_for: waitingFor,
    waves: rollout.waves.map(waveOf),
    operation,
    plan,
    ...(bypass && { bypass }),
    approvals,
    checks,
    skipped,
    set_aside,
    events,
  }
}

function storedWave(wave: Wave): ShownWave {
  const { counts = NO_COUNTS, gates = [] } = wave
  return { ...frameOf(wave), ...counts, gates }
}

function describeWave(
  rollout: Rollout,
  wave: Wave,
  i: number,
  tally: WaveTally | undefined,
  now: string,
): ShownWave {
  if (!tally || wave.opened === 0) return storedWave(wave)
  const setAside = setAsideIn(rollout, i, tally, now).length
  return {
    ...frameOf(wave),
    members: tally.members,
    ...countsOf(tally, setAside),
    gates: evaluate(rollout, i, tally, setAside),
  }
}

/** One before is not asked for any more of a wave that is open, and none of one that is through. */
function missingOf(rollout: Rollout, { state }: Wave, i: number, now: string): MissingApproval[] {
  if (state === 'passed' || state === 'skipped') return []
  const asked = state === 'open' ? (['after'] as const) : (['before', 'after'] as const)
  return asked.flatMap((when) => {
    const message = missingApproval(rollout, i, when, now)
    const { not_starter = false, role } = specOf(rollout, i).approval?.[when] ?? {}
    if (message === undefined) return []
    return [
      {
        when,
        message,
        ...(not_starter && { not_by: authorsOf(rollout) }),
        ...(role === 'admin' && { role }),
      },
    ]
  })
}

function frameOf({ name, state, members, opened, opened_at, passed_at }: Wave) {
  return {
    name,
    state,
    members,
    opened,
    ...(opened_at !== undefined && { opened_at }),
    ...(passed_at !== undefined && { passed_at }),
  }
}

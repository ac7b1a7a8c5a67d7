// A rollout as it is shown: what is stored of it, and how far its members are now.
import type { ShownRollout, ShownWave } from '../../api/rollout-schema.ts'
import type { Steps } from '../../base/steps.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import { advance } from '../../domain/rollouts/advance.ts'
import { asRollout, type Rollout, type Wave, type WaveCounts } from '../../domain/rollouts/rollout.ts'
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
  const described = shown(rollout, waitingFor, (wave, i) =>
    describeWave(rollout, wave, i, tallies[i], around.now),
  )
  // Those that have returned since are not set aside any more.
  const set_aside = tallies.flatMap((tally, i) => setAsideIn(rollout, i, tally, around.now))
  return { ...described, set_aside }
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

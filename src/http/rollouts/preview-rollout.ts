// What a preview says of a rollout: its waves with their members, and how long it takes at least.
import type { AbsentCluster, PlannedWave } from '../../api/rollout-schema.ts'
import type { Steps } from '../../base/steps.ts'
import { AWAY } from '../../domain/rollouts/member-progress.ts'
import type { ResolvedWave } from '../../domain/rollouts/resolve-waves.ts'
import type { StagedWrite } from '../../domain/rollouts/stage-write.ts'
import { stagingOf } from '../../domain/rollouts/staging.ts'
import { allowedFailures, gatesOf, neededOf } from '../../domain/rollouts/strategy.ts'
import type { Service } from '../service.ts'

export interface RolloutPreview {
  readonly waves: readonly PlannedWave[]
  readonly expected_duration_s: number
  readonly warnings: readonly string[]
}

/** Ids that a planned wave lists. */
const LISTED = 20

export function* previewRollout(
  service: Pick<Service, 'engine' | 'types'>,
  { waves, rollout }: StagedWrite,
): Steps<RolloutPreview> {
  let seconds = rollout.spec.bake_s ?? 0
  const planned: PlannedWave[] = []
  const warnings: string[] = []
  for (const wave of waves) {
    const { slowestMs, ...missing } = yield* lookAt(service, wave.members)
    const takes = durationOf(wave, slowestMs / 1000)
    seconds += takes
    planned.push({ ...planOf(wave), ...missing, expected_duration_s: Math.ceil(takes) })
    if (missing.absent > 0 && missing.absent === wave.members.length)
      warnings.push(
        `wave "${wave.spec.name}" does not pass before one of its clusters answers: all of them are absent now`,
      )
  }
  return { waves: planned, expected_duration_s: Math.ceil(seconds), warnings }
}

/** The longest interval of some clusters, and those of them that nothing is to be expected of now. */
function* lookAt(
  { engine, types }: Pick<Service, 'engine' | 'types'>,
  members: readonly string[],
): Steps<{ readonly slowestMs: number } & Pick<PlannedWave, 'absent' | 'absent_details'>> {
  const { fleet } = engine.fleet
  const staging = stagingOf(types, engine.state)
  const details: AbsentCluster[] = []
  let [slowestMs, absent] = [0, 0]
  for (const id of members) {
    yield
    const cluster = engine.state.get(types.cluster.type.name, id)
    if (!cluster) continue
    const { intervalMs, contact } = fleet.pulseOf(cluster)
    const why = staging.isHeld(id) ? 'held' : AWAY.find((away) => away === contact)
    if (why === undefined) slowestMs = Math.max(slowestMs, intervalMs)
    else if (++absent <= LISTED) details.push({ cluster: id, why })
  }
  return { slowestMs, absent, absent_details: details }
}

/** What each gate comes to in numbers of clusters, and what else keeps a wave from opening or passing. */
function planOf({
  spec,
  members,
}: ResolvedWave): Omit<PlannedWave, 'absent' | 'absent_details' | 'expected_duration_s'> {
  const gates = gatesOf(spec)
  const of = members.length
  const percents = (['served_percent', 'applied_percent', 'healthy_percent'] as const).flatMap((kind) => {
    const percent = gates[kind]
    return percent === undefined ? [] : [{ kind, needed: neededOf(percent, of), of }]
  })
  const failures = { kind: 'failures', needed: allowedFailures(gates, of), of }
  const { max_concurrent, start_at, window, approval } = spec
  return {
    name: spec.name,
    members: of,
    details: members.slice(0, LISTED),
    gates: [...percents, failures],
    ...(gates.soak_s !== undefined && { soak_s: gates.soak_s }),
    ...(gates.checks && { checks: gates.checks }),
    ...(max_concurrent !== undefined && { max_concurrent }),
    ...(start_at !== undefined && { start_at }),
    ...(window && { window }),
    ...(approval && { approval }),
  }
}

/** A wave takes as long as its slowest member to poll and to report, batch after batch, and then soaks. */
function durationOf({ spec, members }: ResolvedWave, intervalS: number): number {
  if (members.length === 0) return 0
  const batches = Math.ceil(members.length / (spec.max_concurrent ?? members.length))
  return batches * intervalS + (gatesOf(spec).soak_s ?? 0)
}

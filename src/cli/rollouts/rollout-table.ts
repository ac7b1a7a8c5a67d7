// Rollouts and their waves as tables.
import type { ShownMember, ShownRollout, ShownWave } from '../../api/rollout-schema.ts'
import { ageOf } from '../../base/relative-time.ts'
import { type GateResult, isActive } from '../../domain/rollouts/rollout.ts'
import type { Look } from '../output/print.ts'

/** A row for each rollout: how far it is, and what it is about. */
export function rolloutTable({ table, wide }: Look, rollouts: readonly ShownRollout[], now: Date): string {
  const headers = ['ID', 'STATE', 'WAVE', 'CLUSTERS', 'FAILED', 'AGE', 'BY', 'CHANGE']
  const rows = rollouts.map((rollout) => {
    const { id, state, waves, started_at, started_by, strategy, waiting_for } = rollout
    return [
      id,
      state,
      placeOf(rollout),
      `${sum(waves, 'opened')}/${sum(waves, 'members')}`,
      String(sum(waves, 'failed')),
      ageOf(started_at, now),
      started_by,
      changeOf(rollout),
      ...(wide ? [strategy ?? '', waiting_for ?? ''] : []),
    ]
  })
  return table(wide ? [...headers, 'STRATEGY', 'WAITING'] : headers, rows)
}

/** What a rollout is about: why it was started, or else what was written. */
export function changeOf({ message, operation }: ShownRollout): string {
  return message ?? operation
}

/** Counted over all waves. */
export function sum(
  waves: readonly ShownWave[],
  count: 'members' | 'opened' | 'served' | 'applied' | 'failed',
): number {
  return waves.reduce((total, wave) => total + wave[count], 0)
}

/** The wave that a rollout is at; undefined where all of them are done. */
export function currentWave({ waves }: Pick<ShownRollout, 'waves'>): ShownWave | undefined {
  return waves.find(({ state }) => state === 'open' || state === 'waiting')
}

/** `canary (4 of 7)`: where a rollout is, as long as it is under way. */
export function placeOf(rollout: Pick<ShownRollout, 'waves' | 'state'>): string {
  const { state, waves } = rollout
  const wave = currentWave(rollout)
  if (!wave || !isActive({ state })) return ''
  return `${wave.name} (${waves.indexOf(wave) + 1} of ${waves.length})`
}

/** A row for each wave: how many of its clusters have come how far, and which gates do not hold yet, or all of them. */
export function waveTable(
  { table }: Pick<Look, 'table'>,
  waves: readonly ShownWave[],
  { hasAllGates = false } = {},
): string {
  const number = (value: number): string => value.toLocaleString('en')
  const rows = waves.map((wave) => [
    wave.name,
    wave.state,
    number(wave.members),
    number(wave.opened),
    number(wave.served),
    number(wave.applied),
    number(wave.healthy),
    number(wave.failed),
    number(wave.set_aside),
    wave.gates
      .filter((gate) => hasAllGates || isMissing(gate))
      .map(gateText)
      .join(', '),
  ])
  return table(
    [
      'WAVE',
      'STATE',
      'CLUSTERS',
      'OPEN',
      'SERVED',
      'APPLIED',
      'HEALTHY',
      'FAILED',
      'ASIDE',
      hasAllGates ? 'GATES' : 'LACKS',
    ],
    rows,
  )
}

/** As long as nobody was served it, the limit of failures does not hold either: others say so already. */
function isMissing({ kind, holds, count, needed_count }: GateResult): boolean {
  return !holds && (kind !== 'failures' || count > needed_count)
}

/** `2/4 applied`: so many of those that are needed; `1 failed, at most 0`. */
function gateText({ kind, name, holds, count, needed_count }: GateResult): string {
  if (kind === 'check') return `check ${name}${holds ? ' passed' : ''}`
  if (kind === 'failures') return `${count} failed, at most ${needed_count}`
  return `${count}/${needed_count} ${kind.replace(/_percent$/, '')}`
}

export function memberTable({ table }: Look, members: readonly ShownMember[]): string {
  return table(
    ['CLUSTER', 'WAVE', 'STATE'],
    members.map(({ cluster, wave, state }) => [cluster, wave, state]),
  )
}

// A wave in words: who is in it, what it has to prove, and what else keeps it from opening and from passing.
import { formatDuration } from '../../base/duration.ts'
import { count } from '../../base/sentences.ts'
import type { Gates, WaveSpec } from './rollout.ts'

export function whoIn({ selector, percent, count: number, clusters = [] }: WaveSpec): string {
  if (selector !== undefined) return selector
  if (percent !== undefined) return `up to ${percent}% of the rest`
  if (number !== undefined) return `${count(number, 'cluster')} of the rest`
  return clusters.length > 0 ? clusters.join(', ') : 'the rest'
}

/** Without what it waits for besides: its soak, its checks. */
export function gateWords(gates: Gates): string[] {
  const { soak_s: _, checks: __, failures, ...percents } = gates
  const shares = Object.entries(percents).flatMap(([kind, percent]) =>
    typeof percent === 'number' ? [`${percent}% ${kind.replace(/_percent$/, '')}`] : [],
  )
  return [...shares, `${failures === 0 ? '0' : `at most ${failures}`} failed`]
}

type Conditions = Pick<WaveSpec, 'max_concurrent' | 'start_at' | 'window' | 'approval' | 'gates'> &
  Pick<Gates, 'soak_s' | 'checks'>

/** `2/2 applied`, `0 failed`, `soak 10m`, …: the gates as they are given, and what else a wave waits for. */
export function waveConditions(gates: readonly string[], wave: Conditions): string[] {
  const { max_concurrent, start_at, window, approval } = wave
  const { soak_s = wave.gates?.soak_s ?? 0, checks = wave.gates?.checks ?? [] } = wave
  return [
    ...gates,
    ...(soak_s > 0 ? [`soak ${formatDuration(soak_s)}`] : []),
    ...checks.map(({ name }) => `check ${name}`),
    ...(max_concurrent === undefined ? [] : [`${max_concurrent} at a time`]),
    ...(start_at === undefined ? [] : [`not before ${start_at}`]),
    ...(window === undefined
      ? []
      : [`only at ${window.cron} (${window.zone ?? 'UTC'}) for ${formatDuration(window.duration_s)}`]),
    ...(['before', 'after'] as const).flatMap((when) => {
      const rule = approval?.[when]
      if (!rule) return []
      const { count = 1, not_starter = false, role } = rule
      const whose = role === 'admin' ? 'admin ' : ''
      return [`${count} ${whose}approval${count === 1 ? '' : 's'} ${when}${not_starter ? ' by others' : ''}`]
    }),
  ]
}

// What keeps a wave from opening and from passing, in words.
import { formatDuration } from '../../base/duration.ts'
import type { Gates, WaveSpec } from '../../domain/rollouts/rollout.ts'

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

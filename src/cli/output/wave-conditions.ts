// What keeps a wave from opening and from passing, in words.
import type { Gates, WaveSpec } from '../../domain/rollouts/rollout.ts'
import { howLong } from './relative-time.ts'

type Conditions = Pick<WaveSpec, 'max_concurrent' | 'start_at' | 'window' | 'approval' | 'gates'> &
  Pick<Gates, 'soak_s'>

/** `2/2 applied`, `0 failed`, `soak 10m`, …: the gates as they are given, and what else a wave waits for. */
export function waveConditions(gates: readonly string[], wave: Conditions): string[] {
  const { max_concurrent, start_at, window, approval } = wave
  const { soak_s = wave.gates?.soak_s ?? 0 } = wave
  return [
    ...gates,
    ...(soak_s > 0 ? [`soak ${howLong(soak_s * 1000)}`] : []),
    ...(max_concurrent === undefined ? [] : [`${max_concurrent} at a time`]),
    ...(start_at === undefined ? [] : [`not before ${start_at}`]),
    ...(window === undefined ? [] : [`only at ${window.cron} for ${howLong(window.duration_s * 1000)}`]),
    ...(['before', 'after'] as const).flatMap((when) => {
      const rule = approval?.[when]
      if (!rule) return []
      const { count = 1, not_starter = false } = rule
      return [`${count} approval${count === 1 ? '' : 's'} ${when}${not_starter ? ' by others' : ''}`]
    }),
  ]
}

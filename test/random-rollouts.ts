// Everything that happens to a fleet with rollouts, at random.
import fc from 'fast-check'
import type { Command, RolloutAction } from '../src/domain/commands/command.ts'
import type { Strategy } from '../src/domain/rollouts/rollout.ts'
import { changes, cluster, component, strategy, writes } from './random-changes.ts'

export type Happening =
  | { readonly kind: 'write'; readonly commands: readonly Command[] }
  | {
      readonly kind: 'start'
      readonly commands: readonly Command[]
      readonly spec: Strategy
      readonly supersedes?: number
    }
  | {
      readonly kind: 'amend'
      readonly rollout: number
      readonly commands: readonly Command[]
      readonly spec: Strategy
      readonly restart: boolean
    }
  | { readonly kind: 'act'; readonly rollout: number; readonly action: RolloutAction; readonly by: string }
  | { readonly kind: 'finish'; readonly rollout: number }
  | { readonly kind: 'hold' | 'release'; readonly cluster: string }
  | { readonly kind: 'poll'; readonly cluster: string; readonly replica: number }
  | { readonly kind: 'report'; readonly cluster: string; readonly replica: number; readonly isLate: boolean }
  | { readonly kind: 'fail'; readonly cluster: string; readonly component: string; readonly replica: number }
  | { readonly kind: 'honest' | 'progress' | 'race' }
  | { readonly kind: 'wait'; readonly seconds: number }
  | { readonly kind: 'tick'; readonly replica: number }
  | { readonly kind: 'restart'; readonly replica: number }

const replica = fc.nat({ max: 1 })
const rollout = fc.nat({ max: 3 })
const action: fc.Arbitrary<RolloutAction> = fc.oneof(
  fc.constantFrom<RolloutAction[]>(
    { kind: 'pause' },
    { kind: 'resume' },
    { kind: 'resume' },
    { kind: 'retry' },
    { kind: 'approve' },
    { kind: 'approve' },
    { kind: 'approve', when: 'after' },
    { kind: 'skip', wave: 'w0' },
    { kind: 'abort' },
  ),
  cluster.map((id): RolloutAction => ({ kind: 'skip', clusters: [id] })),
)

const HAPPENINGS = {
  write: { weight: 5, arbitrary: writes.map((commands) => ({ kind: 'write', commands }) as const) },
  start: {
    weight: 6,
    arbitrary: fc
      .record({
        commands: changes,
        spec: strategy,
        supersedes: fc.option(rollout, { nil: undefined, freq: 8 }),
      })
      .map(
        ({ supersedes, ...more }) =>
          ({ kind: 'start', ...more, ...(supersedes !== undefined && { supersedes }) }) as const,
      ),
  },
  amend: {
    weight: 1,
    arbitrary: fc
      .record({ rollout, commands: changes, spec: strategy, restart: fc.boolean() })
      .map((more) => ({ kind: 'amend', ...more }) as const),
  },
  act: {
    weight: 3,
    arbitrary: fc
      .record({ rollout, action, by: fc.constantFrom('ann', 'ben', 'law') })
      .map((more) => ({ kind: 'act', ...more }) as const),
  },
  finish: { weight: 1, arbitrary: rollout.map((which) => ({ kind: 'finish', rollout: which }) as const) },
  hold: {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom('hold', 'release'), cluster)
      .map(([kind, id]) => ({ kind, cluster: id }) as const),
  },
  poll: {
    weight: 4,
    arbitrary: fc.record({ cluster, replica }).map((more) => ({ kind: 'poll', ...more }) as const),
  },
  report: {
    weight: 3,
    arbitrary: fc
      .record({ cluster, replica, isLate: fc.boolean() })
      .map((more) => ({ kind: 'report', ...more }) as const),
  },
  fail: {
    weight: 1,
    arbitrary: fc.record({ cluster, component, replica }).map((more) => ({ kind: 'fail', ...more }) as const),
  },
  honest: { weight: 4, arbitrary: fc.constant({ kind: 'honest' } as const) },
  wait: {
    weight: 3,
    arbitrary: fc.constantFrom(1, 60, 700, 4000).map((seconds) => ({ kind: 'wait', seconds }) as const),
  },
  tick: { weight: 8, arbitrary: replica.map((at) => ({ kind: 'tick', replica: at }) as const) },
  progress: { weight: 4, arbitrary: fc.constant({ kind: 'progress' } as const) },
  race: { weight: 3, arbitrary: fc.constant({ kind: 'race' } as const) },
  restart: { weight: 1, arbitrary: replica.map((at) => ({ kind: 'restart', replica: at }) as const) },
}

/** Happenings of some kinds, or of all. */
export function happenings(
  kinds: readonly (keyof typeof HAPPENINGS)[] = Object.keys(HAPPENINGS) as (keyof typeof HAPPENINGS)[],
  length: { readonly minLength: number; readonly maxLength: number } = { minLength: 30, maxLength: 80 },
): fc.Arbitrary<Happening[]> {
  return fc.array(fc.oneof(...kinds.map((kind) => HAPPENINGS[kind])), length) as fc.Arbitrary<Happening[]>
}

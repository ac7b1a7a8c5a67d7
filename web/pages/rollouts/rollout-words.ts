// What the words for waves and for members of a rollout mean, and how they look.
import type { MemberState, ShownRollout } from '../../../src/api/rollout-schema.ts'
import { type GateResult, isActive, type Wave } from '../../../src/domain/rollouts/rollout.ts'
import type { ShownState, Tone } from '../../parts/state-words.ts'

export const WAVES: Readonly<Record<Wave['state'], ShownState>> = {
  waiting: { tone: 'none', meaning: 'It is not open yet: its clusters keep what they have.' },
  open: { tone: 'busy', meaning: 'Its clusters are served the change, and its gates are watched.' },
  passed: { tone: 'good', meaning: 'All of its gates held; failures in it are still watched.' },
  skipped: { tone: 'none', meaning: 'It was left out, or has no clusters.' },
}

interface MemberLook {
  readonly tone: Tone
  /** Tells it apart without its colour. */
  readonly sign: string
  readonly meaning: string
}

export const MEMBERS: Readonly<Record<MemberState, MemberLook>> = {
  failed: { tone: 'bad', sign: '◆', meaning: 'a changed component fails, or the answer was rejected' },
  waiting: { tone: 'none', sign: '·', meaning: 'its turn has not come' },
  open: { tone: 'busy', sign: '○', meaning: 'it may have the change, and has not asked yet' },
  served: { tone: 'busy', sign: '◔', meaning: 'it got the change, and has not reported it yet' },
  applied: { tone: 'good', sign: '◑', meaning: 'it reports the change as applied' },
  healthy: { tone: 'good', sign: '●', meaning: 'it reports every changed component as ready' },
  absent: { tone: 'warn', sign: '?', meaning: 'nothing is to be expected of it now' },
  skipped: { tone: 'none', sign: '–', meaning: 'somebody left it out' },
  unaffected: { tone: 'none', sign: '=', meaning: 'the rollout changes nothing for it any more' },
}

const GATES: Readonly<Record<GateResult['kind'], string>> = {
  served_percent: 'served',
  applied_percent: 'applied',
  healthy_percent: 'healthy',
  failures: 'failed',
  check: 'check',
}

/** The value of a gate beside its threshold: `38 of 40 applied, needs 38`. */
export function wordsOfGate({ kind, name, count, of, needed_count, holds }: GateResult): string {
  if (kind === 'check') return `check ${name}: ${holds ? 'yes' : 'no answer of yes yet'}`
  const limit = kind === 'failures' ? `at most ${needed_count}` : `needs ${needed_count}`
  return `${count} of ${of} ${GATES[kind]}, ${limit}`
}

export function hasEnded(rollout: Pick<ShownRollout, 'state'>): boolean {
  return !isActive(rollout)
}

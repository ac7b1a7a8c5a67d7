// What each word for a state means and which tone it has; the words are those of the service.
import type { RolloutState } from '../../src/domain/rollouts/rollout.ts'
import type { ClusterProblem } from '../../src/domain/status/find-problem.ts'
import type { Contact, Delivered, Health } from '../../src/domain/status/status-words.ts'

export type State = Contact | Delivered | Health | ClusterProblem | RolloutState
/** `good` is what is proven; what is not known is `none`. */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'none'

export interface ShownState {
  readonly tone: Tone
  readonly meaning: string
}

/** What was good of a cluster that is silent now is not known to be so still. */
export function lastKnown({ tone, meaning }: ShownState): ShownState {
  return {
    tone: tone === 'good' || tone === 'busy' ? 'none' : tone,
    meaning: `When it was last heard of: ${meaning}`,
  }
}

export const STATES: Readonly<Record<State, ShownState>> = {
  current: { tone: 'good', meaning: 'It polled or reported within 1.5 of its intervals.' },
  late: { tone: 'warn', meaning: 'Not heard of within 1.5 of its intervals, but within 3.' },
  offline: { tone: 'bad', meaning: 'Not heard of for more than 3 of its intervals.' },
  refused: { tone: 'bad', meaning: 'It does not get through: its requests fail with 401, 403 or 404.' },
  never: { tone: 'none', meaning: 'It has not spoken yet.' },
  unobserved: { tone: 'none', meaning: 'It polls where nobody tells this service.' },
  deleted: { tone: 'none', meaning: 'Its document was deleted.' },
  behind: { tone: 'warn', meaning: 'Its last poll got something else than it would get now.' },
  served: { tone: 'busy', meaning: 'It got the present answer, and has not reported it yet.' },
  rejected: { tone: 'bad', meaning: 'It got the present answer, and its ResourceSet fails.' },
  applied: { tone: 'good', meaning: 'It reported the present answer as applied.' },
  held: { tone: 'none', meaning: 'It is kept at an earlier answer on purpose.' },
  healthy: { tone: 'good', meaning: 'A report says that this very input is applied and ready.' },
  progressing: { tone: 'busy', meaning: 'It was served lately, and is not ready yet.' },
  failed: { tone: 'bad', meaning: 'An event says that it fails.' },
  unknown: { tone: 'none', meaning: 'Nothing was heard, too long ago, or about another input.' },
  stuck: { tone: 'bad', meaning: 'It reports, and has not applied what it was served long ago.' },
  partial: { tone: 'warn', meaning: 'It polls, and has long not asked for one of its endpoints.' },
  flapping: {
    tone: 'warn',
    meaning: 'Four times within an hour contact changed, or a component failed or recovered.',
  },
  pending: { tone: 'none', meaning: 'It has not started yet.' },
  running: { tone: 'busy', meaning: 'Its waves open one after the other.' },
  paused: { tone: 'warn', meaning: 'It opens no further wave until somebody resumes it.' },
  baking: { tone: 'busy', meaning: 'All waves are open, and it is watched for a while.' },
  finished: { tone: 'good', meaning: 'Every cluster gets the change.' },
  aborted: { tone: 'bad', meaning: 'It was ended, and the change taken back.' },
}

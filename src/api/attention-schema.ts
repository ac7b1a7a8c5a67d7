// The clusters that need somebody, on the wire.
import { type ClusterProblem, PROBLEMS } from '../domain/status/find-problem.ts'
import { ref } from './component-ref.ts'
import { CLUSTER, COUNT, described, MAYBE_TIME, object, TEXT, word } from './schema-parts.ts'

export interface TroubledCluster {
  readonly cluster: string
  readonly environment: string | null
  /** The worst one. */
  readonly problem: ClusterProblem
  readonly since: string | null
  readonly component: string | null
  readonly endpoint: string | null
  readonly reason: string | null
  readonly message: string | null
  /** One sentence with a command. */
  readonly next_step: string
}

export interface Attention {
  readonly total: number
  /** Worst first. */
  readonly clusters: readonly TroubledCluster[]
}

export const ATTENTION_SCHEMAS = {
  troubled_cluster: object({
    cluster: CLUSTER,
    environment: TEXT,
    problem: word(PROBLEMS),
    since: described(MAYBE_TIME, 'When it began; null when that is not known.'),
    component: described(TEXT, 'The component that failed.'),
    endpoint: described(
      TEXT,
      'The endpoint whose inputs are not applied or not asked for, or that the component belongs to.',
    ),
    reason: TEXT,
    message: TEXT,
    next_step: described({ type: 'string' }, 'One sentence with the command to run next.'),
  }),
  attention: object({
    total: COUNT,
    clusters: { type: 'array', items: ref('troubled_cluster') },
  }),
}

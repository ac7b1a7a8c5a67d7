// What is known of a cluster: its polls, its reports, its events. Times are milliseconds since the epoch.
import type { Halves } from '../../base/digest.ts'
import type { ReadyList } from './ready-list.ts'

/** The digest of an answer; undefined of one without inputs. */
export type AnswerMark = Halves | undefined

/** The last answered poll of one endpoint. */
export interface PollEvidence {
  readonly at: number
  readonly mark: AnswerMark
  /** The revision that the answer was of. */
  readonly revision: number
  /** When answers of this mark began, and the revision of the first. */
  readonly since: number
  readonly sinceRevision: number
  /**
   * The revision that last opened a rollout for the cluster, as of the answers since then, and when the first of these
   * was given: it may have been the same answer as before. 0 where no rollout was open.
   */
  readonly stagedFrom: number
  readonly stagedSince: number
  /** The interval that two gaps in a row agree on; 0 while it is unknown. */
  readonly intervalMs: number
}

/** What a report says of one endpoint. */
export interface AppliedMark {
  readonly mark: Halves
  /** When the first report with this mark came. */
  readonly since: number
  /** The newest revision that is known to have been served with this mark; 0 when the service did not see it. */
  readonly revision: number
}

/** The last report of what a cluster has applied. */
export interface ReportEvidence {
  readonly at: number
  /** The interval that the cluster says it polls at; 0 when it does not. */
  readonly everyMs: number
  readonly applied: ReadonlyMap<string, AppliedMark>
  readonly ready: ReadyList
  /** Where a cluster reports part by part: when each of them was reported last. */
  readonly parts?: ReadonlyMap<string, number>
}

/** The last poll or report of a cluster that was refused. */
export interface RefusalEvidence {
  readonly at: number
  readonly status: number
  readonly reason: string
}

/** The newest failure of one object on a cluster that no success has followed. */
export interface FailureEvidence {
  /** When it was last reported, and when first. */
  readonly at: number
  readonly since: number
  /** The digest of the input that it is about, where the event said so. */
  readonly mark: AnswerMark
  readonly reason: string
  readonly message: string
}

/** What a failure is about: the input of a component, or all inputs of an endpoint. */
export type FailureSubject = { readonly component: string } | { readonly endpoint: string }

export interface Evidence {
  /** By endpoint. */
  poll(endpoint: string): PollEvidence | undefined
  readonly report: ReportEvidence | undefined
  readonly refusal: RefusalEvidence | undefined
  /** When the cluster last got an answer of any kind; 0 for never. */
  readonly lastSeen: number
  failureOf(subject: FailureSubject): FailureEvidence | undefined
}

/**
 * When a cluster was first given its last answer while a wave that this revision opened was open for it. Undefined where it
 * was not: the same answer from before, whatever made it then, says nothing of a rollout.
 */
export function givenSince(poll: PollEvidence, revision: number): number | undefined {
  if (poll.revision < revision || poll.stagedFrom < revision) return undefined
  return Math.max(poll.since, poll.stagedSince)
}

/** Since when all that a cluster reports on was reported again. */
export function wholeSince({ at, parts }: ReportEvidence): number {
  return parts ? Math.min(...parts.values()) : at
}

export function sameMark(one: AnswerMark, other: AnswerMark): boolean {
  return one?.a === other?.a && one?.b === other?.b
}

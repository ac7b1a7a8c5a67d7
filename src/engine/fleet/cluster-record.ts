// What this process knows of one cluster: changed in place, since every poll notes something.
import type { Entry, View } from '../../domain/documents/view.ts'
import type { EndpointStates } from '../../domain/status/derive-status.ts'
import type {
  AnswerMark,
  Evidence,
  FailureEvidence,
  FailureSubject,
  PollEvidence,
  RefusalEvidence,
  ReportEvidence,
} from '../../domain/status/evidence.ts'
import type { StatusRow } from '../../domain/status/status-words.ts'
import type { Failures } from './failures.ts'

/** What a poll changes: what states are derived from, the token alone, or no more than when the cluster last polled. */
export type PollNews = 'state' | 'caller' | 'time'

/** Two gaps between polls agree where they differ by less than this share. */
const AGREEMENT = 0.2
/** Polls that follow each other faster are repeated ones, and say nothing of the interval. */
const LEAST_GAP_MS = 5000

/** There are as many as clusters times endpoints: what can be made of something else is not kept. */
export class PollRecord implements PollEvidence {
  at = 0
  /** When the newest note of it in full was made: after that, polls with the same answer are noted by their time alone. */
  fullAt = 0
  revision = 0
  since = 0
  sinceRevision = 0
  stagedFrom = 0
  stagedSince = 0
  intervalMs = 0
  /** The token's name. */
  by = ''
  #gapMs = 0
  #isMarked = false
  #a = 0
  #b = 0

  get mark(): AnswerMark {
    return this.#isMarked ? { a: this.#a, b: this.#b } : undefined
  }

  set mark(mark: AnswerMark) {
    this.#isMarked = mark !== undefined
    this.#a = mark?.a ?? 0
    this.#b = mark?.b ?? 0
  }

  /** As `sameMark` of `mark`, without making an object: every poll asks. */
  #hasMark(mark: AnswerMark): boolean {
    return mark ? this.#isMarked && mark.a === this.#a && mark.b === this.#b : !this.#isMarked
  }

  /** Notes an answer; returns what differs from what was known. Allocates nothing. */
  note(at: number, mark: AnswerMark, revision: number, by: string, servedFrom: number): PollNews {
    const isNew = this.at === 0 || !this.#hasMark(mark)
    const isStaged = servedFrom > this.stagedFrom
    const isLearned = this.#learnInterval(this.at === 0 ? 0 : at - this.at)
    if (isNew) {
      this.mark = mark
      this.since = at
      this.sinceRevision = revision
    }
    if (isStaged) {
      this.stagedFrom = servedFrom
      this.stagedSince = at
    }
    const isOther = this.by !== by
    this.at = at
    this.revision = revision
    this.by = by
    return isNew || isStaged || isLearned ? 'state' : isOther ? 'caller' : 'time'
  }

  /** Small differences are ignored, so that a cluster's state is not derived again after each of its polls. */
  #learnInterval(gapMs: number): boolean {
    if (gapMs < LEAST_GAP_MS) return false
    const isConfirmed = agree(gapMs, this.#gapMs) && !agree(gapMs, this.intervalMs)
    if (isConfirmed) this.intervalMs = gapMs
    this.#gapMs = gapMs
    return isConfirmed
  }
}

function agree(gapMs: number, other: number): boolean {
  return Math.abs(gapMs - other) < AGREEMENT * gapMs
}

const NONE: readonly EndpointStates[] = []

export class ClusterRecord implements Evidence {
  /** By the place of the endpoint among all. */
  readonly polls: (PollRecord | undefined)[]
  report: ReportEvidence | undefined
  refusal: RefusalEvidence | undefined
  /** Undefined while there was none. */
  failures: Failures | undefined
  lastSeen = 0
  /** The time of the last note of its polls' times that this process made or took in. */
  seenNotedAt = 0
  /** The version of the Flux Operator that spoke last. */
  operatorVersion = ''
  /** What was derived last, from which entry, at which revision, and how long that holds. */
  row: StatusRow | undefined
  /** What the row is made of, in the order of the endpoints. */
  rowEndpoints: readonly EndpointStates[] = NONE
  rowEntry: Entry | undefined
  rowView: View | undefined
  rowRevision = -1
  rowUntil = 0
  /** Since when the row has said that the cluster is behind; 0 when it does not. */
  behindSince = 0
  /** When contact last changed, or a component failed or recovered; newest last, a few of them. */
  changes: number[] | undefined
  readonly #endpoints: ReadonlyMap<string, number>

  constructor(endpoints: ReadonlyMap<string, number>) {
    this.#endpoints = endpoints
    // An array that grows would have room for 17.
    this.polls = new Array(endpoints.size).fill(undefined)
  }

  poll(endpoint: string): PollRecord | undefined {
    return this.polls[this.#endpoints.get(endpoint) ?? -1]
  }

  polledEndpoints(): string[] {
    return [...this.#endpoints].flatMap(([endpoint, place]) => (this.polls[place] ? [endpoint] : []))
  }

  failureOf(subject: FailureSubject): FailureEvidence | undefined {
    return this.failures?.newestOf(subject)
  }

  /** The state has to be derived again. */
  outdate(): void {
    this.rowUntil = 0
  }
}

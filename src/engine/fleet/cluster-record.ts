// What this process knows of one cluster: changed in place, since every poll notes something.
import type { Entry, View } from '../../domain/documents/view.ts'
import type { EndpointStates } from '../../domain/status/derive-status.ts'
import type {
  Evidence,
  FailureEvidence,
  FailureSubject,
  RefusalEvidence,
  ReportEvidence,
} from '../../domain/status/evidence.ts'
import type { StatusRow } from '../../domain/status/status-words.ts'
import type { Failures } from './failures.ts'
import type { PollRecord, PollTable } from './poll-table.ts'

const NONE: readonly EndpointStates[] = []

/** Where the polls of all clusters are: the table, and the place of each endpoint in a cluster's rows. */
export interface PollPlaces {
  readonly table: PollTable
  readonly places: ReadonlyMap<string, number>
}

export class ClusterRecord implements Evidence {
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
  readonly #polls: PollPlaces
  /** Of its rows in the table of polls; -1 while it has none. */
  #slot = -1

  constructor(polls: PollPlaces) {
    this.#polls = polls
  }

  poll(endpoint: string): PollRecord | undefined {
    const { table, places } = this.#polls
    const place = places.get(endpoint)
    return place === undefined || this.#slot < 0 ? undefined : table.find(this.#slot, place)
  }

  /** The poll to note an answer in; undefined for an unknown endpoint. */
  pollToNote(endpoint: string): PollRecord | undefined {
    const { table, places } = this.#polls
    const place = places.get(endpoint)
    if (place === undefined) return undefined
    if (this.#slot < 0) this.#slot = table.take()
    return table.findOrMake(this.#slot, place)
  }

  polledEndpoints(): string[] {
    return [...this.#polls.places.keys()].filter((endpoint) => this.poll(endpoint))
  }

  /** Gives up its rows: nothing may be asked of it afterwards. */
  release(): void {
    if (this.#slot >= 0) this.#polls.table.release(this.#slot)
    this.#slot = -1
  }

  failureOf(subject: FailureSubject): FailureEvidence | undefined {
    return this.failures?.newestOf(subject)
  }

  /** The state has to be derived again. */
  outdate(): void {
    this.rowUntil = 0
  }
}

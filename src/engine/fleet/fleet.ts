// What every cluster was served, has applied, and how it fares, as far as this process knows.
import { hash } from 'node:crypto'
import type { Digest } from '../../base/digest.ts'
import { servedTo } from '../../domain/delivery/served-view.ts'
import { findVersion } from '../../domain/documents/find-document.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import { stagingOf } from '../../domain/rollouts/staging.ts'
import {
  contactOf,
  type EndpointStates,
  endpointStatesOf,
  expectedInterval,
  type Situation,
  type StatusRules,
  situationOf,
  worstOf,
} from '../../domain/status/derive-status.ts'
import { desiredOf, isGivenNewer } from '../../domain/status/desired.ts'
import type { FailureSubject } from '../../domain/status/evidence.ts'
import { findProblem, type Trouble } from '../../domain/status/find-problem.ts'
import type { FluxEvent } from '../../domain/status/parse-event.ts'
import { type Report, takeReport } from '../../domain/status/parse-report.ts'
import { StatusClock } from '../../domain/status/status-clock.ts'
import { COLUMNS, type Column, type Contact, type StatusRow } from '../../domain/status/status-words.ts'
import { type DeliveredType, findReference, type Types } from '../../domain/types/resource-type.ts'
import type { Note } from '../../store/notes.ts'
import { ClusterRecord, type PollPlaces } from './cluster-record.ts'
import { keyOf, mergeNote, type NoteKind, noteOf, partsOf } from './evidence-notes.ts'
import { Failures } from './failures.ts'
import { OperatorVersions } from './operator-versions.ts'
import { PollTable } from './poll-table.ts'
import { SEEN } from './seen-notes.ts'
import { SharedStates } from './shared-states.ts'

/** A change of one column of a cluster's row. */
export interface Transition {
  readonly cluster: string
  readonly time: number
  readonly column: Column
  readonly from: string
  readonly to: string
}

export interface FleetParts {
  readonly types: Types
  readonly state: View & { changedAt(type: string): number }
  readonly now: () => number
  readonly rules: StatusRules
  /** Called when a note of a kind has to be written anew. */
  readonly touched: (kind: NoteKind, key: string) => void
}

/** Changes to remember of one cluster: more of them within an hour are flapping. */
const CHANGES = 6
const HOUR_MS = 3_600_000
const NONE: readonly DeliveredType[] = []

/** Whether a change says that a cluster comes and goes, or fails and recovers: every change of the fleet moves the rest. */
function isUnrest(column: Column, from: string, to: string): boolean {
  return column === 'contact' || (column === 'health' && (from === 'failed' || to === 'failed'))
}

export class Fleet {
  /** Reports that this process has taken. */
  reportCount = 0
  /** Grows with everything new that becomes known of a cluster, here or from another process. */
  news = 0
  readonly #parts: FleetParts
  readonly #polls: PollPlaces
  readonly #endpointNames: readonly string[]
  readonly #records = new Map<string, ClusterRecord>()
  /** Rows of clusters of which nothing was heard yet: they need no record. */
  readonly #unheard = new Map<string, StatusRow>()
  /** What is known of them. */
  readonly #nothing: ClusterRecord
  readonly #shared = new SharedStates()
  readonly #subscribers = new Set<(transition: Transition) => void>()
  readonly #versions = new OperatorVersions()

  constructor(parts: FleetParts) {
    this.#parts = parts
    this.#endpointNames = parts.types.delivered.map(({ delivery }) => delivery.endpoint)
    const places = new Map(this.#endpointNames.map((endpoint, i) => [endpoint, i]))
    this.#polls = { table: new PollTable(places.size), places }
    this.#nothing = new ClusterRecord(this.#polls)
  }

  /**
   * Notes an answered poll; `mark` is undefined for an answer without inputs. `servedFrom` is the revision from which on
   * the cluster is served from its present view: evidence from before is not about it. Every poll calls it.
   */
  notePoll(
    cluster: string,
    endpoint: string,
    mark: Digest | undefined,
    revision: number,
    agent: string | undefined,
    by: string,
    servedFrom = 0,
  ): void {
    const record = this.#recordOf(cluster)
    const now = this.#parts.now()
    const poll = record.pollToNote(endpoint)
    if (!poll) return
    const news = poll.note(now, mark, revision, by, servedFrom)
    if (news === 'state' || record.row?.contact !== 'current') this.#outdate(record)
    const isOtherOperator = this.#see(record, now, agent)
    if (news === 'time' && !isOtherOperator) this.#parts.touched(SEEN, cluster)
    else this.#parts.touched('polls', keyOf(cluster, endpoint))
  }

  /** Notes that a request in a cluster's name was refused. */
  noteRefusal(cluster: string, status: number, reason: string): void {
    const record = this.#recordOf(cluster)
    record.refusal = { at: this.#parts.now(), status, reason }
    if (record.row?.contact !== 'current') this.#outdate(record)
    this.#parts.touched('refusals', cluster)
  }

  noteReport(cluster: string, report: Report, agent: string | undefined): void {
    const record = this.#recordOf(cluster)
    const now = this.#parts.now()
    const { part } = report
    // Without parts, nothing is hashed.
    const inPart = (component: string): boolean =>
      part === '' || hash('sha256', component, 'hex').startsWith(part)
    record.report = takeReport(record, report, now, inPart)
    this.reportCount++
    // What is newly ready has overcome its failure; a report that is only repeated says nothing new.
    for (const { id, since } of record.report.ready.entries())
      if (since === now) this.#clear(cluster, record, { component: id }, now)
    for (const [endpoint, { since }] of record.report.applied)
      if (since === now) this.#clear(cluster, record, { endpoint }, now)
    this.#outdate(record)
    this.#see(record, now, agent)
    this.#parts.touched('reports', cluster)
  }

  /**
   * Notes an event; one about something that the cluster is not given is ignored. Returns whether it counted. Contact is
   * by polls and reports alone: events come from another controller.
   */
  noteEvent(cluster: Entry, event: FluxEvent): boolean {
    const record = this.#recordOf(cluster.id)
    const now = this.#parts.now()
    const subject = this.#subjectOf(cluster, event)
    if (!subject) return false
    const { object, verdict, mark, reason, message, isRelease } = event
    if (verdict === 'succeeded') {
      // A release that succeeds has its source.
      if (isRelease || 'endpoint' in subject) this.#clear(cluster.id, record, subject, now)
      else if (record.failures?.clear(object, now)) this.#parts.touched('failures', keyOf(cluster.id, object))
    } else {
      record.failures ??= new Failures()
      record.failures.note(object, { at: now, mark, reason, message, subject })
      this.#parts.touched('failures', keyOf(cluster.id, object))
    }
    this.#outdate(record)
    return true
  }

  /** All that a cluster's status is derived from, at this moment. */
  situationOf(
    cluster: Entry,
    view: View = this.#parts.state,
    delivered?: readonly DeliveredType[],
  ): Situation {
    const { types, rules, now } = this.#parts
    const evidence = this.#evidenceOf(cluster.id)
    const desired = desiredOf(types, view, cluster, delivered)
    const isHeld = stagingOf(types, view).isHeld(cluster.id)
    const clock = new StatusClock(now())
    return situationOf({ cluster, desired, evidence, rules, isHeld, clock }, this.#endpointNames)
  }

  /** The states of a cluster as it is now; derived again only where something may have changed. */
  rowOf(given: Entry): StatusRow {
    const { types, state } = this.#parts
    // A caller that goes through a frozen view may hold an earlier version.
    const cluster = findVersion(state, types.cluster.type.name, given.id) ?? given
    const record = this.#records.get(cluster.id)
    if (!record) return this.#rowOfUnheard(cluster)
    const view = servedTo(types, state, cluster.id)
    const now = this.#parts.now()
    const isKept = now < record.rowUntil && record.rowEntry === cluster && record.rowView === view
    const outdated = isKept ? this.#outdatedTypes(record, cluster) : types.delivered
    const before = record.row
    if (before && isKept && outdated.length === 0) return before
    const situation = this.situationOf(cluster, state, outdated)
    const row = this.#derive(situation, outdated, record)
    record.row = row
    record.rowEntry = cluster
    record.rowView = view
    record.rowRevision = state.revision
    record.rowUntil = Math.min(situation.clock.until, isKept ? record.rowUntil : Number.POSITIVE_INFINITY)
    record.behindSince = row.delivery === 'behind' ? record.behindSince || now : 0
    if (before && before !== row) this.#publish(cluster.id, record, before, row)
    return row
  }

  /** How often a cluster is expected to poll, and whether it speaks to the service: cheaper than its whole row. */
  pulseOf(cluster: Entry): { readonly intervalMs: number; readonly contact: Contact } {
    const { rules, now } = this.#parts
    const evidence = this.#evidenceOf(cluster.id)
    const { ms: intervalMs } = expectedInterval(evidence, this.#endpointNames, rules)
    const clock = new StatusClock(now())
    return { intervalMs, contact: contactOf({ cluster, evidence, rules, clock }, intervalMs) }
  }

  lastSeen(cluster: string): number {
    return this.#records.get(cluster)?.lastSeen ?? 0
  }

  /** Whether a failure of a cluster is known that no success has followed. */
  isFailing(cluster: string): boolean {
    return this.#records.get(cluster)?.failures?.areAny ?? false
  }

  /** Since when a cluster has been behind, as far as this process knows; 0 when it is not. */
  behindSince(cluster: string): number {
    return this.#records.get(cluster)?.behindSince ?? 0
  }

  operatorVersion(cluster: string): string | undefined {
    return this.#records.get(cluster)?.operatorVersion || undefined
  }

  /** The worst problem of a cluster of the present, if it has any. */
  problemOf(cluster: Entry): Trouble | undefined {
    const row = this.rowOf(cluster)
    const record = this.#evidenceOf(cluster.id)
    const now = this.#parts.now()
    return findProblem({
      row,
      evidence: record,
      endpoints: this.#endpointNames,
      rules: this.#parts.rules,
      now,
      changes: record.changes?.filter((time) => time > now - HOUR_MS) ?? [],
      failingSince: (subject, after) => record.failures?.failingSince(subject, after) ?? 0,
    })
  }

  /** Calls back with every transition; returns a function that stops it. */
  subscribe(changed: (transition: Transition) => void): () => void {
    this.#subscribers.add(changed)
    return () => this.#subscribers.delete(changed)
  }

  noteOf(kind: NoteKind, key: string): Note | undefined {
    const record = this.#records.get(partsOf(key)[0])
    return record && noteOf(kind, key, record)
  }

  /** Takes in what another process, or an earlier one, has noted; returns whether it was news. */
  merge(kind: NoteKind, note: Note): boolean {
    const [cluster] = partsOf(note.key)
    const record = this.#recordOf(cluster)
    const isNews = mergeNote(
      kind,
      note,
      record,
      (endpoint) => record.pollToNote(endpoint),
      (endpoint) => this.#parts.touched('polls', keyOf(cluster, endpoint)),
    )
    if (isNews) this.news++
    return isNews
  }

  /** By cluster; some of them may have been purged. */
  get records(): ReadonlyMap<string, ClusterRecord> {
    return this.#records
  }

  forget(cluster: string): void {
    this.#records.get(cluster)?.release()
    this.#records.delete(cluster)
    this.#unheard.delete(cluster)
  }

  #outdate(record: ClusterRecord): void {
    this.news++
    record.outdate()
  }

  #recordOf(cluster: string): ClusterRecord {
    let record = this.#records.get(cluster)
    if (!record) {
      record = new ClusterRecord(this.#polls)
      record.row = this.#unheard.get(cluster)
      this.#unheard.delete(cluster)
      this.#records.set(cluster, record)
    }
    return record
  }

  #evidenceOf(cluster: string): ClusterRecord {
    return this.#records.get(cluster) ?? this.#nothing
  }

  /** Nothing is rendered for it: it was served nothing, so it is behind, and its health is not known. */
  #rowOfUnheard(cluster: Entry): StatusRow {
    const { rules, types } = this.#parts
    const contact = contactOf({ cluster, evidence: this.#nothing, rules, clock: new StatusClock(0) }, 0)
    const delivery = types.delivered.length > 0 ? 'behind' : 'applied'
    const row = this.#shared.row({ contact, delivery, health: 'unknown' })
    this.#unheard.set(cluster.id, row)
    return row
  }

  /** Returns whether another version of the operator speaks. */
  #see(record: ClusterRecord, now: number, agent: string | undefined): boolean {
    record.lastSeen = now
    const version = agent === undefined ? '' : this.#versions.of(agent)
    if (version === '' || version === record.operatorVersion) return false
    record.operatorVersion = version
    return true
  }

  #subjectOf(cluster: Entry, { endpoint, component }: FluxEvent): FailureSubject | undefined {
    if (endpoint !== undefined) return { endpoint }
    for (const { delivery } of this.#parts.types.delivered) {
      if (!delivery.reportsHealth || component === undefined) continue
      if (findReference(cluster.document, delivery, component)) return { component }
    }
    return undefined
  }

  #clear(cluster: string, { failures }: ClusterRecord, subject: FailureSubject, now: number): void {
    for (const object of failures?.clearAbout(subject, now) ?? [])
      this.#parts.touched('failures', keyOf(cluster, object))
  }

  /** The types of which a cluster is given a definition that its row was not derived from. */
  #outdatedTypes(record: ClusterRecord, cluster: Entry): readonly DeliveredType[] {
    const { types, state } = this.#parts
    const { rowRevision } = record
    if (state.revision === rowRevision) return NONE
    const outdated = types.delivered.filter(
      (type) =>
        state.changedAt(type.name) > rowRevision && isGivenNewer(types, state, type, cluster, rowRevision),
    )
    if (outdated.length === 0) record.rowRevision = state.revision
    return outdated
  }

  /** Derives the states of endpoints of some types: the others are as they were. */
  #derive(situation: Situation, outdated: readonly DeliveredType[], record: ClusterRecord): StatusRow {
    const states = this.#parts.types.delivered.map((type, i) => {
      const desired = situation.desired[outdated.indexOf(type)]
      return desired ? endpointStatesOf(situation, desired) : (record.rowEndpoints[i] as EndpointStates)
    })
    record.rowEndpoints = this.#shared.endpoints(states)
    return this.#shared.row(worstOf(situation.contact, states))
  }

  #publish(cluster: string, record: ClusterRecord, before: StatusRow, after: StatusRow): void {
    const time = this.#parts.now()
    for (const column of COLUMNS) {
      const [from, to] = [before[column], after[column]]
      if (from === to) continue
      if (isUnrest(column, from, to)) record.changes = [...(record.changes ?? []), time].slice(-CHANGES)
      for (const changed of this.#subscribers) changed({ cluster, time, column, from, to })
    }
  }
}

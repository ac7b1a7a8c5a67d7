// Evidence as notes, so that it outlives the process and other replicas learn of it. Of each key the newest note counts.
import { hexOf, parseHex } from '../../base/digest.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import {
  type AppliedMark,
  type RefusalEvidence,
  type ReportEvidence,
  sameMark,
} from '../../domain/status/evidence.ts'
import { MAX_MESSAGE, MAX_REASON, textOf } from '../../domain/status/parse-event.ts'
import { isPart } from '../../domain/status/parse-report.ts'
import { ReadyList } from '../../domain/status/ready-list.ts'
import { MAX_NOTE_LENGTH, type Note } from '../../store/notes.ts'
import type { ClusterRecord } from './cluster-record.ts'
import { type ClearedFailure, type Failure, Failures } from './failures.ts'
import type { PollRecord } from './poll-table.ts'
import { mergeSeen, noteSpeaker, SEEN, seenNote, startAnew } from './seen-notes.ts'

/** Polls by cluster and endpoint, reports and refusals by cluster, failures by cluster and object. */
export const EVIDENCE_KINDS = ['polls', 'reports', 'refusals', 'failures'] as const
/** Notes come from mirrors too, so nothing in them is taken at any length. */
const MAX_NAME = 300
const MAX_ENDPOINT = 63
const MAX_ENDPOINTS = 50

export type EvidenceKind = (typeof EVIDENCE_KINDS)[number]

/** All kinds of notes that evidence is kept in. */
export const NOTE_KINDS = [...EVIDENCE_KINDS, SEEN] as const
export type NoteKind = (typeof NOTE_KINDS)[number]

/** The key of what a cluster has several of; ids of clusters hold no space. */
export function keyOf(cluster: string, part: string): string {
  return `${cluster} ${part}`
}

/** Returns the cluster, and the rest of the key. */
export function partsOf(key: string): [cluster: string, part: string] {
  const space = key.indexOf(' ')
  return space < 0 ? [key, ''] : [key.slice(0, space), key.slice(space + 1)]
}

const ONE = '[^\\s\\p{C}]{1,253}'
const KEYS: Readonly<Record<EvidenceKind, RegExp>> = {
  polls: new RegExp(`^${ONE} ${ONE}$`, 'u'),
  reports: new RegExp(`^${ONE}$`, 'u'),
  refusals: new RegExp(`^${ONE}$`, 'u'),
  failures: new RegExp(`^${ONE} [A-Za-z]{1,64}/[^\\p{C}]{1,253}$`, 'u'),
}

/** Whether notes of a kind have such keys. */
export function isKeyOf(kind: EvidenceKind, key: string): boolean {
  return KEYS[kind].test(key)
}

/** The keys of the notes of a cluster's polls. */
export function pollKeysOf(cluster: string, record: ClusterRecord): string[] {
  return record.polledEndpoints().map((endpoint) => keyOf(cluster, endpoint))
}

/** The keys of all notes of a cluster. */
export function keysOf(cluster: string, record: ClusterRecord): [kind: NoteKind, keys: string[]][] {
  return [
    ['polls', pollKeysOf(cluster, record)],
    [SEEN, [cluster]],
    ['reports', [cluster]],
    ['refusals', [cluster]],
    ['failures', (record.failures?.objects() ?? []).map((object) => keyOf(cluster, object))],
  ]
}

export function noteOf(kind: NoteKind, key: string, record: ClusterRecord): Note | undefined {
  if (kind === SEEN) return seenNote(key, record)
  const [, part] = partsOf(key)
  if (kind === 'polls') return pollNote(key, record, part)
  if (kind === 'reports') return reportNote(key, record)
  if (kind === 'refusals') return refusalNote(key, record.refusal)
  return failureNote(key, record.failures?.get(part))
}

function note(key: string, at: number, value: Json): Note {
  return { key, time: new Date(at).toISOString(), value: value === null ? null : JSON.stringify(value) }
}

function pollNote(key: string, record: ClusterRecord, endpoint: string): Note | undefined {
  const poll = record.poll(endpoint)
  if (!poll) return undefined
  const { at, mark, revision, since, sinceRevision, intervalMs, by, stagedFrom, stagedSince } = poll
  const digest = mark ? hexOf(mark) : ''
  poll.fullAt = at
  return note(key, at, [
    digest,
    revision,
    since,
    sinceRevision,
    Math.round(intervalMs),
    record.operatorVersion,
    by,
    ...(stagedFrom > 0 ? [stagedFrom, stagedSince] : []),
  ])
}

function reportNote(key: string, { report, operatorVersion }: ClusterRecord): Note | undefined {
  if (!report) return undefined
  const applied = Object.fromEntries(
    [...report.applied].map(([endpoint, { mark, since, revision }]) => [
      endpoint,
      [hexOf(mark), since, revision],
    ]),
  )
  // Most components became ready at a time that others did, too.
  const ready: Record<string, Record<string, string>> = {}
  for (const { id, mark, since } of report.ready.entries()) {
    const group = ready[since] ?? {}
    ready[since] = group
    group[id] = hexOf(mark)
  }
  const parts = report.parts ? [Object.fromEntries(report.parts)] : []
  const whole = note(key, report.at, [report.everyMs, applied, ready, operatorVersion, ...parts])
  // What does not fit is reported again within one interval of the cluster.
  if ((whole.value?.length ?? 0) <= MAX_NOTE_LENGTH) return whole
  return note(key, report.at, [report.everyMs, applied, {}, operatorVersion])
}

function refusalNote(key: string, refusal: RefusalEvidence | undefined): Note | undefined {
  return refusal && note(key, refusal.at, [refusal.status, refusal.reason])
}

function failureNote(key: string, failure: Failure | ClearedFailure | undefined): Note | undefined {
  if (!failure) return undefined
  if ('clearedAt' in failure) return note(key, failure.clearedAt, null)
  const { at, since, mark, reason, message, subject } = failure
  const digest = mark ? hexOf(mark) : ''
  return note(key, at, [since, digest, reason, message, { ...subject }])
}

/** Takes a note into a record where it is newer than what is known; returns whether it was. */
export function mergeNote(
  kind: NoteKind,
  { key, time, value }: Note,
  record: ClusterRecord,
  pollOf: (part: string) => PollRecord | undefined,
  hidden: (endpoint: string) => void,
): boolean {
  const at = Date.parse(time)
  const [, part] = partsOf(key)
  const poll = kind === 'polls' ? pollOf(part) : undefined
  // Most notes are known: they are not parsed.
  if (kind === SEEN ? at === record.seenNotedAt : at <= knownAt(kind, part, record, poll)) return false
  const content = parseValue(value)
  if (content === undefined || Number.isNaN(at)) return false
  if (kind === SEEN) return mergeSeen(record, at, content, pollOf, hidden)
  const isTaken =
    kind === 'polls'
      ? mergePoll(poll, at, content, record)
      : kind === 'reports'
        ? mergeReport(at, content, record)
        : kind === 'refusals'
          ? mergeRefusal(at, content, record)
          : mergeFailure(part, at, content, record)
  if (isTaken) record.outdate()
  return isTaken
}

/** The time of what is known of a key; 0 where nothing is. */
function knownAt(
  kind: EvidenceKind,
  part: string,
  { report, refusal, failures }: ClusterRecord,
  poll: PollRecord | undefined,
): number {
  if (kind === 'polls') return poll?.fullAt ?? 0
  if (kind === 'reports') return report?.at ?? 0
  if (kind === 'refusals') return refusal?.at ?? 0
  const failure = failures?.get(part)
  return failure ? ('clearedAt' in failure ? failure.clearedAt : failure.at) : 0
}

/** Undefined for what no version of this program wrote. */
function parseValue(value: string | null): readonly Json[] | null | undefined {
  if (value === null) return null
  try {
    const parsed = JSON.parse(value) as Json
    return Array.isArray(parsed) ? parsed : undefined
  } catch {
    return undefined
  }
}

type Content = readonly Json[] | null

/** A time that is not after the note's own; that one where it is none. */
function moment(value: Json | undefined, at: number): number {
  return typeof value === 'number' && value > 0 && value < at ? value : at
}

function count(value: Json | undefined): number {
  return typeof value === 'number' && value > 0 && value <= Number.MAX_SAFE_INTEGER ? value : 0
}

function mergePoll(
  poll: PollRecord | undefined,
  at: number,
  content: Content,
  record: ClusterRecord,
): boolean {
  if (!poll || !content) return false
  const [digest, revision, since, sinceRevision, intervalMs, version, by, stagedFrom, stagedSince] = content
  const mark = parseHex(String(digest))
  const isLast = at >= poll.at
  poll.fullAt = at
  if (isLast) {
    poll.at = at
    poll.mark = mark
    poll.revision = count(revision)
  }
  if (isLast || sameMark(mark, poll.mark)) {
    poll.since = moment(since, at)
    poll.sinceRevision = count(sinceRevision)
    // Something else was served before the last poll: its answer is not as old as it seemed.
  } else if (at > poll.since) startAnew(poll)
  poll.intervalMs = count(intervalMs)
  poll.by = textOf(by, MAX_NAME)
  poll.stagedFrom = count(stagedFrom)
  poll.stagedSince = poll.stagedFrom > 0 ? moment(stagedSince, at) : 0
  noteSpeaker(record, at, version)
  return true
}

function mergeReport(at: number, content: Content, record: ClusterRecord): boolean {
  if (!content) return false
  const [everyMs, applied, ready, version, parts] = content
  record.report = {
    at,
    everyMs: count(everyMs),
    applied: appliedIn(applied, at),
    ready: readyIn(ready, at),
    ...(isObject(parts) && { parts: partsIn(parts, at) }),
  }
  noteSpeaker(record, at, version)
  return true
}

function appliedIn(value: Json | undefined, at: number): ReportEvidence['applied'] {
  const marks = new Map<string, AppliedMark>()
  for (const [endpoint, parts] of Object.entries(isObject(value) ? value : {})) {
    if (marks.size === MAX_ENDPOINTS || endpoint.length > MAX_ENDPOINT) continue
    const [digest, since, revision] = Array.isArray(parts) ? parts : []
    const mark = parseHex(String(digest))
    if (mark) marks.set(endpoint, { mark, since: moment(since, at), revision: count(revision) })
  }
  return marks
}

function partsIn(value: JsonObject, at: number): Map<string, number> {
  const parts = Object.entries(value).filter(([part]) => isPart(part))
  return new Map(parts.map(([part, time]) => [part, moment(time, at)]))
}

function readyIn(value: Json | undefined, at: number): ReadyList {
  const groups = Object.entries(isObject(value) ? value : {})
  return new ReadyList(
    groups.flatMap(([since, group]) =>
      Object.entries(isObject(group) ? group : {}).flatMap(([id, digest]) => {
        const mark = parseHex(String(digest))
        return mark ? [{ id, mark, since: moment(Number(since), at) }] : []
      }),
    ),
  )
}

function mergeRefusal(at: number, content: Content, record: ClusterRecord): boolean {
  if (!content) return false
  const [status, reason] = content
  record.refusal = { at, status: count(status), reason: textOf(reason, MAX_REASON) }
  return true
}

function mergeFailure(object: string, at: number, content: Content, record: ClusterRecord): boolean {
  record.failures ??= new Failures()
  if (!content) {
    record.failures.set(object, { clearedAt: at })
    return true
  }
  const [since, digest, reason, message, about] = content
  const { component, endpoint } = isObject(about) ? about : {}
  if (component === undefined && endpoint === undefined) return false
  const subject =
    component === undefined
      ? { endpoint: textOf(endpoint, MAX_NAME) }
      : { component: textOf(component, MAX_NAME) }
  record.failures.set(object, {
    at,
    since: moment(since, at),
    mark: parseHex(String(digest)),
    reason: textOf(reason, MAX_REASON),
    message: textOf(message, MAX_MESSAGE),
    subject,
  })
  return true
}

// Evidence as notes, so that it outlives the process and other replicas learn of it. Of each key the newest note counts.
import { hexOf, parseHex } from '../../base/digest.ts'
import { isObject, type Json } from '../../base/json.ts'
import type { AppliedMark, RefusalEvidence, ReportEvidence } from '../../domain/status/evidence.ts'
import { ReadyList } from '../../domain/status/ready-list.ts'
import { MAX_NOTE_LENGTH, type Note } from '../../store/notes.ts'
import type { ClusterRecord, Failure, PollRecord } from './cluster-record.ts'

/** Polls by cluster and endpoint, reports and refusals by cluster, failures by cluster and object. */
export const EVIDENCE_KINDS = ['polls', 'reports', 'refusals', 'failures'] as const
export type EvidenceKind = (typeof EVIDENCE_KINDS)[number]

/** The key of what a cluster has several of; ids of clusters hold no space. */
export function keyOf(cluster: string, part: string): string {
  return `${cluster} ${part}`
}

/** Returns the cluster, and the rest of the key. */
export function partsOf(key: string): [cluster: string, part: string] {
  const space = key.indexOf(' ')
  return space < 0 ? [key, ''] : [key.slice(0, space), key.slice(space + 1)]
}

export function noteOf(kind: EvidenceKind, key: string, record: ClusterRecord): Note | undefined {
  const [, part] = partsOf(key)
  if (kind === 'polls') return pollNote(record, part)
  if (kind === 'reports') return reportNote(key, record)
  if (kind === 'refusals') return refusalNote(key, record.refusal)
  return failureNote(key, record.failures?.get(part))
}

function note(key: string, at: number, value: Json): Note {
  return { key, time: new Date(at).toISOString(), value: value === null ? null : JSON.stringify(value) }
}

function pollNote(record: ClusterRecord, endpoint: string): Note | undefined {
  const poll = record.poll(endpoint)
  if (!poll) return undefined
  const { at, mark, revision, since, sinceRevision, intervalMs, by } = poll
  const digest = mark ? hexOf(mark) : ''
  return note(poll.key, at, [
    digest,
    revision,
    since,
    sinceRevision,
    Math.round(intervalMs),
    record.operatorVersion,
    by,
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
  const whole = note(key, report.at, [report.everyMs, applied, ready, operatorVersion])
  // What does not fit is reported again within one interval of the cluster.
  if ((whole.value?.length ?? 0) <= MAX_NOTE_LENGTH) return whole
  return note(key, report.at, [report.everyMs, applied, {}, operatorVersion])
}

function refusalNote(key: string, refusal: RefusalEvidence | undefined): Note | undefined {
  return refusal && note(key, refusal.at, [refusal.status, refusal.reason])
}

function failureNote(key: string, failure: Failure | { clearedAt: number } | undefined): Note | undefined {
  if (!failure) return undefined
  if ('clearedAt' in failure) return note(key, failure.clearedAt, null)
  const { at, since, mark, reason, message, subject } = failure
  const digest = mark ? hexOf(mark) : ''
  return note(key, at, [since, digest, reason, message, { ...subject }])
}

/** Takes a note into a record where it is newer than what is known; returns whether it was. */
export function mergeNote(
  kind: EvidenceKind,
  { key, time, value }: Note,
  record: ClusterRecord,
  pollOf: (part: string) => PollRecord | undefined,
): boolean {
  const at = Date.parse(time)
  const [, part] = partsOf(key)
  const content = parseValue(value)
  if (content === undefined || Number.isNaN(at)) return false
  const isTaken =
    kind === 'polls'
      ? mergePoll(pollOf(part), at, content, record)
      : kind === 'reports'
        ? mergeReport(at, content, record)
        : kind === 'refusals'
          ? mergeRefusal(at, content, record)
          : mergeFailure(part, at, content, record)
  if (isTaken) record.outdate()
  return isTaken
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

function mergePoll(
  poll: PollRecord | undefined,
  at: number,
  content: Content,
  record: ClusterRecord,
): boolean {
  if (!poll || !content || at <= poll.at) return false
  const [digest, revision, since, sinceRevision, intervalMs, version, by] = content
  poll.at = at
  poll.mark = parseHex(String(digest))
  poll.revision = Number(revision)
  poll.since = Number(since)
  poll.sinceRevision = Number(sinceRevision)
  poll.intervalMs = Number(intervalMs)
  poll.by = String(by)
  see(record, at, version)
  return true
}

function mergeReport(at: number, content: Content, record: ClusterRecord): boolean {
  if (!content || at <= (record.report?.at ?? 0)) return false
  const [everyMs, applied, ready, version] = content
  record.report = { at, everyMs: Number(everyMs), applied: appliedIn(applied), ready: readyIn(ready) }
  see(record, at, version)
  return true
}

function see(record: ClusterRecord, at: number, version: Json | undefined): void {
  if (at <= record.lastSeen) return
  record.lastSeen = at
  record.operatorVersion = String(version ?? '')
}

function appliedIn(value: Json | undefined): ReportEvidence['applied'] {
  const marks = new Map<string, AppliedMark>()
  for (const [endpoint, parts] of Object.entries(isObject(value) ? value : {})) {
    const [digest, since, revision] = Array.isArray(parts) ? parts : []
    const mark = parseHex(String(digest))
    if (mark) marks.set(endpoint, { mark, since: Number(since), revision: Number(revision) })
  }
  return marks
}

function readyIn(value: Json | undefined): ReadyList {
  const groups = Object.entries(isObject(value) ? value : {})
  return new ReadyList(
    groups.flatMap(([since, group]) =>
      Object.entries(isObject(group) ? group : {}).flatMap(([id, digest]) => {
        const mark = parseHex(String(digest))
        return mark ? [{ id, mark, since: Number(since) }] : []
      }),
    ),
  )
}

function mergeRefusal(at: number, content: Content, record: ClusterRecord): boolean {
  if (!content || at <= (record.refusal?.at ?? 0)) return false
  const [status, reason] = content
  record.refusal = { at, status: Number(status), reason: String(reason) }
  return true
}

function mergeFailure(object: string, at: number, content: Content, record: ClusterRecord): boolean {
  const known = record.failures?.get(object)
  if (known && at <= ('clearedAt' in known ? known.clearedAt : known.at)) return false
  record.failures ??= new Map()
  if (!content) {
    record.failures.set(object, { clearedAt: at })
    return true
  }
  const [since, digest, reason, message, about] = content
  const { component, endpoint } = isObject(about) ? about : {}
  if (component === undefined && endpoint === undefined) return false
  const subject = component === undefined ? { endpoint: String(endpoint) } : { component: String(component) }
  record.failures.set(object, {
    at,
    since: Number(since),
    mark: parseHex(String(digest)),
    reason: String(reason),
    message: String(message),
    subject,
  })
  return true
}

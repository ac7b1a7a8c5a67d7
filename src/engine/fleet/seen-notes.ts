// When clusters last polled, where all else is as noted before: one short note for all endpoints of a cluster.
import { hexOf, parseHex } from '../../base/digest.ts'
import { isObject, type Json } from '../../base/json.ts'
import { sameMark } from '../../domain/status/evidence.ts'
import { textOf } from '../../domain/status/parse-event.ts'
import { MAX_NOTE_LENGTH, type Note } from '../../store/notes.ts'
import type { ClusterRecord } from './cluster-record.ts'
import type { PollRecord } from './poll-table.ts'

const MAX_VERSION = 64

/** The kind of these notes; their keys are clusters. */
export const SEEN = 'seen'

/** By endpoint: when it was polled last, the revision of that answer, and its digest. */
export function seenNote(cluster: string, record: ClusterRecord): Note | undefined {
  const seen: Record<string, Json> = {}
  let last = 0
  for (const endpoint of record.polledEndpoints()) {
    const poll = record.poll(endpoint)
    if (!poll || poll.at === 0) continue
    const { at, revision, mark } = poll
    seen[endpoint] = [at, revision, mark ? hexOf(mark) : '']
    last = Math.max(last, at)
  }
  if (last === 0) return undefined
  record.seenNotedAt = last
  const value = JSON.stringify([seen, record.operatorVersion])
  // With more endpoints than fit, the time says at least that the cluster speaks.
  return {
    key: cluster,
    time: new Date(last).toISOString(),
    value: value.length > MAX_NOTE_LENGTH ? null : value,
  }
}

/**
 * Takes in what is newer than what is known; returns whether states have to be derived again. Of two such notes of
 * replicas that were polled for different endpoints one stays: `hidden` is told which poll has to be noted by itself.
 */
export function mergeSeen(
  record: ClusterRecord,
  notedAt: number,
  content: readonly Json[] | null,
  pollOf: (endpoint: string) => PollRecord | undefined,
  hidden: (endpoint: string) => void,
): boolean {
  const [value, version] = content ?? []
  const seen = isObject(value) ? value : {}
  for (const endpoint of record.polledEndpoints()) {
    const { at = 0 } = record.poll(endpoint) ?? {}
    if (at > timeIn(seen[endpoint]) && at <= notedAt) hidden(endpoint)
  }
  let isNews = record.row?.contact !== 'current'
  for (const [endpoint, values] of Object.entries(seen)) {
    const [, revision, digest] = Array.isArray(values) ? values : []
    const at = timeIn(values)
    const poll = pollOf(endpoint)
    if (!poll || at <= poll.at || at > notedAt || typeof revision !== 'number') continue
    const mark = parseHex(String(digest))
    poll.at = at
    poll.revision = revision
    if (sameMark(mark, poll.mark) && poll.since > 0) continue
    poll.mark = mark
    startAnew(poll)
    isNews = true
  }
  record.seenNotedAt = notedAt
  noteSpeaker(record, notedAt, version)
  if (isNews) record.outdate()
  return isNews
}

/** Notes when a cluster spoke last, and the version of its operator then. */
export function noteSpeaker(record: ClusterRecord, at: number, version: Json | undefined): void {
  if (at <= record.lastSeen) return
  record.lastSeen = at
  if (version !== undefined) record.operatorVersion = textOf(version, MAX_VERSION)
}

function timeIn(values: Json | undefined): number {
  const [at] = Array.isArray(values) ? values : []
  return typeof at === 'number' ? at : 0
}

/** Of an answer of which only the last poll is known for certain. */
export function startAnew(poll: PollRecord): void {
  poll.since = poll.at
  poll.sinceRevision = poll.revision
}

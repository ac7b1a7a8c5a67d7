// When clusters last polled, where all else is as noted before: one short note for all endpoints of a cluster.
import { hexOf, parseHex } from '../../base/digest.ts'
import { isObject, type Json } from '../../base/json.ts'
import { sameMark } from '../../domain/status/evidence.ts'
import { textOf } from '../../domain/status/parse-event.ts'
import type { Note } from '../../store/notes.ts'
import type { ClusterRecord, PollRecord } from './cluster-record.ts'

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
  return { key: cluster, time: new Date(last).toISOString(), value }
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
  const [seen, version] = content ?? []
  let isNews = record.row?.contact !== 'current'
  for (const [endpoint, values] of Object.entries(isObject(seen) ? seen : {})) {
    const [at, revision, digest] = Array.isArray(values) ? values : []
    if (typeof at !== 'number' || typeof revision !== 'number' || at > notedAt) continue
    const poll = pollOf(endpoint)
    if (poll && at < poll.at && poll.at <= notedAt) hidden(endpoint)
    if (!poll || at <= poll.at) continue
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
  record.operatorVersion = textOf(version, MAX_VERSION)
}

/** Of an answer of which only the last poll is known for certain. */
export function startAnew(poll: PollRecord): void {
  poll.since = poll.at
  poll.sinceRevision = poll.revision
}

// The log of a store in memory: what it holds, and how it is read and written.
import type { Applied } from '../domain/documents/state.ts'
import { checkHash, NO_HASH, RevisionHash } from './hash-chain.ts'
import { holdsText, parseApplied, toApplied, toPast, toRecorded } from './log-rows.ts'
import {
  type Anchor,
  type DocumentVersion,
  type Head,
  type HistoryQuery,
  type LoggedChange,
  type NewRevision,
  notEmptyError,
  type PastDocument,
  prunedError,
  type RecordedRevision,
  type RevisionMeta,
} from './store.ts'

interface LoggedRevision {
  readonly revision: number
  readonly meta: RevisionMeta
  readonly hash: string
  readonly changes: readonly LoggedChange[]
}

export interface MemoryLog {
  readonly documents: Map<string, DocumentVersion>
  revisions: LoggedRevision[]
  anchor: Anchor | undefined
  importInProgress: boolean
}

export function createMemoryLog(): MemoryLog {
  return { documents: new Map(), revisions: [], anchor: undefined, importInProgress: false }
}

function keyOf({ type, id }: { readonly type: string; readonly id: string }): string {
  return `${type}/${id}`
}

export function headOf({ revisions, anchor }: MemoryLog): Head {
  const { revision, hash } = revisions.at(-1) ?? anchor ?? { revision: 0, hash: NO_HASH }
  return { revision, hash }
}

export function hashOf({ revisions, anchor }: MemoryLog, revision: number): string | undefined {
  if (revision === 0) return NO_HASH
  return [...(anchor ? [anchor] : []), ...revisions].find((entry) => entry.revision === revision)?.hash
}

/** Hands over fresh copies, as if read from bytes: callers share no objects with the store. */
export function loadAll(log: MemoryLog, take: (revision: number, document: Applied) => void): Head {
  for (const { type, id, revision, json, deleted } of log.documents.values())
    take(revision, { type, id, after: parseApplied(type, id, json, deleted) })
  return headOf(log)
}

/** Returns the hash of the last revision. */
export function appendRevisions(log: MemoryLog, revisions: readonly NewRevision[]): string {
  const changed = new Map<string, DocumentVersion | undefined>()
  const appended: LoggedRevision[] = []
  for (const revision of revisions) {
    const { meta, ...last } = appended.at(-1) ??
      log.revisions.at(-1) ?? { ...headOf(log), meta: { time: log.anchor?.time ?? '' } }
    appended.push(sealRevision(log, { ...last, time: meta.time }, revision, changed))
  }
  for (const [key, document] of changed) {
    if (document) log.documents.set(key, document)
    else log.documents.delete(key)
  }
  log.revisions.push(...appended)
  return headOf(log).hash
}

/** Changes nothing in the log; `changed` has the documents as the revisions before this one would leave them. */
function sealRevision(
  { documents }: MemoryLog,
  previous: Head & { readonly time: string },
  { changes, idempotency: _, hash: expected, ...given }: NewRevision,
  changed: Map<string, DocumentVersion | undefined>,
): LoggedRevision {
  const revision = previous.revision + 1
  const meta = { ...given, time: given.time < previous.time ? previous.time : given.time }
  const hash = new RevisionHash(previous.hash, revision, meta)
  const logged = changes.map(({ type, id, after }) => {
    const key = keyOf({ type, id })
    const before = changed.has(key) ? changed.get(key) : documents.get(key)
    changed.set(key, after && { type, id, revision, json: after.json, deleted: after.deleted })
    const change = {
      type,
      id,
      before: before?.json ?? null,
      before_deleted: before?.deleted ?? false,
      before_revision: before?.revision ?? 0,
      after: after?.json ?? null,
      after_deleted: after?.deleted ?? false,
    }
    hash.add(change)
    return change
  })
  return { revision, meta, hash: checkHash(revision, hash.digest(), expected), changes: logged }
}

export function initFromSnapshot(
  log: MemoryLog,
  anchor: Anchor,
  documents: readonly DocumentVersion[],
): void {
  if (headOf(log).revision > 0) throw notEmptyError()
  log.anchor = anchor
  for (const document of documents) log.documents.set(keyOf(document), document)
}

export function pruneTo(log: MemoryLog, anchor: Anchor): void {
  if (log.anchor && log.anchor.revision >= anchor.revision) return
  log.anchor = anchor
  log.revisions = log.revisions.filter(({ revision }) => revision > anchor.revision)
}

export function* changesSince(
  { revisions }: MemoryLog,
  since: number,
): Generator<Head & { readonly changes: readonly Applied[] }> {
  for (const { revision, hash, changes } of revisions.filter((entry) => entry.revision > since))
    yield { revision, hash, changes: changes.map(toApplied) }
}

export function* changedAfter(
  { revisions, anchor }: MemoryLog,
  since: number,
  only?: { readonly type: string; readonly id?: string },
): Generator<PastDocument> {
  if (anchor && anchor.revision > since) throw prunedError(since, anchor)
  const seen = new Set<string>()
  for (const { changes } of revisions.filter(({ revision }) => revision > since)) {
    for (const change of changes) {
      if (only && (change.type !== only.type || (only.id !== undefined && change.id !== only.id))) continue
      if (seen.has(keyOf(change))) continue
      seen.add(keyOf(change))
      yield toPast(change)
    }
  }
}

export function searchRevisions({ revisions }: MemoryLog, query: HistoryQuery): RecordedRevision[] {
  const { documents, type, actor, since, until, text, changeOffset = 0, changeLimit } = query
  const isAsked = (change: LoggedChange, revision: number): boolean =>
    (type === undefined || change.type === type) &&
    (documents?.some(
      (span) =>
        change.type === span.type &&
        change.id === span.id &&
        revision >= (span.from ?? 0) &&
        revision < (span.until ?? Number.POSITIVE_INFINITY),
    ) ??
      true)
  return revisions
    .filter(({ revision }) => query.revision === undefined || revision === query.revision)
    .filter(({ revision }) => query.before === undefined || revision < query.before)
    .filter(({ meta }) => actor === undefined || meta.actor === actor)
    .filter(({ meta }) => since === undefined || meta.time >= since)
    .filter(({ meta }) => until === undefined || meta.time <= until)
    .filter(({ meta }) => holdsText(meta, text))
    .filter(({ changes }) => type === undefined || changes.some((change) => change.type === type))
    .map((entry) => ({ ...entry, asked: entry.changes.filter((change) => isAsked(change, entry.revision)) }))
    .filter(({ asked }) => !documents || asked.length > 0)
    .reverse()
    .slice(0, query.limit)
    .map(({ revision, meta, hash, changes, asked }) => ({
      revision,
      ...meta,
      hash,
      change_count: changes.length,
      changes: asked.slice(changeOffset, changeOffset + changeLimit).map(toRecorded),
    }))
}

// A store that lasts as long as its process: for tests, demos and read-only copies of a seed file.
import type { Document } from '../domain/resource-type.ts'
import { NO_HASH, RevisionHash } from './hash-chain.ts'
import {
  type Anchor,
  forgottenBefore,
  type HistoryQuery,
  type LoggedChange,
  type NewChange,
  type NewRevision,
  prunedError,
  type RecordedRevision,
  type Remembered,
  type RevisionMeta,
  type Store,
  type TokenUse,
} from './store.ts'

type Slot = NonNullable<NewChange['after']>

interface Row {
  readonly type: string
  readonly id: string
  readonly revision: number
  readonly slot: Slot
}

interface Logged {
  readonly revision: number
  readonly meta: RevisionMeta
  readonly hash: string
  readonly changes: readonly LoggedChange[]
}

export function openMemoryStore(): Store {
  const rows = new Map<string, Row>()
  const answers = new Map<string, Remembered>()
  const uses = new Map<string, TokenUse>()
  let log: Logged[] = []
  let anchor: Anchor | undefined
  const key = (type: string, id: string): string => `${type}/${id}`
  const head = (): number => log.at(-1)?.revision ?? anchor?.revision ?? 0

  function write(revision: number, { changes, remember, ...given }: NewRevision): void {
    const last = log.at(-1)?.meta.time ?? anchor?.time ?? ''
    const meta = { ...given, time: given.time < last ? last : given.time }
    const hash = new RevisionHash(log.at(-1)?.hash ?? anchor?.hash ?? NO_HASH, revision, meta)
    const logged = changes.map(({ type, id, after }) => {
      const before = rows.get(key(type, id))
      if (after) rows.set(key(type, id), { type, id, revision, slot: after })
      else rows.delete(key(type, id))
      const change = {
        type,
        id,
        before: before?.slot.json ?? null,
        before_deleted: before?.slot.deleted ?? false,
        before_revision: before?.revision ?? 0,
        after: after?.json ?? null,
        after_deleted: after?.deleted ?? false,
      }
      hash.add(change)
      return change
    })
    log.push({ revision, meta, hash: hash.digest(), changes: logged })
    if (remember) keep(remember)
  }

  function recall(wanted: string, now: string): Remembered | undefined {
    const known = answers.get(wanted)
    return known && known.time >= forgottenBefore(now) ? known : undefined
  }

  function keep(remembered: Remembered): void {
    if (recall(remembered.key, remembered.time)) return
    const forgotten = forgottenBefore(remembered.time)
    for (const [known, { time }] of answers) if (time < forgotten) answers.delete(known)
    answers.set(remembered.key, remembered)
  }

  return {
    async load(take) {
      for (const { type, id, revision, slot } of rows.values()) {
        take(revision, { type, id, after: parse(slot.json, slot.deleted) })
      }
      return head()
    },
    async *documents() {
      for (const { type, id, revision, slot } of [...rows.values()]) yield { type, id, revision, ...slot }
    },
    head: async () => head(),
    async commit(base, revision) {
      const { remember } = revision
      const isKnown = remember !== undefined && recall(remember.key, remember.time) !== undefined
      if (base !== head() || isKnown) return { ok: false, head: head() }
      write(base + 1, revision)
      return { ok: true }
    },
    async *changesSince(since) {
      for (const { revision, changes } of log.filter((entry) => entry.revision > since)) {
        yield {
          revision,
          changes: changes.map(({ type, id, after, after_deleted }) => ({
            type,
            id,
            after: after === null ? undefined : parse(after, after_deleted),
          })),
        }
      }
    },
    history: async (query) => select(log, query),
    async *log(since, until = Number.POSITIVE_INFINITY) {
      for (const entry of log.filter(({ revision }) => revision > since && revision <= until)) {
        yield { ...entry, change_count: entry.changes.length, last: true }
      }
    },
    async *changedAfter(since, only) {
      if (anchor && anchor.revision > since) throw prunedError(since, anchor)
      const seen = new Set<string>()
      for (const { changes } of log.filter(({ revision }) => revision > since)) {
        for (const { type, id, before, before_deleted, before_revision } of changes) {
          if (only && (type !== only.type || (only.id !== undefined && id !== only.id))) continue
          if (seen.has(key(type, id))) continue
          seen.add(key(type, id))
          const was =
            before === null ? undefined : { ...parse(before, before_deleted), revision: before_revision }
          yield { type, id, was }
        }
      }
    },
    revisionAt: async (time) => log.findLast((entry) => entry.meta.time <= time)?.revision,
    anchor: async () => anchor,
    async prune(to) {
      if (anchor && anchor.revision >= to.revision) return
      anchor = to
      log = log.filter(({ revision }) => revision > to.revision)
    },
    recall: async (wanted, now) => recall(wanted, now),
    remember: async (remembered) => keep(remembered),
    usesOf: async (ids) => ids.flatMap((id) => uses.get(id) ?? []),
    async recordUses(newer) {
      for (const use of newer) if ((uses.get(use.id)?.time ?? '') <= use.time) uses.set(use.id, use)
    },
    watch() {
      return () => {}
    },
    async close() {},
  }
}

/** Always a fresh copy, as from bytes: nobody shares objects with the store. */
function parse(json: string, deleted: boolean) {
  return { document: JSON.parse(json) as Document, deleted, size: json.length }
}

function select(log: readonly Logged[], query: HistoryQuery): RecordedRevision[] {
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
  return log
    .filter(({ revision }) => query.revision === undefined || revision === query.revision)
    .filter(({ revision }) => query.before === undefined || revision < query.before)
    .filter(({ meta }) => actor === undefined || meta.actor === actor)
    .filter(({ meta }) => since === undefined || meta.time >= since)
    .filter(({ meta }) => until === undefined || meta.time <= until)
    .filter(({ meta }) => text === undefined || holds(meta, text))
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
      changes: asked.slice(changeOffset, changeOffset + changeLimit).map((change) => ({
        type: change.type,
        id: change.id,
        before: change.before === null ? null : JSON.parse(change.before),
        before_deleted: change.before_deleted,
        after: change.after === null ? null : JSON.parse(change.after),
        after_deleted: change.after_deleted,
      })),
    }))
}

function holds({ message, operation, actor, request_id }: RevisionMeta, text: string): boolean {
  const wanted = text.toLowerCase()
  return [message ?? '', operation, actor, request_id].some((field) => field.toLowerCase().includes(wanted))
}

// A store that lasts as long as its process: for tests, demos and read-only copies of a seed file.
import type { Document } from '../domain/types/resource-type.ts'
import { checkHash, NO_HASH, RevisionHash } from './hash-chain.ts'
import { holdsText, toRecorded } from './log-rows.ts'
import {
  type Anchor,
  FILLING,
  forgottenBefore,
  type Head,
  type HistoryQuery,
  type Lease,
  type LoggedChange,
  type NewChange,
  type NewRevision,
  notEmptyError,
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
  const leases = new Map<string, Lease & { readonly expires: number }>()
  const head = (): Head => {
    const { revision, hash } = log.at(-1) ?? anchor ?? { revision: 0, hash: NO_HASH }
    return { revision, hash }
  }

  /** Nothing is changed yet: `became` has what the revisions before this one would leave. */
  function prepare(
    before: Head & { readonly time: string },
    { changes, remember: _, hash: wanted, lease: __, ...given }: NewRevision,
    became: Map<string, Row | undefined>,
  ): Logged {
    const revision = before.revision + 1
    const meta = { ...given, time: given.time < before.time ? before.time : given.time }
    const hash = new RevisionHash(before.hash, revision, meta)
    const logged = changes.map(({ type, id, after }) => {
      const at = key(type, id)
      const before = became.has(at) ? became.get(at) : rows.get(at)
      became.set(at, after && { type, id, revision, slot: after })
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
    return { revision, meta, hash: checkHash(revision, hash.digest(), wanted), changes: logged }
  }

  function isStopped({ remember, lease }: NewRevision): boolean {
    return isFenced(lease) || (remember !== undefined && recall(remember.key, remember.time) !== undefined)
  }

  function isFenced(lease: NewRevision['lease']): boolean {
    return lease !== undefined && leases.get(lease.name)?.term !== lease.term
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
    isPrivate: true,
    async load(take) {
      for (const { type, id, revision, slot } of rows.values()) {
        take(revision, { type, id, after: parse(slot.json, slot.deleted) })
      }
      return head()
    },
    async *documents() {
      for (const { type, id, revision, slot } of [...rows.values()]) yield { type, id, revision, ...slot }
    },
    async head() {
      const at = head()
      const importInProgress = at.revision > 0 && (leases.get(FILLING)?.expires ?? 0) > performance.now()
      return { ...at, ...(importInProgress && { importInProgress }) }
    },
    async hashOf(revision) {
      if (revision === 0) return NO_HASH
      return [...(anchor ? [anchor] : []), ...log].find((entry) => entry.revision === revision)?.hash
    },
    async commit(base, ...revisions) {
      const at = head()
      const fenced = revisions.some(({ lease }) => isFenced(lease)) && ({ isFenced: true } as const)
      if (base !== at.revision || revisions.some(isStopped)) {
        return { ok: false, head: at.revision, ...fenced }
      }
      const became = new Map<string, Row | undefined>()
      const entries: Logged[] = []
      for (const revision of revisions) {
        const { meta, ...last } = entries.at(-1) ??
          log.at(-1) ?? { ...at, meta: { time: anchor?.time ?? '' } }
        entries.push(prepare({ ...last, time: meta.time }, revision, became))
      }
      for (const [at, row] of became) {
        if (row) rows.set(at, row)
        else rows.delete(at)
      }
      log.push(...entries)
      for (const { remember } of revisions) if (remember) keep(remember)
      return { ok: true, hash: head().hash }
    },
    withWriteLock: (run) => run(),
    async initFromSnapshot(from, documents) {
      if (head().revision > 0) throw notEmptyError()
      anchor = from
      for (const { type, id, revision, json, deleted } of documents)
        rows.set(key(type, id), { type, id, revision, slot: { json, deleted } })
    },
    async *changesSince(since) {
      for (const { revision, hash, changes } of log.filter((entry) => entry.revision > since)) {
        yield {
          revision,
          hash,
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
    async *answers(now) {
      yield* [...answers.values()].filter(({ time }) => time >= forgottenBefore(now))
    },
    usesOf: async (ids) => ids.flatMap((id) => uses.get(id) ?? []),
    async recordUses(newer) {
      for (const use of newer) if ((uses.get(use.id)?.time ?? '') <= use.time) uses.set(use.id, use)
    },
    async acquire(name, holder, ms) {
      const known = leases.get(name)
      const isFree = !known || known.expires <= performance.now()
      if (!isFree && known.holder !== holder) return leaseOf(known)
      const term = known?.holder === holder && !isFree ? known.term : (known?.term ?? 0) + 1
      leases.set(name, { name, holder, term, expires: performance.now() + ms })
      return { name, holder, term }
    },
    async release({ name, term }) {
      const known = leases.get(name)
      if (known?.term === term) leases.set(name, { ...known, expires: 0 })
    },
    watch() {
      return () => {}
    },
    async close() {},
  }
}

function leaseOf({ name, holder, term }: Lease): Lease {
  return { name, holder, term }
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

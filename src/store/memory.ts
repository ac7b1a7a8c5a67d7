// A store that lasts as long as its process: for tests, demos and read-only copies of a seed file.
import { getOrSet } from '../base/get-or-set.ts'
import { TimeSlice } from '../runtime/time-slice.ts'
import { expiredBefore, type IdempotencyRecord, type IdempotencyRecords } from './idempotency.ts'
import type { Lease, Leases } from './leases.ts'
import {
  appendRevisions,
  changedAfter,
  changesSince,
  createMemoryLog,
  hashOf,
  headOf,
  initFromSnapshot,
  loadAll,
  type MemoryLog,
  pruneTo,
  searchRevisions,
} from './memory-log.ts'
import { batchesOf, keyBatchesOf } from './note-batches.ts'
import type { Note, Notes } from './notes.ts'
import type { Log, LogMaintenance, LogReader, Store } from './store.ts'

export function openMemoryStore(): Store {
  const log = createMemoryLog()
  const records = new Map<string, IdempotencyRecord>()
  return {
    ...logIn(log, records),
    ...readerOf(log),
    ...maintenanceOf(log),
    notes: notesIn(new Map()),
    idempotency: idempotencyIn(records),
    leases: leasesIn(new Map()),
    async close() {},
  }
}

type Records = Map<string, IdempotencyRecord>

function logIn(log: MemoryLog, records: Records): Log {
  return {
    isPrivate: true,
    load: async (take) => loadAll(log, take),
    async head() {
      const head = headOf(log)
      return { ...head, ...(log.importInProgress && head.revision > 0 && { importInProgress: true }) }
    },
    hashOf: async (revision) => hashOf(log, revision),
    async *changesSince(revision) {
      yield* changesSince(log, revision)
    },
    watch: () => () => {},
    async commit(base, ...revisions) {
      const { revision: head } = headOf(log)
      const isRepeated = revisions.some(
        ({ idempotency }) => idempotency && findRecord(records, idempotency.key, idempotency.time),
      )
      if (base !== head || isRepeated) return { ok: false, head }
      const hash = appendRevisions(log, revisions)
      for (const { idempotency } of revisions) if (idempotency) saveRecord(records, idempotency)
      return { ok: true, hash }
    },
    withWriteLock: (run) => run(),
  }
}

function readerOf(log: MemoryLog): LogReader {
  return {
    async *documents() {
      yield* [...log.documents.values()]
    },
    async *log(since, until = Number.POSITIVE_INFINITY) {
      for (const entry of log.revisions.filter(({ revision }) => revision > since && revision <= until))
        yield { ...entry, change_count: entry.changes.length, last: true }
    },
    history: async (query) => searchRevisions(log, query),
    async *changedAfter(since, only) {
      yield* changedAfter(log, since, only)
    },
    revisionAt: async (time) => log.revisions.findLast(({ meta }) => meta.time <= time)?.revision,
    anchor: async () => log.anchor,
  }
}

function maintenanceOf(log: MemoryLog): LogMaintenance {
  return {
    initFromSnapshot: async (anchor, documents) => initFromSnapshot(log, anchor, documents),
    prune: async (anchor) => pruneTo(log, anchor),
    async setImportInProgress(inProgress) {
      log.importInProgress = inProgress
    },
  }
}

function notesIn(kinds: Map<string, Map<string, Note>>): Notes {
  return {
    async record(kind, notes) {
      for await (const batch of batchesOf(notes)) {
        const known = getOrSet(kinds, kind, () => new Map<string, Note>())
        for (const note of batch) {
          const other = known.get(note.key)
          if (!other || isNewer(note, other)) known.set(note.key, note)
        }
      }
    },
    async *read(kind, keys) {
      const known = kinds.get(kind)
      if (!known) return
      if (keys) for (const key of new Set(keys)) yield* known.has(key) ? [known.get(key) as Note] : []
      else yield* readAll(known)
    },
    async *readSince(kind, since) {
      for await (const note of readAll(kinds.get(kind) ?? new Map())) if (note.time >= since) yield note
    },
    async remove(kind, keys) {
      for await (const batch of keyBatchesOf(keys)) for (const key of batch) kinds.get(kind)?.delete(key)
    },
  }
}

async function* readAll(known: ReadonlyMap<string, Note>): AsyncGenerator<Note> {
  const timeSlice = new TimeSlice()
  for (const note of known.values()) {
    yield note
    if (timeSlice.expired) await timeSlice.yield()
  }
}

function isNewer(note: Note, other: Note): boolean {
  if (note.time !== other.time) return note.time > other.time
  return other.value === null || (note.value !== null && note.value > other.value)
}

function idempotencyIn(records: Records): IdempotencyRecords {
  return {
    find: async (key, now) => findRecord(records, key, now),
    save: async (record) => saveRecord(records, record),
    async *list(now) {
      yield* [...records.values()].filter(({ time }) => time >= expiredBefore(now))
    },
  }
}

function findRecord(records: Records, key: string, now: string): IdempotencyRecord | undefined {
  const known = records.get(key)
  return known && known.time >= expiredBefore(now) ? known : undefined
}

function saveRecord(records: Records, record: IdempotencyRecord): void {
  if (findRecord(records, record.key, record.time)) return
  const expired = expiredBefore(record.time)
  for (const [key, { time }] of records) if (time < expired) records.delete(key)
  records.set(record.key, record)
}

function leasesIn(leases: Map<string, Lease & { readonly expires: number }>): Leases {
  return {
    async acquire(name, holder, ms) {
      const known = leases.get(name)
      const isFree = !known || known.expires <= performance.now()
      if (!isFree && known.holder !== holder) return { name, holder: known.holder, term: known.term }
      const term = isFree ? (known?.term ?? 0) + 1 : known.term
      leases.set(name, { name, holder, term, expires: performance.now() + ms })
      return { name, holder, term }
    },
    async release({ name, term }) {
      const known = leases.get(name)
      if (known?.term === term) leases.set(name, { ...known, expires: 0 })
    },
  }
}

// A store that lasts as long as its process: for tests, demos and read-only copies of a seed file.
import type { Document } from '../domain/resource-type.ts'
import type { HistoryQuery, NewChange, NewRevision, RecordedRevision, Store } from './store.ts'

type Slot = NonNullable<NewChange['after']>

interface Row {
  readonly type: string
  readonly id: string
  readonly revision: number
  readonly slot: Slot
}

export function openMemoryStore(): Store {
  const rows = new Map<string, Row>()
  const log: RecordedRevision[] = []
  const key = (type: string, id: string): string => `${type}/${id}`

  function write(revision: number, { changes, ...meta }: NewRevision): void {
    const recorded = changes.map(({ type, id, after }) => {
      const before = rows.get(key(type, id))?.slot
      if (after) rows.set(key(type, id), { type, id, revision, slot: after })
      else rows.delete(key(type, id))
      return {
        type,
        id,
        before: before ? JSON.parse(before.json) : null,
        after: after ? JSON.parse(after.json) : null,
        before_deleted: before?.deleted ?? false,
        after_deleted: after?.deleted ?? false,
      }
    })
    log.push({ revision, ...meta, change_count: recorded.length, changes: recorded })
  }

  return {
    async load(take) {
      for (const { type, id, revision, slot } of rows.values()) {
        take(revision, { type, id, after: applied(slot) })
      }
      return log.length
    },
    async head() {
      return log.length
    },
    async commit(base, revision) {
      if (base !== log.length) return { ok: false, head: log.length }
      write(base + 1, revision)
      return { ok: true }
    },
    async *changesSince(revision) {
      for (const { revision: number, changes } of log.slice(revision)) {
        yield {
          revision: number,
          changes: changes.map(({ type, id, after, after_deleted }) => {
            const json = JSON.stringify(after)
            return {
              type,
              id,
              after: after ? applied({ deleted: after_deleted, json }) : undefined,
            }
          }),
        }
      }
    },
    async history(query) {
      return select(log, query)
    },
    watch() {
      return () => {}
    },
    async close() {},
  }
}

/** Always a fresh copy, as from bytes: nobody shares objects with the store. */
function applied({ deleted, json }: Slot) {
  return { document: JSON.parse(json) as Document, deleted, size: json.length }
}

function select(log: readonly RecordedRevision[], query: HistoryQuery): RecordedRevision[] {
  const { document, changeOffset = 0 } = query
  return log
    .filter(({ revision }) => query.revision === undefined || revision === query.revision)
    .filter(({ revision }) => query.before === undefined || revision < query.before)
    .map((entry) => {
      const matches = ({ type, id }: { type: string; id: string }) =>
        !document || (type === document.type && id === document.id)
      return { ...entry, changes: entry.changes.filter(matches) }
    })
    .filter(({ changes }) => !document || changes.length > 0)
    .reverse()
    .slice(0, query.limit)
    .map((entry) => ({
      ...entry,
      changes: entry.changes.slice(changeOffset, changeOffset + query.changeLimit),
    }))
}

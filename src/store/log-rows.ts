// Converts rows of a log, from any database, to values.

import type { Applied } from '../domain/documents/state.ts'
import type { Document } from '../domain/types/resource-type.ts'
import {
  type Anchor,
  type LoggedChange,
  type PastDocument,
  prunedError,
  type RecordedRevision,
  type RevisionMeta,
  StoreError,
} from './store.ts'

export const META =
  'revision, time, actor, message, request_id, client_address, operation, hash, change_count'
export const CHANGE = 'type, id, before, before_deleted, before_revision, after, after_deleted'

export type RevisionRow = Omit<RecordedRevision, 'changes'>

export function parseApplied(
  type: string,
  id: string,
  json: string,
  deleted: boolean,
): NonNullable<Applied['after']> {
  try {
    return { document: JSON.parse(json) as Document, deleted, size: json.length }
  } catch (cause) {
    throw new StoreError(`${type} "${id}" is not readable in the database: restore it from a backup`, {
      cause,
    })
  }
}

export function toApplied({
  type,
  id,
  after,
  after_deleted,
}: Pick<LoggedChange, 'type' | 'id' | 'after' | 'after_deleted'>): Applied {
  return { type, id, after: after === null ? undefined : parseApplied(type, id, after, after_deleted) }
}

export type PastChange = Pick<LoggedChange, 'type' | 'id' | 'before' | 'before_deleted' | 'before_revision'>

export function toPast({ type, id, before, before_deleted, before_revision }: PastChange): PastDocument {
  if (before === null) return { type, id, was: undefined }
  return { type, id, was: { ...parseApplied(type, id, before, before_deleted), revision: before_revision } }
}

export function toRecorded({
  before_revision: _,
  before,
  after,
  ...change
}: LoggedChange): RecordedRevision['changes'][number] {
  return {
    ...change,
    before: before === null ? null : JSON.parse(before),
    after: after === null ? null : JSON.parse(after),
  }
}

/** Whether a text is in the metadata of a revision, ignoring case. */
export function holdsText(
  { message, operation, actor, request_id }: RevisionMeta,
  text: string | undefined,
): boolean {
  const wanted = text?.toLowerCase()
  const fields = [message ?? '', operation, actor, request_id]
  return wanted === undefined || fields.some((field) => field.toLowerCase().includes(wanted))
}

/** Passes the documents on; throws when the log was pruned beyond the revision, before or during the read. */
export async function* withinReach(
  revision: number,
  readAnchor: () => Promise<Anchor | undefined>,
  documents: AsyncIterable<PastDocument>,
): AsyncGenerator<PastDocument> {
  const check = async (): Promise<void> => {
    const anchor = await readAnchor()
    if (anchor && anchor.revision > revision) throw prunedError(revision, anchor)
  }
  await check()
  yield* documents
  await check()
}

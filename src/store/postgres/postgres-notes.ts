// Notes in PostgreSQL.
import { batchesOf, keyBatchesOf } from '../note-batches.ts'
import { inPages, underKeys } from '../note-pages.ts'
import { type Note, TOKEN_USES } from '../notes.ts'
import type { StoreError } from '../store.ts'
import type { Database } from './postgres-database.ts'
import { S } from './postgres-query.ts'

/** Notes to read at once. */
const PAGE = 1000

interface NoteTable {
  /** Takes notes as JSON. */
  readonly record: string
  readonly byKeys: string
  /** Take the first key, and the last key of the page before. */
  readonly firstPage: string
  readonly nextPage: string
  /** Takes keys; locks them in their order, as recording does, so that two processes do not deadlock. */
  readonly remove: string
  /** The parameters of each statement above: the given value, and the kind where needed. */
  readonly values: (given: unknown, kind: string) => unknown[]
}

/** The newest note under each key, sorted by key, so that two processes do not deadlock. */
const NEWEST = `
  SELECT DISTINCT ON (key) key, time, value
  FROM json_to_recordset($1) AS n(key text COLLATE "C", time text COLLATE "C", value text COLLATE "C")
  ORDER BY key, time DESC, value DESC NULLS LAST`

const NOTES: NoteTable = {
  record: `
    INSERT INTO ${S}.notes AS known (kind, key, time, value) SELECT $2, newest.* FROM (${NEWEST}) AS newest
    ON CONFLICT (kind, key) DO UPDATE SET time = excluded.time, value = excluded.value
    WHERE (excluded.time, excluded.value IS NOT NULL, excluded.value) > (known.time, known.value IS NOT NULL, known.value)`,
  byKeys: `SELECT key, time, value FROM ${S}.notes WHERE kind = $2 AND key = ANY($1)`,
  // Not by equality of kinds: without statistics the planner would sort all notes of a kind for every page.
  firstPage: `
    SELECT key, time, value FROM ${S}.notes
    WHERE (kind, key) >= ($2, $1) AND kind <= $2 ORDER BY kind, key LIMIT ${PAGE}`,
  nextPage: `
    SELECT key, time, value FROM ${S}.notes
    WHERE (kind, key) > ($2, $1) AND kind <= $2 ORDER BY kind, key LIMIT ${PAGE}`,
  remove: `
    WITH found AS MATERIALIZED (
      SELECT key FROM ${S}.notes WHERE kind = $2 AND key = ANY($1) ORDER BY key FOR UPDATE
    )
    DELETE FROM ${S}.notes WHERE kind = $2 AND key IN (SELECT key FROM found)`,
  values: (given, kind) => [given, kind],
}

/** Uses of tokens have a table of their own, older than notes, which programs of earlier versions use too. */
const USES: NoteTable = {
  record: `
    INSERT INTO ${S}.token_uses AS known (id, time, address) ${NEWEST}
    ON CONFLICT (id) DO UPDATE SET time = excluded.time, address = excluded.address
    WHERE (excluded.time, excluded.address IS NOT NULL, excluded.address COLLATE "C")
      > (known.time, known.address IS NOT NULL, known.address COLLATE "C")`,
  byKeys: `SELECT id AS key, time, address AS value FROM ${S}.token_uses WHERE id = ANY($1)`,
  firstPage: `
    SELECT id AS key, time, address AS value FROM ${S}.token_uses WHERE id >= $1 ORDER BY id LIMIT ${PAGE}`,
  nextPage: `
    SELECT id AS key, time, address AS value FROM ${S}.token_uses WHERE id > $1 ORDER BY id LIMIT ${PAGE}`,
  remove: `
    WITH found AS MATERIALIZED (
      SELECT id FROM ${S}.token_uses WHERE id = ANY($1) ORDER BY id FOR UPDATE
    )
    DELETE FROM ${S}.token_uses WHERE id IN (SELECT id FROM found)`,
  values: (given) => [given],
}

/** Along the index by time; takes the kind, and the time and the key to start at or after. */
function pageSince(comparison: '>=' | '>'): string {
  return `
    SELECT key, time, value FROM ${S}.notes
    WHERE (kind, time, key) ${comparison} ($1, $2, $3) AND kind <= $1 ORDER BY kind, time, key LIMIT ${PAGE}`
}

function tableOf(kind: string): NoteTable {
  return kind === TOKEN_USES ? USES : NOTES
}

const MAY_NOT_WRITE = ['42501', '25006']

interface Target {
  readonly db: Database
  /** False in a process that only reads, which records and removes notes where the database lets it. */
  readonly write: boolean
  readonly kind: string
}

export async function recordNotes({ db, write, kind }: Target, notes: readonly Note[]): Promise<void> {
  const { record, values } = tableOf(kind)
  for await (const batch of batchesOf(notes))
    if (!(await isAllowed(write, db.query(record, values(JSON.stringify(batch), kind))))) return
}

export async function removeNotes({ db, write, kind }: Target, keys: readonly string[]): Promise<void> {
  const { remove, values } = tableOf(kind)
  for await (const batch of keyBatchesOf(keys))
    if (!(await isAllowed(write, db.query(remove, values(batch, kind))))) return
}

/** Returns false when the database does not let a process that only reads do it. */
async function isAllowed(write: boolean, doing: Promise<unknown>): Promise<boolean> {
  try {
    await doing
    return true
  } catch (error) {
    const { code = '' } = ((error as StoreError).cause ?? {}) as { code?: string }
    if (write || !MAY_NOT_WRITE.includes(code)) throw error
    return false
  }
}

export async function* readNotes(db: Database, kind: string, keys?: readonly string[]): AsyncGenerator<Note> {
  const { byKeys, firstPage, nextPage, values } = tableOf(kind)
  const read = (sql: string, given: unknown): Promise<Note[]> => db.query<Note>(sql, values(given, kind))
  yield* keys
    ? underKeys(PAGE, keys, (some) => read(byKeys, some))
    : inPages(PAGE, (last) => (last ? read(nextPage, last.key) : read(firstPage, '')))
}

/** All uses of tokens are read: an index by time would cost more than it saves. */
export async function* readNotesSince(db: Database, kind: string, since: string): AsyncGenerator<Note> {
  if (kind === TOKEN_USES) {
    for await (const note of readNotes(db, kind)) if (note.time >= since) yield note
    return
  }
  const read = (sql: string, time: string, key: string): Promise<Note[]> =>
    db.query<Note>(sql, [kind, time, key])
  yield* inPages(PAGE, (last) =>
    last ? read(pageSince('>'), last.time, last.key) : read(pageSince('>='), since, ''),
  )
}

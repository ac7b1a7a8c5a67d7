// Notes in a SQLite file: recorded by the writing thread, read by any connection.
import type { DatabaseSync } from 'node:sqlite'
import { inPages, underKeys } from '../note-pages.ts'
import { type Note, TOKEN_USES } from '../notes.ts'
import { guard, prepared } from './sqlite-database.ts'

/** Notes to read at once. */
const PAGE = 200

interface NoteTable {
  /** Takes key, time and value. */
  readonly record: string
  /** Takes keys as JSON. */
  readonly byKeys: string
  readonly firstPage: string
  /** Takes the last key of the page before. */
  readonly nextPage: string
  /** Takes keys as JSON. */
  readonly remove: string
  /** The parameters of each statement above: the kind where needed, and the given values. */
  readonly values: (kind: string, ...given: (string | null)[]) => (string | null)[]
}

const NOTES: NoteTable = {
  record: `
    INSERT INTO notes (kind, key, time, value) VALUES (?, ?, ?, ?)
    ON CONFLICT (kind, key) DO UPDATE SET time = excluded.time, value = excluded.value
    WHERE (excluded.time, excluded.value IS NOT NULL, excluded.value) > (notes.time, notes.value IS NOT NULL, notes.value)`,
  byKeys: `
    SELECT key, time, value FROM notes
    WHERE kind = ? AND key IN (SELECT asked.value FROM json_each(?) AS asked)`,
  firstPage: `SELECT key, time, value FROM notes WHERE kind = ? ORDER BY key LIMIT ${PAGE}`,
  nextPage: `SELECT key, time, value FROM notes WHERE kind = ? AND key > ? ORDER BY key LIMIT ${PAGE}`,
  remove: 'DELETE FROM notes WHERE kind = ? AND key IN (SELECT asked.value FROM json_each(?) AS asked)',
  values: (kind, ...given) => [kind, ...given],
}

/** Uses of tokens have a table of their own, older than notes, which programs of earlier versions use too. */
const USES: NoteTable = {
  record: `
    INSERT INTO token_uses AS known (id, time, address) VALUES (?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET time = excluded.time, address = excluded.address
    WHERE (excluded.time, excluded.address IS NOT NULL, excluded.address) > (known.time, known.address IS NOT NULL, known.address)`,
  byKeys: `
    SELECT id AS key, time, address AS value FROM token_uses
    WHERE id IN (SELECT asked.value FROM json_each(?) AS asked)`,
  firstPage: `SELECT id AS key, time, address AS value FROM token_uses ORDER BY id LIMIT ${PAGE}`,
  nextPage: `SELECT id AS key, time, address AS value FROM token_uses WHERE id > ? ORDER BY id LIMIT ${PAGE}`,
  remove: 'DELETE FROM token_uses WHERE id IN (SELECT asked.value FROM json_each(?) AS asked)',
  values: (_, ...given) => given,
}

/** Along the index by time; takes the time and the key to start at or after. */
function pageSince(comparison: '>=' | '>'): string {
  return `
    SELECT key, time, value FROM notes WHERE kind = ? AND (time, key) ${comparison} (?, ?)
    ORDER BY time, key LIMIT ${PAGE}`
}

function tableOf(kind: string): NoteTable {
  return kind === TOKEN_USES ? USES : NOTES
}

/** Runs inside a transaction. */
export function recordNotes(db: DatabaseSync, kind: string, notes: readonly Note[]): void {
  const { record, values } = tableOf(kind)
  const statement = prepared(db, record)
  for (const { key, time, value } of notes) statement.run(...values(kind, key, time, value))
}

/** Runs inside a transaction. */
export function removeNotes(db: DatabaseSync, kind: string, keys: readonly string[]): void {
  const { remove, values } = tableOf(kind)
  prepared(db, remove).run(...values(kind, JSON.stringify(keys)))
}

export async function* readNotes(
  db: DatabaseSync,
  kind: string,
  keys?: readonly string[],
): AsyncGenerator<Note> {
  const { firstPage, nextPage, byKeys, values } = tableOf(kind)
  const read = async (sql: string, ...given: string[]): Promise<Note[]> =>
    (await guard(() => prepared(db, sql).all(...values(kind, ...given)))) as unknown as Note[]
  yield* keys
    ? underKeys(PAGE, keys, (some) => read(byKeys, JSON.stringify(some)))
    : inPages(PAGE, (last) => (last ? read(nextPage, last.key) : read(firstPage)))
}

/** All uses of tokens are read: an index by time would cost more than it saves. */
export async function* readNotesSince(db: DatabaseSync, kind: string, since: string): AsyncGenerator<Note> {
  if (kind === TOKEN_USES) {
    for await (const note of readNotes(db, kind)) if (note.time >= since) yield note
    return
  }
  const read = async (sql: string, time: string, key: string): Promise<Note[]> =>
    (await guard(() => prepared(db, sql).all(kind, time, key))) as unknown as Note[]
  yield* inPages(PAGE, (last) =>
    last ? read(pageSince('>'), last.time, last.key) : read(pageSince('>='), since, ''),
  )
}

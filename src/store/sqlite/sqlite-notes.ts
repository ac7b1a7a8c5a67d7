// Notes in a SQLite file: recorded by the writing thread, read by any connection.
import type { DatabaseSync } from 'node:sqlite'
import { TimeSlice } from '../../runtime/time-slice.ts'
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
  values: (_, ...given) => given,
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

export async function* readNotes(
  db: DatabaseSync,
  kind: string,
  keys: readonly string[] | undefined,
): AsyncGenerator<Note> {
  const { firstPage, nextPage, byKeys, values } = tableOf(kind)
  const read = async (sql: string, ...given: string[]): Promise<Note[]> =>
    (await guard(() => prepared(db, sql).all(...values(kind, ...given)))) as unknown as Note[]
  const timeSlice = new TimeSlice()
  if (keys) {
    const asked = [...new Set(keys)]
    for (let at = 0; at < asked.length; at += PAGE) {
      yield* await read(byKeys, JSON.stringify(asked.slice(at, at + PAGE)))
      if (timeSlice.expired) await timeSlice.yield()
    }
    return
  }
  for (let page = await read(firstPage); ; page = await read(nextPage, page.at(-1)?.key as string)) {
    yield* page
    if (page.length < PAGE) return
    if (timeSlice.expired) await timeSlice.yield()
  }
}

// Notes in PostgreSQL.
import { checkNotes, type Note, TOKEN_USES } from '../notes.ts'
import type { StoreError } from '../store.ts'
import type { Database } from './postgres-database.ts'
import { S } from './postgres-query.ts'

/** Notes to write in one statement. */
const NOTES_PER_BATCH = 1000
/** Notes to read at once. */
const PAGE = 1000

interface NoteTable {
  /** Takes notes as JSON. */
  readonly record: string
  readonly byKeys: string
  /** Take the first key, and the last key of the page before. */
  readonly firstPage: string
  readonly nextPage: string
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
  values: (given) => [given],
}

function tableOf(kind: string): NoteTable {
  return kind === TOKEN_USES ? USES : NOTES
}

const MAY_NOT_WRITE = ['42501', '25006']

/** A read-only process records notes too, where the database lets it. */
export async function recordNotes(
  db: Database,
  write: boolean,
  kind: string,
  notes: readonly Note[],
): Promise<void> {
  checkNotes(notes)
  const { record, values } = tableOf(kind)
  try {
    for (let at = 0; at < notes.length; at += NOTES_PER_BATCH)
      await db.query(record, values(JSON.stringify(notes.slice(at, at + NOTES_PER_BATCH)), kind))
  } catch (error) {
    const { code = '' } = ((error as StoreError).cause ?? {}) as { code?: string }
    if (write || !MAY_NOT_WRITE.includes(code)) throw error
  }
}

export async function* readNotes(
  db: Database,
  kind: string,
  keys: readonly string[] | undefined,
): AsyncGenerator<Note> {
  const { byKeys, firstPage, nextPage, values } = tableOf(kind)
  const read = (sql: string, given: unknown): Promise<Note[]> => db.query<Note>(sql, values(given, kind))
  if (keys) {
    const asked = [...new Set(keys)]
    for (let at = 0; at < asked.length; at += PAGE) yield* await read(byKeys, asked.slice(at, at + PAGE))
    return
  }
  for (let page = await read(firstPage, ''); ; page = await read(nextPage, page.at(-1)?.key)) {
    yield* page
    if (page.length < PAGE) return
  }
}

// A set of documents from files, and the operations that make the fleet hold it.
import { equalJson, isObject, type Json, type JsonObject, pointer } from '../../base/json.ts'
import { buildNormaliser } from '../../registry/normalise.ts'
import { usage } from '../failure.ts'
import { IGNORE_FILE } from '../input/ignored-files.ts'
import { type Parsed, readFiles } from '../input/read-files.ts'
import type { Terminal } from '../output/terminal.ts'
import type { Noun } from '../server/nouns.ts'

/** A document of a set, and the file that it is from. */
export interface Wanted {
  readonly type: string
  readonly id: string
  readonly document: JsonObject
  readonly source: string
}

/** One operation, and the document of the set that it is for, if it is for one. */
export interface Step {
  readonly operation: JsonObject
  readonly wanted?: Wanted
}

/** Reads the documents of all files; a document that is there twice is an error. */
export async function readSet(
  terminal: Terminal,
  nouns: readonly Noun[],
  paths: readonly string[],
): Promise<Wanted[]> {
  const parsed: Parsed[] = []
  for (const path of paths) parsed.push(...(await readFiles(terminal, path)))
  const set = parsed.flatMap((item) => documentsIn(nouns, item))
  if (set.length === 0) throw usage(`${paths.join(', ')} holds no documents`)
  const seen = new Map<string, string>()
  for (const { type, id, source } of set) {
    const earlier = seen.get(`${type}/${id}`)
    if (earlier !== undefined) throw usage(`${type}/${id} is there twice: in ${earlier} and in ${source}`)
    seen.set(`${type}/${id}`, source)
  }
  return set
}

/** The documents in a value: one with its type, a list of them, or a seed file (lists of documents by type). */
export function documentsIn(nouns: readonly Noun[], { value, source }: Parsed): Wanted[] {
  if (Array.isArray(value)) {
    return value.flatMap((item, i) => documentsIn(nouns, { value: item, source: `${source} [${i}]` }))
  }
  if (!isObject(value)) throw usage(`${source}: must be a document with a type`)
  const { type } = value
  if (typeof type === 'string') return [toWanted(nouns, value, type, source)]
  const lists = Object.entries(value)
  const isSeed = lists.length > 0 && lists.every(([, documents]) => Array.isArray(documents))
  if (!isSeed)
    throw usage(
      `${source}: has no type: add one of ${typeNames(nouns)}`,
      `files that hold no documents are left out by their names in ${IGNORE_FILE} of the folder, as in .gitignore`,
    )
  return lists.flatMap(([name, documents]) =>
    (documents as readonly Json[]).map((item, i) => {
      const place = `${source} /${name}/${i}`
      if (!isObject(item)) throw usage(`${place}: must be a document`)
      const { _id, ...rest } = item
      return toWanted(
        nouns,
        { type: name, document: _id === undefined ? item : { id: _id, ...rest } },
        name,
        place,
      )
    }),
  )
}

/** Whether a value is `{type, document}`: the form for documents that have a field `type` themselves. */
export function isWrapped(value: JsonObject): boolean {
  return isObject(value.document) && Object.keys(value).length === 2
}

/** The document of a value of a set: `{type, ...fields}` or `{type, document}`. */
export function withoutType(value: JsonObject): JsonObject {
  const { type: _type, ...fields } = value
  return isWrapped(value) ? (value.document as JsonObject) : fields
}

function toWanted(nouns: readonly Noun[], value: JsonObject, type: string, source: string): Wanted {
  const noun = nouns.find(({ name, bookkeeping }) => name === type && !bookkeeping)
  if (!noun) throw usage(`${source}: type "${type}" is not known: known are ${typeNames(nouns)}`)
  const document = withoutType(value)
  const { id } = document
  if (typeof id === 'number' || typeof id === 'boolean')
    throw usage(`${source}: id must be text: write "${id}" in quotes`)
  if (typeof id !== 'string' || id === '') throw usage(`${source}: needs an id`)
  if (/^\.{1,2}$/.test(id)) throw usage(`${source}: "${id}" is not an id`)
  return { type, id, document, source }
}

function typeNames(nouns: readonly Noun[]): string {
  return nouns
    .filter(({ bookkeeping }) => !bookkeeping)
    .map(({ name }) => name)
    .join(', ')
}

/** Normalises the fields that a document names as the service does, so that equal documents compare as equal. */
export function completer({ schema }: Noun): (document: JsonObject) => JsonObject {
  const normalise = buildNormaliser(schema)
  return (document) => {
    const whole = normalise(document) as JsonObject
    return Object.fromEntries(Object.keys(document).map((name) => [name, whole[name] ?? null]))
  }
}

/** The operation that makes a document what is wanted; undefined when it is. Fields that are not named stay. */
export function operationFor(
  { type, id, document }: Wanted,
  current: JsonObject | undefined,
): JsonObject | undefined {
  if (!current) return { op: 'create', type, document }
  const changed = Object.entries(document).filter(
    ([name, value]) =>
      name !== 'id' && !(Object.hasOwn(current, name) && equalJson(current[name] as Json, value)),
  )
  const patch = changed.map(([name, value]) => ({
    op: 'add',
    path: pointer('', name),
    value,
  }))
  return patch.length === 0 ? undefined : { op: 'patch', type, id, patch }
}

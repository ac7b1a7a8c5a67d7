// From text on the command line to values of a document's fields, as their schemas want them.
import { isObject, type Json, type JsonObject, own } from '../../base/json.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import { usage } from '../failure.ts'

export type Path = readonly (string | number)[]

const STEP = /\.?((?:[^.[\]=\\]|\\.)+)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]/y

/** Parses `a.b[0]=x`; keys with dots are written `a\.b` or `["a.b"]`. */
export function parseSetting(text: string, flag: string): { readonly path: Path; readonly value: string } {
  const { path, rest } = readPath(text)
  if (path.length === 0 || !rest.startsWith('=')) {
    throw usage(
      `${flag} must be like path=value, such as labels.team=web or subjects[0].name=ann, not "${text}"`,
    )
  }
  return { path, value: rest.slice(1) }
}

export function parsePath(text: string, flag: string): Path {
  const { path, rest } = readPath(text)
  if (path.length === 0 || rest !== '')
    throw usage(`${flag} must be a path such as labels.team, not "${text}"`)
  return path
}

function readPath(text: string): { path: Path; rest: string } {
  const path: (string | number)[] = []
  let at = 0
  for (;;) {
    STEP.lastIndex = at
    const found = STEP.exec(text)
    if (!found) return { path, rest: text.slice(at) }
    const [all, name, index, quoted] = found
    path.push(index === undefined ? (name ?? quoted ?? '').replaceAll(/\\(.)/g, '$1') : Number(index))
    at += all.length
  }
}

/** Parses `key=value`; the value may hold anything. */
export function parsePair(text: string, flag: string): [key: string, value: string] {
  const at = text.indexOf('=')
  if (at < 1) throw usage(`${flag} must be key=value, not "${text}"`)
  return [text.slice(0, at), text.slice(at + 1)]
}

function typeOf({ type, properties, additionalProperties, items }: SchemaObject): string | undefined {
  const named = Array.isArray(type) ? type.find((each) => each !== 'null') : type
  if (named !== undefined) return named as string
  if (properties || isObject(additionalProperties)) return 'object'
  return items ? 'array' : undefined
}

/** The schema at a path; an empty one where it is not known. */
export function schemaAt(schema: SchemaObject, path: Path): SchemaObject {
  return path.reduce((found: SchemaObject, step) => {
    if (typeof step === 'number') return found.items ?? {}
    const other = found.additionalProperties
    const child = Object.hasOwn(found.properties ?? {}, step) ? found.properties?.[step] : undefined
    return child ?? (typeof other === 'object' ? other : {})
  }, schema)
}

/** Parses text as a value of a schema. */
export function parseValue(schema: SchemaObject, text: string, flag: string): Json {
  switch (typeOf(schema)) {
    case 'string':
      return text
    case 'boolean':
      if (text === 'true' || text === 'false') return text === 'true'
      throw usage(`${flag} must be true or false, not "${text}"`)
    case 'integer':
    case 'number': {
      const number = text.trim() === '' ? Number.NaN : Number(text)
      if (Number.isFinite(number)) return number
      throw usage(`${flag} must be a number, not "${text}"`)
    }
    case 'array':
      return text.startsWith('[') ? parseJson(text, flag) : [parseValue(schema.items ?? {}, text, flag)]
    case 'object':
      return text.startsWith('{') ? parseJson(text, flag) : parsePairs(schema, text, flag)
    default:
      return guess(text)
  }
}

function parseJson(text: string, flag: string): Json {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw usage(`${flag} is not JSON: ${(error as Error).message}`)
  }
}

/** Parses `kind=Group,name=dev-team` as an object. */
function parsePairs(schema: SchemaObject, text: string, flag: string): JsonObject {
  const pairs = text.split(',').map((pair) => parsePair(pair, flag))
  return Object.fromEntries(
    pairs.map(([key, value]) => [key, parseValue(schemaAt(schema, [key]), value, `${flag} ${key}`)]),
  )
}

/** Parses text without a schema: as JSON where it is JSON. */
function guess(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export interface Setting {
  readonly path: Path
  /** Null removes the field. */
  readonly value: Json
}

/**
 * The settings as a merge patch; undefined where there is none: it cannot change an item of a list, replace a whole map,
 * or set a field and then one below it.
 */
export function mergePatchOf(settings: readonly Setting[]): JsonObject | undefined {
  const isPlain = settings.every(
    ({ path, value }) =>
      path.every((step) => typeof step === 'string') &&
      !isObject(value) &&
      !settings.some((other) => other.path.length > path.length && startsWith(other.path, path)),
  )
  if (!isPlain) return undefined
  return settings.reduce(
    (patch, { path, value }) => setAt(patch, path, value) as JsonObject,
    {} as JsonObject,
  )
}

function startsWith(path: Path, start: Path): boolean {
  return start.every((step, i) => path[i] === step)
}

/** Marks a removed item until all settings are applied, so that indices stay those of the document as it was. */
const GONE = { removed: true }

/** The document with all settings applied, in order. */
export function applySettings(document: JsonObject, settings: readonly Setting[]): JsonObject {
  const changed = settings.reduce(
    (target: Json, { path, value }) => (value === null ? removeAt(target, path) : setAt(target, path, value)),
    document,
  )
  return withoutGone(changed) as JsonObject
}

/** The value with another one at a path; objects and lists that are missing on the way are created. */
export function setAt(target: Json | undefined, [step, ...rest]: Path, value: Json): Json {
  if (step === undefined) return value
  if (typeof step === 'number') {
    const list = Array.isArray(target) ? target : []
    if (step > list.length) throw beyond(step, list, `: the next one is [${list.length}]`)
    return list.toSpliced(step, 1, setAt(list[step], rest, value))
  }
  const object = isObject(target) ? target : {}
  return { ...object, [step]: setAt(own(object, step), rest, value) }
}

/** The value without the one at a path; unchanged where there is none. */
function removeAt(target: Json | undefined, [step, ...rest]: Path): Json {
  if (typeof step === 'number' && Array.isArray(target)) {
    if (step >= target.length) throw beyond(step, target, '')
    const item = target[step] as Json
    return target.toSpliced(step, 1, rest.length === 0 ? GONE : removeAt(item, rest))
  }
  if (typeof step !== 'string' || !isObject(target) || !Object.hasOwn(target, step)) return target ?? null
  const { [step]: found, ...others } = target
  return rest.length === 0 ? others : { ...target, [step]: removeAt(found, rest) }
}

function beyond(index: number, list: readonly Json[], more: string): Error {
  return usage(`[${index}] is beyond the end of a list of ${list.length}${more}`)
}

function withoutGone(value: Json): Json {
  if (Array.isArray(value)) return value.filter((item) => item !== GONE).map(withoutGone)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withoutGone(each)]))
}

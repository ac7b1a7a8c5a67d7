// RFC 6902: how a JSON patch changes a value, and how much its operations may build.
import {
  equalJson,
  excerpt,
  FORBIDDEN_KEYS,
  frameLength,
  isObject,
  type Json,
  type JsonObject,
  leafLength,
  MAX_DEPTH,
  own,
  pointer,
} from './json.ts'
import { fail, invalid, type Result, succeed } from './problem.ts'
import type { Steps } from './steps.ts'

export const MAX_OPERATIONS = 10_000
const OPERATIONS = ['add', 'remove', 'replace', 'move', 'copy', 'test']

/**
 * Returns `document` after all operations; `path` is where the patch stands in what was sent. The operations may add,
 * copy and move `maxSize` characters of JSON in all: copies of copies double, so a small patch could fill the memory.
 */
export function* applyJsonPatch(
  document: Json,
  patch: Json,
  path: string,
  maxSize: number,
): Steps<Result<Json>> {
  if (!Array.isArray(patch)) return invalid([{ path, message: 'must be a list of operations (RFC 6902)' }])
  if (patch.length > MAX_OPERATIONS) {
    const message = `has ${patch.length} operations, and a patch takes ${MAX_OPERATIONS}: send several patches, or replace the document`
    return invalid([{ path, message }])
  }
  const { copy } = yield* measuredCopy(document, Number.POSITIVE_INFINITY)
  const patching = new Patching(copy, maxSize)
  for (const [i, operation] of patch.entries()) {
    yield
    const at = pointer(path, i)
    if (!isOperation(operation)) {
      const message = `is not one of the operations of RFC 6902: "op" (${OPERATIONS.join(', ')}), a "path" such as /labels/team, "from" or "value"`
      return invalid([{ path: at, message }])
    }
    const problem = yield* patching.apply(operation)
    if (problem === undefined) continue
    const detail = { path: at, message: `cannot be applied: ${problem}` }
    if (operation.op !== 'test') return invalid([detail])
    return fail({
      code: 'conflict',
      reason: 'test_failed',
      message: `${at} is a test that does not hold`,
      details: [detail],
    })
  }
  return succeed(patching.result)
}

interface Operation extends JsonObject {
  readonly op: string
  readonly path: string
}

function isOperation(operation: Json): operation is Operation {
  if (!isObject(operation)) return false
  const { op } = operation
  const needsFrom = op === 'move' || op === 'copy'
  const needsValue = op === 'add' || op === 'replace' || op === 'test'
  return (
    OPERATIONS.some((known) => known === op) &&
    isPointer(own(operation, 'path')) &&
    (!needsFrom || isPointer(own(operation, 'from'))) &&
    (!needsValue || Object.hasOwn(operation, 'value'))
  )
}

function isPointer(value: Json | undefined): boolean {
  return typeof value === 'string' && (value === '' || value.startsWith('/')) && !/~(?![01])/.test(value)
}

type Container = Record<string, Json> | Json[]

/**
 * A copy of the document that operations change in place. Each operation returns what is wrong with it, or undefined.
 */
class Patching {
  /** The whole document is a member of this, so that the root is a place like any other. */
  readonly #root: Record<string, Json>
  readonly #maxSize: number
  #size = 0

  /** The document is a copy. */
  constructor(document: Json, maxSize: number) {
    this.#root = { '': document }
    this.#maxSize = maxSize
  }

  get result(): Json {
    return this.#root[''] ?? null
  }

  *apply(operation: Operation): Steps<string | undefined> {
    const { op, path, value = null } = operation
    const keys = keysOf(path)
    const from = typeof operation.from === 'string' ? operation.from : ''
    const reserved = [...keys, ...keysOf(from)].find((key) => FORBIDDEN_KEYS.has(key))
    if (reserved !== undefined) return `"${reserved}" is a reserved key: use another name`
    if (op === 'add') {
      const taken = yield* this.#take(keys, value)
      return typeof taken === 'string' ? taken : this.#add(keys, taken.copy, path)
    }
    if (op === 'move' || op === 'copy') return yield* this.#bring(op, keysOf(from), keys, operation)
    const current = this.#read(keys)
    if (op === 'test')
      return current !== undefined && equalJson(current, value) ? undefined : 'the value there is another'
    if (current === undefined) return nothingAt(path)
    if (op === 'remove') return this.#remove(keys)
    const taken = yield* this.#take(keys, value)
    return typeof taken === 'string' ? taken : this.#replace(keys, taken.copy)
  }

  *#bring(
    op: 'move' | 'copy',
    from: readonly string[],
    to: readonly string[],
    operation: Operation,
  ): Steps<string | undefined> {
    const value = this.#read(from)
    if (value === undefined) return nothingAt(operation.from)
    const taken = yield* this.#take(to, value)
    if (typeof taken === 'string') return taken
    if (op === 'copy') return this.#add(to, taken.copy, operation.path)
    if (isWithin(to, from)) return 'a value cannot move into itself'
    this.#remove(from)
    return this.#add(to, value, operation.path)
  }

  /** Copies and counts a value before it is put somewhere; returns the limit that it exceeds instead. */
  *#take(keys: readonly string[], value: Json): Steps<string | Measured> {
    const taken = yield* measuredCopy(value, this.#maxSize - this.#size)
    this.#size += taken.size
    if (this.#size > this.#maxSize)
      return `what the operations add, copy and move comes to more than ${this.#maxSize} characters of JSON: send several patches, or replace the document`
    if (keys.length - 1 + taken.depth > MAX_DEPTH)
      return `the document would be nested deeper than ${MAX_DEPTH} levels: put the value somewhere higher`
    return taken
  }

  #read(keys: readonly string[]): Json | undefined {
    let value: Json | undefined = this.#root
    for (const key of keys) {
      if (Array.isArray(value)) value = isIndex(key) ? value[Number(key)] : undefined
      else value = isObject(value) ? own(value, key) : undefined
    }
    return value
  }

  #containerOf(keys: readonly string[]): Container | undefined {
    return this.#read(keys.slice(0, -1)) as Container | undefined
  }

  #add(keys: readonly string[], value: Json, path: Json): string | undefined {
    const container = this.#containerOf(keys)
    const key = keys.at(-1) as string
    if (typeof container !== 'object' || container === null) return `nothing can be added at ${excerpt(path)}`
    if (!Array.isArray(container)) container[key] = value
    else if (key === '-') container.push(value)
    else if (isIndex(key) && Number(key) <= container.length) container.splice(Number(key), 0, value)
    else return `a list takes an index from 0 to ${container.length}, or "-" for its end, not ${excerpt(key)}`
    return undefined
  }

  #replace(keys: readonly string[], value: Json): undefined {
    const container = this.#containerOf(keys) as Record<string, Json>
    container[keys.at(-1) as string] = value
  }

  #remove(keys: readonly string[]): undefined {
    const container = this.#containerOf(keys) as Container
    const key = keys.at(-1) as string
    if (Array.isArray(container)) container.splice(Number(key), 1)
    else delete container[key]
  }
}

/**
 * Returns the keys of a JSON pointer, beginning above the root. A pointer that is too long is cut where it can lead to
 * no value any more.
 */
function keysOf(path: string): string[] {
  return path
    .split('/', MAX_DEPTH + 2)
    .map((key) => (key.includes('~') ? key.replaceAll('~1', '/').replaceAll('~0', '~') : key))
}

function isIndex(key: string): boolean {
  return /^(?:0|[1-9]\d{0,8})$/.test(key)
}

interface Measured {
  readonly copy: Json
  readonly size: number
  readonly depth: number
}

/** So many values are copied in a step. */
const STEP = 500

/**
 * Returns a copy with its length as JSON and its depth, made in steps: the last of copies that double is as large as all
 * before it. Beyond the limit it is not finished. Many times as fast as structuredClone, which serialises the value.
 */
function* measuredCopy(value: Json, limit: number): Steps<Measured> {
  const copy = emptyOf(value)
  const open = isContainer(value) ? [{ from: value, to: copy as Container, level: 1 }] : []
  let size = isContainer(value) ? 0 : leafLength(value)
  let depth = 0
  let copied = 0
  for (let next = open.pop(); next && size <= limit; next = open.pop()) {
    const { from, to, level } = next
    const keys = Array.isArray(from) ? undefined : Object.keys(from)
    const count = keys?.length ?? (from as Json[]).length
    size += frameLength(count)
    if (count > 0 && level > depth) depth = level
    for (let i = 0; i < count && size <= limit; i++) {
      if (++copied % STEP === 0) yield
      const key = keys?.[i]
      const member = (from as Record<string, Json>)[key ?? i] as Json
      size += key === undefined ? 0 : key.length + 3
      const into = emptyOf(member)
      if (Array.isArray(to)) to.push(into)
      else if (key !== undefined) to[key] = into
      if (isContainer(member)) open.push({ from: member, to: into as Container, level: level + 1 })
      else size += leafLength(member)
    }
  }
  return { copy, size, depth }
}

function isContainer(value: Json): value is Container {
  return typeof value === 'object' && value !== null
}

function emptyOf(value: Json): Json {
  if (!isContainer(value)) return value
  return Array.isArray(value) ? [] : {}
}

/** Whether one place is inside another: a value cannot be moved into itself. */
function isWithin(keys: readonly string[], from: readonly string[]): boolean {
  return keys.length > from.length && from.every((key, i) => keys[i] === key)
}

function nothingAt(path: Json | undefined): string {
  return `nothing is at ${excerpt(path)}`
}
